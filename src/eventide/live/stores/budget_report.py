"""What a store says of its budget: what was spent, what is left and when it comes back, and whether no window was over.

Reads only, also while a writer writes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats
from eventide.errors import InputError
from eventide.live.stores.base import Epoch, Intrusion, Store
from eventide.live.stores.verification import Verification, verify
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import Guarantee
from eventide.releases.lines import read_line

FURTHEST = 100_000  # steps ahead that are looked at
SHARES = (0.25, 0.5, 0.75, 1.0)  # of epsilon: when is so much of it back?


class Return(NamedTuple):
    """At a step to come, so much can be spent if nothing is before."""

    step: int
    start: str | None  # when it begins, where steps have times
    left: float


class BudgetReport(NamedTuple):
    """The budget of a store, in epsilon."""

    guarantee: str
    next_step: int
    epochs: list[Epoch]
    verification: Verification
    returns: list[Return]  # the first is the next step
    kept_from: int  # the first step whose release is kept, and not its charges alone
    intrusions: list[Intrusion]  # that were announced

    def charged(self) -> Floats:
        """What each step was charged, with the spans that opened at it."""
        return _joined(spending.points for spending in self.verification.spending)

    def in_windows(self) -> Floats:
        """What the window that ends at each step holds, or with a window sensitivity what one person loses by it."""
        return _joined(spending.windows for spending in self.verification.spending)

    def document(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        found = self.verification
        return {
            "guarantee": self.guarantee,
            "people": self.epochs[-1].setting.people,
            "steps": self.next_step,
            "kept_from": self.kept_from,
            "epochs": [_epoch(epoch) for epoch in self.epochs],
            "returns": [one._asdict() for one in self.returns],
            "verification": {
                "holds": found.holds,
                "problems": found.problems,
                "worst_window": found.worst / NANO,
                "worst_window_ends": found.worst_end,
            },
            "charged": self.charged().tolist(),
            "in_windows": self.in_windows().tolist(),
        } | ({"intrusions": [told(each) for each in self.intrusions]} if self.intrusions else {})


def budget_report(store: Store, until: int | None = None) -> BudgetReport:
    """Draw up the report of a store, of the steps before `until` if that is given."""
    committed = store.next_step()  # first: whatever is committed while this reads is left out
    next_step = committed if until is None else min(until, committed)
    epochs = [epoch for epoch in store.epochs() if epoch.first_step <= next_step]
    if not epochs:
        raise InputError("this store is new: nothing was ever published to it")
    entries = [entry for entry in store.entries() if entry.step < next_step]
    current = epochs[-1]
    reach = min(max(current.setting.window, current.measured_from - next_step + 1), FURTHEST)
    ahead = verify(entries, epochs, next_step + reach).spending[-1]
    left = (current.setting.epsilon - ahead.windows[next_step - current.first_step :].astype(np.float64)) / NANO
    left[: max(current.measured_from - next_step, 0)] = 0
    returns = [
        Return(next_step + place, _start(store, next_step, next_step + place), float(left[place]))
        for place in _returning(left, current.setting.epsilon / NANO)
    ]
    sentence = guarantee_of(current, for_tests=store.for_tests)
    verified, kept_from = verify(entries, epochs, next_step), store.kept_from()
    return BudgetReport(sentence, next_step, epochs, verified, returns, kept_from, store.intrusions())


def told(intrusion: Intrusion) -> str:
    """One intrusion in a sentence."""
    at = datetime.fromtimestamp(intrusion.at // 1_000_000, UTC).isoformat()
    if not intrusion.noted:
        return f"announced at {at}; no publisher has run since"
    if intrusion.last < intrusion.first:
        return f"announced at {at}; no step was open"
    steps = (
        f"steps {intrusion.first} to {intrusion.last} were open, and each"
        if intrusion.last > intrusion.first
        else (f"step {intrusion.first} was open, and")
    )
    return f"announced at {at}; {steps} is charged for what was seen: the measurement that was planned for it, if any"


def guarantee_of(epoch: Epoch, *, for_tests: bool) -> str:
    """The sentence that the epoch's publisher gave, or what its setting promises."""
    setting = epoch.setting
    notion = "event-level" if setting.window == 1 else "w-event"
    promised = Guarantee(notion, setting.epsilon / NANO, setting.window, "one person", setting.sensitivity)
    promised = dataclasses.replace(promised, window_sensitivity=setting.window_sensitivity)
    sentence = epoch.guarantee or str(promised)
    if for_tests and not sentence.startswith("NOT PRIVATE"):
        return f"NOT PRIVATE (this store was made for tests): {sentence}"
    return sentence


def _returning(left: Floats, epsilon: float) -> list[int]:
    """The next step, and those at which a further share of epsilon is back."""
    places = [0]
    for share in SHARES:
        enough = np.flatnonzero(left >= share * epsilon)
        if len(enough) and enough[0] > places[-1]:
            places.append(int(enough[0]))
    return places


def _start(store: Store, next_step: int, step: int) -> str | None:
    """When a step to come begins, if steps go on as the last two did; None where they have no times."""
    lines = [read_line(line) for _, line in store.releases(next_step - 2, next_step - 1)]
    if len(lines) < 2 or lines[0].start is None or lines[1].start is None:
        return None
    before, last = (datetime.fromisoformat(line.start or "") for line in lines)
    return (last + (step - lines[1].step) * (last - before)).isoformat()


def _joined(parts: Iterator[Any]) -> Floats:
    joined: Floats = np.concatenate([np.asarray(part, dtype=np.float64) for part in parts]) / NANO
    return joined


def _epoch(epoch: Epoch) -> dict[str, Any]:
    setting = epoch.setting
    return {
        "number": epoch.number,
        "first_step": epoch.first_step,
        "measured_from": epoch.measured_from,
        "restored": epoch.restored,
        "epsilon": setting.epsilon / NANO,
        "window": setting.window,
        "sensitivity": setting.sensitivity,
        "window_sensitivity": setting.window_sensitivity,
        "cap": setting.cap,
        "mechanism": setting.mechanism,
        "bins": len(setting.bins),
        "noise": setting.noise,
        "queries": setting.queries and setting.queries | {"epsilon": setting.queries["epsilon"] / NANO},
    }
