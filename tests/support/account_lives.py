"""Many publications on one account: what may happen to them, and the most that one person loses, counted densely."""

from __future__ import annotations

import json
import math
import random
import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from eventide.live.accounts.account import Account, AccountFull, Seat, sealed
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.windows import Terms
from eventide.live.stores.digests import digest

RACER = """
import sys
from eventide.live.accounts.account import AccountFull
from eventide.live.accounts.open_account import open_account
from eventide.live.accounts.windows import Terms
path, name, minutes = sys.argv[1], sys.argv[2], int(sys.argv[3])
length = minutes * 60_000_000
with open_account(path) as account:
    try:
        seat = account.join(name, Terms(400_000_000, window=1441, length=length), 0)
    except AccountFull:
        print("refused")
        sys.exit()
    for step in range(25):
        account.charge(seat, step * length, (step + 1) * length)
        account.settle(seat, (step + 1) * length)
print("published")
"""


class Drawn(NamedTuple):
    """A step that was drawn, and under which terms."""

    tenure: int
    terms: Terms
    step: int


class Life:
    """A publication with its store, as an account sees it: what is committed outlives its process."""

    def __init__(self, account: Account, name: str, terms: Terms, first: int) -> None:
        self.account, self.name, self.terms, self.next_step = account, name, terms, first
        self.reached: int | None = None
        self.seat: Seat | None = None
        self.settled: list[int] = []

    def since(self, step: int) -> int:
        return (step - self.terms.block + 1) * self.terms.length

    def join(self, terms: Terms) -> bool:
        """Start a process, perhaps with other terms; say whether it was let in."""
        before, self.terms = self.terms, terms
        try:
            self.seat = self.account.join(self.name, terms, self.since(self.next_step), reached=self.reached)
        except AccountFull:
            self.terms = before
            return False
        return True

    def publish(self, *, dies: str = "") -> Drawn:
        """Charge, draw, commit, settle; or die on the way."""
        assert self.seat
        while self.since(self.next_step) < self.seat.since:
            self.next_step += 1  # repeats the last release
        drawn = Drawn(self.seat.tenure, self.terms, self.next_step)
        until = (self.next_step + 1) * self.terms.length
        self.account.charge(self.seat, self.since(self.next_step), until)
        if dies != "drawn":
            self.reached, self.next_step = until, self.next_step + 1
        if dies:
            self.seat = None
        else:
            self.account.settle(self.seat, until)
            self.settled.append(drawn.step)
        return drawn


def most_lost(drawn: set[Drawn], window: int) -> int:
    """The most that one person loses in any window, counted window by window and step by step.

    Uncapped publications spend the whole part at one step of each of their windows. Of a capped one everything counts
    that a window touches, for as many windows of its own as its steps need.
    """
    most = 0
    last = max((one.step + 1) * one.terms.length for one in drawn)
    for begin in range(-window, last):
        held: Counter[int] = Counter()
        for tenure, terms, step in drawn:
            since, until = (step - terms.block + 1) * terms.length, (step + 1) * terms.length
            if not set(range(since, until)) & set(range(begin, begin + window)):
                continue
            if terms.block == 1:
                held[tenure] += terms.part if (step + tenure) % terms.window == 0 else 0
            else:
                steps = {moment // terms.length for moment in range(begin, begin + window)}
                held[tenure] = math.ceil(len(steps) / terms.window) * terms.part
        most = max(most, held.total())
    return most


def some_terms(chance: random.Random, window: int, length: int) -> Terms:
    return Terms(chance.randint(5, 30), chance.randint(1, 2 * window // length + 2), length, chance.choice([1, 1, 3]))


def window_of(seed: int) -> int:
    """The length of the windows, in microseconds."""
    return random.Random(1000 + seed).randint(3, 12)


def row_of(seed: int) -> tuple[object, ...]:
    """The row of an account with such windows, which no command could make."""
    row = ("name", "people", 60, window_of(seed))
    return (*row, digest(*row))


def live_through(account: Account, seed: int) -> tuple[int, int]:
    """Many publications with different steps, and all that may happen to them; give how many were drawn and refused."""
    chance, window = random.Random(seed), window_of(seed)
    drawn: set[Drawn] = set()
    refused = 0
    lives = [
        Life(account, name, some_terms(chance, window, chance.randint(1, 6)), chance.randint(0, 8)) for name in "abcde"
    ]
    for _ in range(120):
        life = chance.choice(lives)
        doing = chance.choices(["go on", "change", "end", "drawn", "committed"], [12, 2, 1, 1, 1])[0]
        if doing == "change":
            refused += not life.join(some_terms(chance, window, life.terms.length))
        elif life.seat is None and not life.join(life.terms):
            refused += 1
        elif doing == "end":
            account.end(life.name)
            life.seat = None
        elif life.next_step * life.terms.length < 60:
            drawn.add(life.publish(dies=doing if doing in ("drawn", "committed") else ""))
    found = account_report(account)
    assert found.problems == []
    assert most_lost(drawn, window) <= found.worst <= 60
    for life in lives:
        assert len(life.settled) == len(set(life.settled))
    return len(drawn), refused


def forge_weight(path: Path, weight: int) -> None:
    """Change what the first tenure holds, and seal all entries anew as somebody would who has the file."""
    with closing(sqlite3.connect(path)) as connection:
        name, seal = connection.execute("SELECT name FROM account").fetchone()[0], b""
        for number, event in connection.execute("SELECT number, event FROM entry ORDER BY number").fetchall():
            text = json.dumps(json.loads(event) | {"weight": weight}) if number == 0 else event
            seal = sealed(name, seal, number, text)
            connection.execute("UPDATE entry SET event = ?, seal = ? WHERE number = ?", (text, seal, number))
        connection.execute("UPDATE tenure SET weight = ? WHERE number = 0", (weight,))
        connection.commit()
