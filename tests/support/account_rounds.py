"""Thousands of rounds of publications on their accounts, with everything that may go wrong, against a dense oracle.

All publishers live in this process; each has its own clock, so that one publishes last week while another is at today.
In a round one of them goes on, or its process dies anywhere between charge and settlement, its terms change, it ends,
its store or the account becomes an older copy; and a connection is lost before or behind a commit of the account, again
and again. The oracle knows nothing of what an account computes: it adds up, window by window, what was really spent.
"""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

from account_lives import some_terms

from eventide.errors import StoreError
from eventide.live.accounts.account import Account, AccountFull, Seat
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.windows import Terms
from eventide.live.stores.database import ConnectionLost
from eventide.live.stores.digests import digest

EPSILON = 60
LOST = 0.02  # of all transactions, before and behind the commit
DOINGS = {
    "go on": 60,
    "dies charged": 4,
    "dies committed": 4,
    "dies settled": 4,
    "other terms": 4,
    "ends": 2,
    "another process": 4,
    "older store": 2,
    "older account": 2,
}


def row_of(window: int) -> tuple[object, ...]:
    """The row of an account with windows of so many microseconds."""
    row = (f"rounds {window}", "people", EPSILON, window)
    return (*row, digest(*row))


class Measured(NamedTuple):
    """A step that a store has committed: what it spent, and of which rows of which tenure."""

    tenure: tuple[int, int]
    terms: Terms
    since: int
    until: int
    spent: int


