"""The place of a store in an account: its steps, by their numbers, become charges of event time.

A step is charged before it is drawn and settled when the store has it; only then may anybody see it. Steps that repeat
the last release show nobody's rows and are not charged.
"""

from __future__ import annotations

import logging
import secrets
from pathlib import Path
from typing import Any

import numpy as np

from eventide.errors import InputError, StateError
from eventide.events.timeline import Timeline
from eventide.events.zones import DAY
from eventide.live.accounts.account import Account, Seat
from eventide.live.accounts.open_account import open_account
from eventide.live.accounts.windows import Terms
from eventide.live.stores.base import Store, StoreSetting, with_ends

log = logging.getLogger("eventide.live")

MILLISECOND = 1_000
MOST_SHIFT = 26 * 3_600_000_000  # microseconds between the earliest and the latest clock on earth


def terms_of(part: int, window: int, timeline: Timeline, block: int) -> Terms:
    """What a publication with such steps promises by itself."""
    shift = MOST_SHIFT if timeline.length % DAY == 0 and timeline.zone.name != "UTC" else 0
    return Terms(part, window, timeline.length, block, shift)


class StorePlace:
    """What a publisher does at an account, for one store."""

    def __init__(self, account: Account | str | Path, clients: str | Path | None = None) -> None:
        self.account = account if isinstance(account, Account) else open_account(account, clients=clients)
        self._seat: Seat | None = None

    def stand(self, store: Store, setting: StoreSetting) -> None:
        """Say which store it is, and what it was made for; refuse what no account can hold."""
        if not store.durable:
            raise InputError("an account needs a store that remembers what was drawn; add --store PATH")
        if "start" not in setting.steps:
            raise InputError("an account is about event time, and these steps have no times; give events, with --step")
        if not setting.steps["users"]:
            raise InputError(
                "an account is about people, and here every event would be a person of its own; name the column that "
                "holds the person, with --user"
            )
        if setting.people != self.account.population:
            raise InputError(
                f"the account {self.account.database.place} is about {self.account.population!r} and not about "
                f"{setting.people!r}; give --population {self.account.population!r}"
            )
        steps = setting.steps
        self._store = store
        self._timeline = Timeline(steps["start"], f"{steps['length']}ms", steps["zone"])
        self._terms = terms_of(setting.epsilon, setting.window, self._timeline, setting.block)

    def first_measured(self, *, after_restore: bool = False) -> int:
        """The first step that could be measured if the store joined now; nothing is changed."""
        return self._first_behind(self._join(after_restore, only_look=True).since)

    def take(self, not_before: int, *, after_restore: bool = False) -> int:
        """Join, as the writer of the store; give the first step that may be measured.

        Refused where that is later than it seemed.
        """
        seat = self._join(after_restore, only_look=False)
        first = self._first_behind(seat.since)
        if first > not_before:
            raise StateError("others have joined the account meanwhile, so this store has to wait longer; start again")
        self._seat = seat
        if seat.again:
            log.warning(
                "this publication was ended at the account %s, and has joined it again; to keep it out, stop this "
                "publisher and end the publication once more",
                self.account.database.place,
            )
        return first

    def charge(self, step: int) -> None:
        """Pay for a step; then it may be drawn."""
        self.account.charge(self._taken(), self._since(step), self._timeline.end(step))

    def settle(self, step: int) -> None:
        """Say that the store has a step; then it may be seen."""
        self.account.settle(self._taken(), self._timeline.end(step))

    def withdraw(self) -> None:
        """Give the part back where nothing was ever charged."""
        self.account.end(self._taken().publication)

    def close(self) -> None:
        """Let go of the account; the store keeps its part."""
        self.account.close()

    def _taken(self) -> Seat:
        if self._seat is None:
            raise StateError("this store has no place in the account yet")
        return self._seat

    def _join(self, after_restore: bool, *, only_look: bool) -> Seat:
        wanted = self._since(self._store.next_step())
        name = self._store.name or secrets.token_hex(16)  # of one that would be made
        join = self.account.outlook if only_look else self.account.join
        told: dict[str, Any] = {"reached": self._reached(), "called": self._store.called}
        return join(name, self._terms, wanted, after_restore=after_restore, **told)

    def _reached(self) -> int | None:
        """The end of the last step that was measured, None where none was."""
        last = -1
        for epoch, end in with_ends(self._store.epochs(), self._store.next_step()):
            if end > epoch.measured_from:
                last = end - 1
        return None if last < 0 else self._timeline.end(last)

    def _since(self, step: int) -> int:
        """The first moment whose rows a measurement of a step can show."""
        return self._timeline.begin(step - self._terms.block + 1)

    def _first_behind(self, since: int) -> int:
        """The first step of which a measurement shows no row from before a moment."""
        step = int(self._timeline.index(np.array([since - 1]))[0]) + 1
        return max(0, step + self._terms.block - 1)
