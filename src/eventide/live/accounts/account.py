"""The account of one people: publications join it, charge every step before it is drawn, and settle it before anybody
sees it.

* Charge first: a charge is durable before the step is drawn, and is never given back.
* Settle before anything is emitted: after the store's commit. So of a step that is charged and not settled nobody has
  seen a draw, and it may be drawn again under the same charge, after however many crashes; of a settled one it may not.
  A store that has forgotten a settled step is refused.
* A publication has one process: who joins gets a new token, and from then on the one before can neither charge nor
  settle, so it emits nothing.
* An account that has lost entries (a backup was put back) takes the last D before a moment that the operator gives as
  fully spent, and ends all tenures.

What windows hold, and why that keeps the promise: `windows.py`.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, Self, TypeVar

from eventide.errors import BudgetExceeded, InputError, StateError, StoreError
from eventide.events.durations import in_words
from eventide.live.accounts.database import AccountDatabase
from eventide.live.accounts.moments import iso
from eventide.live.accounts.tenures import Tenure, after, tenure_of
from eventide.live.accounts.windows import Holding, Terms, free_from, fullest
from eventide.live.notices import NOTICES
from eventide.live.stores.database import ConnectionLost, Unavailable
from eventide.live.stores.digests import digest
from eventide.live.stores.patience import Patience
from eventide.privacy.amounts import NANO

MILLISECOND = 1_000

Result = TypeVar("Result")

_UPDATE = (
    "UPDATE tenure SET ended = ?, token = ?, charged_from = ?, charged_until = ?, settled_until = ? WHERE number = ?"
)


class AccountFull(BudgetExceeded):
    """An account has no room for a publication or a charge. Nothing was charged."""

    def __init__(self, sentence: str) -> None:
        Exception.__init__(self, sentence)

    def __reduce__(self) -> tuple[type[AccountFull], tuple[str]]:  # type: ignore[override]
        return (type(self), (str(self),))


class _TakenBack(Exception):
    """Ends a transaction of which nothing is to be kept."""


class Seat(NamedTuple):
    """The place of one process in an account."""

    publication: str
    tenure: int
    token: int
    since: int  # the first moment that a charge may show rows of
    again: bool = False  # somebody had ended this publication, and now it holds a part again


class Account:
    """The account in a database; `patience` says what is done while that cannot be used."""

    patience = Patience()
    _pretends = False

    def __init__(self, database: AccountDatabase) -> None:
        self.database = database
        try:
            rows = database.all("SELECT name, population, epsilon, length, digest FROM account")
            if len(rows) != 1 or digest(*rows[0][:4]) != rows[0][4]:
                raise self.damaged()
        except BaseException:
            database.close()
            raise
        self.name: str
        self.population: str
        self.epsilon: int
        self.window: int
        self.name, self.population, self.epsilon, self.window, _ = rows[0]

    def sentence(self) -> str:
        """The promise, for a guarantee."""
        return (
            f"together with everything else that draws from the account of {self.population}, it is at most epsilon "
            f"{self.epsilon / NANO:g} inside any {in_words(self.window // MILLISECOND)}, counted in whole steps"
        )

    def damaged(self) -> StoreError:
        """The refusal of an account that is not what was written."""
        return StoreError(
            f"{self.database.place} is damaged: put back a backup, then run `eventide account restored "
            f"{self.database.place} --until TIME`"
        )

    def join(
        self,
        publication: str,
        terms: Terms,
        wanted: int,
        *,
        reached: int | None = None,
        after_restore: bool = False,
        called: str = "",
    ) -> Seat:
        """Take the place of a publication; whoever had it can charge nothing more.

        With the terms that it had it goes on. With others its tenure ends and a new one begins as soon as all windows
        have room for it: `Seat.since` says when. Refused where that is never.

        Parameters
        ----------
        publication
            The name of its store.
        terms
            What it promises by itself.
        wanted
            The first moment whose rows it would show.
        reached
            The end of the last step that its store has measured and committed, None where there is none.
        after_restore
            Its store is a backup: begin behind everything that was settled.
        called
            What people call it.
        """
        return self._done(lambda: self._join(publication, terms, wanted, reached, after_restore, called))

    def outlook(
        self,
        publication: str,
        terms: Terms,
        wanted: int,
        *,
        reached: int | None = None,
        after_restore: bool = False,
        called: str = "",
    ) -> Seat:
        """What `join` would give or refuse; nothing is changed."""

        if self._pretends:
            return self._join(publication, terms, wanted, reached, after_restore, called)
        seats = []

        def look() -> None:
            seats.append(self._join(publication, terms, wanted, reached, after_restore, called))
            raise _TakenBack

        with suppress(_TakenBack):
            self._done(look)
        return seats[-1]

    @contextmanager
    def pretending(self) -> Iterator[None]:
        """Inside, one outlook builds on the other, and nobody else gets at the account; then all is taken back."""
        with suppress(_TakenBack), self.database.transaction():
            self._pretends = True
            try:
                yield
            finally:
                self._pretends = False
            raise _TakenBack

    def charge(self, seat: Seat, since: int, until: int) -> None:
        """Charge the step that shows rows of [since, until) and ends at `until`, before it is drawn.

        A step that was charged and not settled is drawn again under the same charge.
        """
        self._done(lambda: self._charge(seat, since, until))

    def settle(self, seat: Seat, until: int) -> None:
        """Say that the step charged last is committed; only then may anybody see it."""
        self._done(lambda: self._settle(seat, until))

    def end(self, publication: str) -> Tenure:
        """End a publication: its part is free again as soon as no window meets what it was charged."""
        return self._done(lambda: self._note(self._holder(publication), "end", why="operator"))

    def pause(self, publication: str) -> Tenure:
        """Let nobody charge for a publication until it is resumed; it keeps its part."""
        return self._done(lambda: self._note(self._holder(publication), "pause"))

    def resume(self, publication: str) -> Tenure:
        """Let a publication that was paused join again."""
        return self._done(lambda: self._resume(publication))

    def restored(self, until: int) -> None:
        """Take the last window before a moment as fully spent, since entries were lost; all tenures end.

        What was charged there is not known, only that it was within epsilon. So nothing is added to what windows held,
        and no tenure that begins now meets one of them.
        """
        self._done(lambda: self._restored(until))

    def tenures(self) -> list[Tenure]:
        """All tenures, in the order in which they began."""
        return self._tenures("1 = 1")

    def close(self) -> None:
        """Let go of the database."""
        self.database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def _join(
        self, publication: str, terms: Terms, wanted: int, reached: int | None, after_restore: bool, called: str
    ) -> Seat:
        tenures = self._tenures("publication IN (?, '')", publication)
        self._refuse_unknown(tenures, reached)
        mine = [tenure for tenure in tenures if tenure.publication]
        last = mine[-1] if mine else None
        if last and not last.settled and last.charged_until == reached:
            last = self._note(last, "settle", until=reached)  # committed, then the process ended
        settled = max((tenure.settled_until for tenure in mine if tenure.settled_until is not None), default=None)
        if (
            settled is not None
            and (reached is None or reached < settled)
            and not (after_restore or self._waits_since(last, reached))
        ):
            raise StoreError(
                f"the account {self.database.place} was charged for steps until {iso(settled)} that this store does "
                "not hold: the store was restored from a backup; go on with --after-restore"
            )
        if last and last.paused and not last.ended:
            raise InputError(
                f"this publication is paused at {self.database.place}: go on with `eventide account resume "
                f"{self.database.place} {publication}`"
            )
        again = last is not None and last.ended and last.charged_until is not None
        if last and not last.ended and (last.terms != terms or after_restore):
            last = self._note(last, "end", why="store restored" if after_restore else "other terms")
        if last is None or last.ended:
            floor = wanted if settled is None else max(wanted, settled)
            told = {"called": called} | ({"restored_at": reached} if after_restore else {})
            last = self._begin(publication, terms, floor, told)
        token = secrets.randbits(62)  # a number that counts up could come again after a backup was put back
        last = self._note(last, "open", token=token)
        return Seat(publication, last.number, token, last.since, again)

    def _resume(self, publication: str) -> Tenure:
        holder = self._holder(publication)
        if not holder.paused:
            raise InputError(f"the publication {publication!r} is not paused")
        return self._note(holder, "resume")

    def _restored(self, until: int) -> None:
        for tenure in self._tenures("ended = 0"):
            self._note(tenure, "end", why="account restored")
        known = [tenure.charged_until for tenure in self._tenures("charged_until IS NOT NULL")]
        last = max([until, *(moment for moment in known if moment is not None)])
        begun = self._new("", None, 0, last - self.window)
        charged = self._note(begun, "charge", since=last - self.window, until=last)
        self._note(self._note(charged, "settle", until=last), "end")

    def _charge(self, seat: Seat, since: int, until: int) -> None:
        tenure = self._seated(seat)
        if not tenure.since <= since < until:
            raise StateError(f"nothing before {iso(tenure.since)} may be charged to {self.database.place}")
        if tenure.charged_until is not None and until <= tenure.charged_until:
            if tenure.settled or until != tenure.charged_until:
                raise StoreError(
                    f"by the account {self.database.place} the step until {iso(until)} was published before: the store "
                    "is older than the account; go on with --after-restore"
                )
        elif not tenure.settled:
            raise StateError("a step must be settled before the next one is charged")
        charged = self._note(tenure, "charge", since=since, until=until)
        near = self.database.all(
            "SELECT charged_from, charged_until, weight FROM tenure"
            " WHERE number <> ? AND charged_until > ? AND charged_from < ?",
            tenure.number,
            since - self.window,
            until + self.window,
        )
        held = fullest([*(Holding(*row) for row in near), *charged.charged()], self.window)
        if held > self.epsilon:
            raise AccountFull(f"a window of {self.database.place} would hold {held / NANO:g}; nothing is charged")

    def _settle(self, seat: Seat, until: int) -> None:
        tenure = self._seated(seat)
        if tenure.charged_until != until:
            raise StateError("a step is settled when it was charged")
        if not tenure.settled:
            self._note(tenure, "settle", until=until)

    def _done(self, work: Callable[[], Result]) -> Result:
        """Do some work in a transaction, again where the connection was lost, and as long as patience lasts.

        Perhaps it was done the first time: to join, charge or settle once more changes nothing.
        """
        lost = False
        while True:
            try:
                if lost:
                    self.database.come_back()
                    lost = False
                with self.database.transaction():
                    result = work()
            except ConnectionLost:
                lost = True
                self.patience.lost()
            except Unavailable as fault:
                self.patience.wait(fault)
            else:
                self.patience.healed()
                return result

    def _refuse_unknown(self, tenures: list[Tenure], reached: int | None) -> None:
        """Refuse a store that has published what no entry knows."""
        known = [tenure.charged_until for tenure in tenures if tenure.charged_until is not None]
        if reached is not None and reached > max(known, default=reached - 1):
            raise StoreError(
                f"this store has published steps until {iso(reached)} that {self.database.place} does not know. If the "
                f"account is a backup, run `eventide account restored {self.database.place} --until {iso(reached)}`; "
                "if the store was used without it, publish to a new store"
            )

    def _waits_since(self, tenure: Tenure | None, reached: int | None) -> bool:
        """Whether a tenure began with this very backup, and has published nothing since: then nothing more is lost."""
        if tenure is None or tenure.settled_until is not None:
            return False
        begins = self.database.all("SELECT event FROM entry WHERE event LIKE ?", '%"kind": "begin"%"restored_at"%')
        events = [json.loads(event) for (event,) in begins]
        return any((event["tenure"], event["restored_at"]) == (tenure.number, reached) for event in events)

    def _begin(self, publication: str, terms: Terms, wanted: int, told: dict[str, Any]) -> Tenure:
        weight = terms.weight(self.window)
        lost = [behind(one, self.window) for one in self._tenures("publication = ''")]
        known_from = max([wanted, *lost])
        near = self._tenures("ended = 0 OR charged_until > ?", known_from - self.window)
        holdings = [hold for one in near for hold in one.held()]
        since = None if weight > self.epsilon else free_from(holdings, self.window, self.epsilon - weight, known_from)
        if since is None:
            raise AccountFull(self._why_full(terms))
        if terms.times(self.window) > 1:
            NOTICES.info(
                "Of %s this publication holds %g: %s.",
                self.database.place,
                weight / NANO,
                self._why_several_times(terms),
            )
        return self._new(publication, terms, weight, since, told | {"wanted": wanted})

    def _why_full(self, terms: Terms) -> str:
        held = sum(tenure.weight for tenure in self._tenures("ended = 0"))
        sentence = (
            f"{self.database.place} has {(self.epsilon - held) / NANO:g} of its epsilon {self.epsilon / NANO:g} left, "
            f"and this one needs {terms.weight(self.window) / NANO:g}"
        )
        advice = "a smaller epsilon"
        if terms.times(self.window) > 1:
            sentence += f": {self._why_several_times(terms)}"
            advice = f"that window or {advice}"
        other = ", or end another publication with `eventide account end`" if held else ""
        return f"{sentence}. Choose {advice}{other}"

    def _why_several_times(self, terms: Terms) -> str:
        met = terms.steps_met(self.window)
        return (
            f"a stretch of {in_words(self.window // MILLISECOND)} can begin in the middle of a step and then touches "
            f"{met} steps. A window of {terms.window} steps does not cover that, so its epsilon is held "
            f"{terms.times(self.window)} times. A window of {met} steps is held once"
        )

    def _seated(self, seat: Seat) -> Tenure:
        found = self._tenures("number = ?", seat.tenure)
        if not found or found[0].ended or (found[0].publication, found[0].token) != (seat.publication, seat.token):
            raise StoreError(
                f"this process may not charge {self.database.place} any more: another one has taken its place, or the "
                "publication was paused or ended"
            )
        return found[0]

    def _tenures(self, condition: str, *values: Any) -> list[Tenure]:
        rows = self.database.all(f"SELECT * FROM tenure WHERE {condition} ORDER BY number", *values)
        return [tenure_of(row) for row in rows]

    def _new(
        self, publication: str, terms: Terms | None, weight: int, since: int, told: dict[str, Any] | None = None
    ) -> Tenure:
        number = self.database.all("SELECT count(*) FROM tenure")[0][0]
        return self._write(
            None,
            {
                "kind": "begin",
                "tenure": number,
                "publication": publication,
                "terms": terms,
                "weight": weight,
                "since": since,
                **(told or {}),
            },
        )

    def _holder(self, publication: str) -> Tenure:
        found = self._tenures("publication = ? AND ended = 0", publication)
        if not publication or not found:
            raise InputError(f"no publication {publication!r} holds a part of {self.database.place}")
        return found[-1]

    def _note(self, tenure: Tenure, kind: str, **fields: int | str | None) -> Tenure:
        return self._write(tenure, {"kind": kind, "tenure": tenure.number, **fields})

    def _write(self, tenure: Tenure | None, event: dict[str, Any]) -> Tenure:
        """Append an entry, and keep the tenure as it is after it."""
        changed = after(tenure, event)
        last = self.database.all("SELECT number, seal FROM entry ORDER BY number DESC LIMIT 1")
        number, seal = (last[0][0] + 1, last[0][1]) if last else (0, b"")
        text = json.dumps(event)
        self.database.change(
            "INSERT INTO entry VALUES (?, ?, ?)", number, text, sealed(self.name, bytes(seal), number, text)
        )
        if tenure is None:
            self.database.change(f"INSERT INTO tenure VALUES ({', '.join('?' * 10)})", *changed.row())
        else:
            self.database.change(_UPDATE, int(changed.ended), *changed[6:], changed.number)
        return changed


def behind(tenure: Tenure, window: int) -> int:
    """The first moment such that no window meets it and what a tenure was charged."""
    return tenure.since if tenure.charged_until is None else tenure.charged_until + window - 1


def sealed(name: str, before: bytes, number: int, event: str) -> bytes:
    """The seal of an entry: it covers the one before, so nothing can be left out in the middle."""
    return digest(name, before, number, event)