class Oracle:
    """What every window of an account has cost one person."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.measured: dict[object, Measured] = {}

    def fullest(self) -> int:
        """The most, window by window: the sum of what its steps spent; of capped ones all that their rows may cost."""
        held: defaultdict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
        for tenure, terms, since, until, spent in self.measured.values():
            for begin in range(since - self.window + 1, until):
                if terms.block == 1:
                    held[begin][tenure] += spent
                else:
                    steps = {moment // terms.length for moment in range(begin, begin + self.window)}
                    held[begin][tenure] = math.ceil(len(steps) / terms.window) * terms.part
        return max((window.total() for window in held.values()), default=0)


class Publication:
    """A publisher with its store: what is committed outlives its process, unless an older copy is put back."""

    def __init__(self, shared: SharedAccount, name: str, chance: random.Random) -> None:
        self.shared, self.name, self.chance = shared, name, chance
        self.length = chance.randint(1, 6)
        self.terms = some_terms(chance, shared.window, self.length)
        self.next_step = chance.randint(0, 200)  # so do clocks differ
        self.reached: int | None = None
        self.unsettled: int | None = None  # the end of a step that is committed, and that the account has not heard of
        self.spent: defaultdict[tuple[int, int], dict[int, int]] = defaultdict(dict)  # what its store knows of itself
        self.copies: list[tuple[Any, ...]] = []
        self.settled: list[int] = []
        self.seat: Seat | None = None

    def copy(self) -> None:
        """Make a backup of the store."""
        self.copies.append((self.next_step, self.reached, self.unsettled, deepcopy(self.spent)))

    def put_back(self) -> None:
        """The store becomes one of its backups, if there is one."""
        if self.copies:
            self.next_step, self.reached, self.unsettled, spent = self.chance.choice(self.copies)
            self.spent, self.seat = deepcopy(spent), None
            if self.unsettled in self.settled:
                self.unsettled = None

    def since(self, step: int) -> int:
        return (step - self.terms.block + 1) * self.length

    def join(self) -> bool:
        """Start a process; say whether it was let in."""
        try:
            self.seat = self._seat(after_restore=False)
        except StoreError:
            self.shared.counted["older than its account"] += 1
            self.seat = self._seat(after_restore=True)
        if self.seat is not None:
            self._has_settled()  # what was committed before, and is emitted now
        return self.seat is not None

    def _seat(self, *, after_restore: bool) -> Seat | None:
        account, wanted = self.shared.account, self.since(self.next_step)
        try:
            return account.join(self.name, self.terms, wanted, reached=self.reached, after_restore=after_restore)
        except AccountFull:
            return None

    def publish(self, dies: str) -> None:
        """Charge, draw, commit, settle; or die on the way."""
        assert self.seat
        while self.since(self.next_step) < self.seat.since:
            self.next_step += 1  # repeats the last release
        account, step, since = self.shared.account, self.next_step, self.since(self.next_step)
        until = (step + 1) * self.length
        account.charge(self.seat, since, until)  # whoever was let in finds room
        if dies == "dies charged":
            self.seat = None
            return
        tenure = (self.shared.copies_put_back, self.seat.tenure)
        lately = sum(self.spent[tenure].get(step - back, 0) for back in range(1, self.terms.window))
        spent = int(self.chance.choice([0, 0.4, 1]) * (self.terms.part - lately))
        self.spent[tenure][step] = spent
        key = (tenure, until, self.settled.count(until))  # what was not settled was seen by nobody, and may be redrawn
        self.shared.oracle.measured[key] = Measured(tenure, self.terms, since, until, spent)
        self.reached, self.next_step, self.unsettled = until, step + 1, until
        if dies == "dies committed":
            self.seat = None
            return
        account.settle(self.seat, until)
        self._has_settled()
        if dies == "dies settled":
            self.seat = None

    def _has_settled(self) -> None:
        if self.unsettled is not None:
            self.settled.append(self.unsettled)
            self.unsettled = None


class SharedAccount:
    """An account, its publications, and an older copy of its rows."""

    def __init__(self, account: Account, names: str, chance: random.Random) -> None:
        self.account, self.window, self.chance = account, account.window, chance
        self.oracle = Oracle(self.window)
        self.copies_put_back = 0
        self.publications = [Publication(self, name, chance) for name in names]
        self._copy()
        self.counted: Counter[str] = Counter()

    def round(self) -> None:
        """One of the publications does something, or something happens to it."""
        one, doing = self.chance.choice(self.publications), self.chance.choices([*DOINGS], [*DOINGS.values()])[0]
        self.counted[doing] += 1
        if self.chance.random() < 0.02:
            self._copy()
            one.copy()
        if doing == "other terms":
            one.terms, one.seat = some_terms(self.chance, self.window, one.length), None
        elif doing == "older store":
            one.put_back()
        elif doing == "older account":
            self._put_back()
        elif one.seat is None or doing == "another process":
            self.counted["let in" if one.join() else "refused"] += 1
        elif doing == "ends":
            self.account.end(one.name)
            one.seat = None
        else:
            one.publish(doing)

    def check(self) -> None:
        """No window is over, no step is out twice, everything is verified, and nobody is stuck for good."""
        assert self.oracle.fullest() <= EPSILON
        found = account_report(self.account)
        assert found.problems == []
        for one in self.publications:
            assert len(one.settled) == len(set(one.settled))
        for tenure in [tenure for tenure in self.account.tenures() if not tenure.ended]:
            self.account.end(tenure.publication)
        for one in self.publications:
            one.terms = Terms(EPSILON // len(self.publications), 2 * self.window, one.length)
            assert one.join()
            for _ in range(3):
                one.publish("")
        assert self.oracle.fullest() <= EPSILON
        assert account_report(self.account).problems == []

    def _copy(self) -> None:
        """Make a backup of the account."""
        self._entries = self.account.database.all("SELECT count(*) FROM entry")[0][0]
        self._tenures = set(self._all_tenures())

    def _all_tenures(self) -> list[tuple[object, ...]]:
        return self.account.database.all("SELECT * FROM tenure")

    def _put_back(self) -> None:
        """The account becomes a backup, which its operator says, with the end of what anybody has published."""
        database = self.account.database
        with database.transaction():
            database.change("DELETE FROM entry WHERE number >= ?", self._entries)  # a backup is how it began
            for row in set(self._all_tenures()) - self._tenures:
                database.change("DELETE FROM tenure WHERE number = ?", row[0])
            for row in self._tenures - set(self._all_tenures()):
                database.change(f"INSERT INTO tenure VALUES ({', '.join('?' * len(row))})", *row)
        self.copies_put_back += 1
        self.account.restored(max((one.until for one in self.oracle.measured.values()), default=0))
        for one in self.publications:
            one.seat = None


@contextmanager
def losing_connections(account: Account, chance: random.Random) -> Iterator[None]:
    """Connections to the account are lost now and then: before a transaction, or behind its commit."""
    database, done = account.database, account._done

    def once(work: object) -> object:
        usual = type(database).transaction

        @contextmanager
        def transaction() -> Iterator[None]:
            lot = chance.random()
            if lot < LOST:
                raise ConnectionLost
            with usual(database):
                yield
            if lot > 1 - LOST:
                raise ConnectionLost

        database.transaction = transaction  # type: ignore[method-assign]
        try:
            return done(work)  # type: ignore[arg-type]
        finally:
            del database.transaction

    account._done = once  # type: ignore[method-assign, assignment]
    yield
    del account._done


def live_rounds(accounts: Sequence[tuple[Account, str]], rounds: int, seed: int) -> Counter[str]:
    """So many rounds over all accounts, each with its publications; give how often what was done."""
    chance = random.Random(seed)
    shared = [SharedAccount(account, names, chance) for account, names in accounts]
    for _ in range(rounds):
        one = chance.choices(shared, [len(each.publications) for each in shared])[0]
        with losing_connections(one.account, chance):
            one.round()
    for one in shared:
        one.check()
    return sum((one.counted for one in shared), Counter())
