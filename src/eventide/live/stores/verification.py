"""Was any window ever over epsilon? Answered from the stored entries and epochs alone, and not by the ledger's code.

A window of an epoch is charged its points and every span that touches it, once. Where a window sensitivity C was given
beside the sensitivity m, a step is charged its points and every span that touches it, and one person loses C / m times
the most that a step was charged. Windows of different epochs never mix: between the last step that one epoch charged
and the first that a later one charges lie at least as many steps as the longer of their windows has, with the steps
behind it that the counts of one person can still change in, by the longer of their blocks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array
from eventide.live.stores.base import Epoch, StoreSetting, with_ends
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry


class EpochSpending(NamedTuple):
    """The charges of one epoch, step by step from its first; all in nano-epsilon."""

    epoch: Epoch
    points: Array  # charged to each step, with the spans that open at it
    windows: Array  # charged to the window that ends at each step; with a window sensitivity, lost by each step
    touched: Array  # the steps with a charge, or inside a span


class Verification(NamedTuple):
    """What was found. `problems` are sentences; there are none where every window kept to its epsilon."""

    problems: list[str]
    worst: int  # nano-epsilon in the fullest window of all epochs
    worst_end: int  # the step at which that window ends, -1 where nothing was charged
    spending: list[EpochSpending]

    @property
    def holds(self) -> bool:
        """Whether no window was over."""
        return not self.problems

    @property
    def worst_allowed(self) -> int:
        """The epsilon of the epoch of the fullest window, in nano-epsilon; 0 where there is no epoch."""
        ends = [(each.epoch.first_step + len(each.windows), each.epoch.setting.epsilon) for each in self.spending]
        return next((epsilon for end, epsilon in ends if self.worst_end < end), 0)


def verify(entries: Iterable[Entry], epochs: Sequence[Epoch], next_step: int) -> Verification:
    """Add up every window of every epoch of a store whose steps before `next_step` are released."""
    charges = _Charges(list(entries), epochs)
    spending = [_spending(epoch, charges, end) for epoch, end in with_ends(epochs, next_step)]
    problems = [*charges.strays(next_step), *_over(spending), *_mixed(spending)]
    fullest = [(int(epoch.windows.max()), epoch) for epoch in spending if len(epoch.windows)]
    worst, where = max(fullest, key=lambda pair: pair[0], default=(0, None))
    end = -1 if where is None or worst == 0 else where.epoch.first_step + int(where.windows.argmax())
    return Verification(problems, worst, end, spending)


class _Charges:
    """The entries, column by column."""

    def __init__(self, entries: list[Entry], epochs: Sequence[Epoch]) -> None:
        most = sum(abs(entry.amount) for entry in entries)
        self.steps = np.array([entry.step for entry in entries], dtype=np.int64)
        self.kinds = np.array([entry.kind for entry in entries], dtype=np.str_)
        self.lanes = [entry.lane for entry in entries]
        self.amounts = np.array(  # a sum of Python's integers never overflows
            [entry.amount for entry in entries], dtype=np.int64 if most < 2**62 else object
        )
        self.epochs = np.searchsorted([epoch.first_step for epoch in epochs], self.steps, side="right") - 1

    def of_steps(self, kind: str, begin: int, end: int) -> Array:
        """What each of the steps from `begin` up to `end` was charged in entries of one kind."""
        chosen = (self.kinds == kind) & (self.steps >= begin) & (self.steps < end)
        total = np.zeros(max(end - begin, 0), dtype=self.amounts.dtype)
        np.add.at(total, self.steps[chosen] - begin, self.amounts[chosen])
        return total

    def strays(self, next_step: int) -> list[str]:
        """Entries that belong nowhere or take something back, in sentences."""
        nowhere = (self.epochs < 0) | (self.steps >= next_step) | ~np.isin(self.kinds, ["point", "open", "close"])
        found = [
            f"an entry of step {step} belongs to no released step or is of no known kind"
            for step in self.steps[nowhere]
        ]
        found += [f"step {step} is charged less than nothing" for step in self.steps[self.amounts < 0]]
        changes = np.where(self.kinds == "open", self.amounts, np.where(self.kinds == "close", -self.amounts, 0))
        open_spans: Counter[tuple[int, str]] = Counter()
        for place in np.flatnonzero(changes):
            open_spans[lane := (int(self.epochs[place]), self.lanes[place])] += changes[place]
            if open_spans[lane] < 0:
                found.append(f"step {self.steps[place]} closes a span that was not open")
        return found


def _spending(epoch: Epoch, charges: _Charges, end: int) -> EpochSpending:
    """Add up one epoch; a span that was still open at its end touched all of its last steps."""
    begin, setting = epoch.first_step, epoch.setting
    window = setting.window if setting.window_sensitivity is None else 1
    points, opened, closed = (charges.of_steps(kind, begin, end) for kind in ("point", "open", "close"))
    # The window that ends at a step holds all points and openings until then, but no points and closings before it.
    before = np.cumsum(points + closed)[:-window]
    windows = np.cumsum(points + opened)
    windows[len(windows) - len(before) :] -= before
    if setting.window_sensitivity is not None:  # rounded up, in Python's integers
        windows = -(-windows.astype(object) * setting.window_sensitivity // setting.sensitivity)
    open_or_closing = np.cumsum(opened) - np.cumsum(closed) + closed
    touched = begin + np.flatnonzero((points > 0) | (open_or_closing > 0))
    return EpochSpending(epoch, points + opened, windows, touched)


def _over(spending: list[EpochSpending]) -> list[str]:
    """Windows over their epoch's epsilon: the first of each epoch, and how many."""
    found = []
    for epoch in spending:
        over = np.flatnonzero(epoch.windows > epoch.epoch.setting.epsilon)
        if len(over):
            amount, allowed = int(epoch.windows[over[0]]) / NANO, epoch.epoch.setting.epsilon / NANO
            step = epoch.epoch.first_step + int(over[0])
            what, more = f"the window that ends at step {step} was charged {amount:g} of {allowed:g}", "windows"
            if epoch.epoch.setting.window_sensitivity is not None:
                what, more = f"by the charges of step {step} one person can lose {amount:g} of {allowed:g}", "steps"
            found.append(what + (f", and {len(over) - 1} more {more} are over" if len(over) > 1 else ""))
    return found


def _mixed(spending: list[EpochSpending]) -> list[str]:
    """Epochs that charge too early: where they may not measure yet, or within a window of an earlier epoch's charge."""
    found = []
    for number, later in enumerate(spending):
        if not len(later.touched):
            continue
        first = int(later.touched[0])
        for earlier in spending[: number + 1]:
            waited = earlier.epoch.measured_from if earlier is later or earlier.epoch.restored else first
            if first < waited:
                found.append(f"step {first} is charged, but its epoch may measure from step {waited} on")
            last = _last(earlier, same=earlier is later)
            settings = (earlier.epoch.setting, later.epoch.setting)
            apart = max(each.window for each in settings) + max(map(_block, settings)) - 1
            if last is not None and first - last < apart:
                behind = " with those behind it" if any(each.window_sensitivity for each in settings) else ""
                found.append(
                    f"a window of {apart} steps{behind} holds step {last} of one epoch and step {first} of a later one"
                )
    return found


def _block(setting: StoreSetting) -> int:
    """For how many steps counts can still change behind a row: for the rest of a block of the cap.

    Of counts that come ready-made, blocks are trusted to be no longer than a window.
    """
    return 1 if setting.window_sensitivity is None else setting.cap["block"] if setting.cap else setting.window


def _last(earlier: EpochSpending, *, same: bool) -> int | None:
    """The last step that an epoch charged; before a restored one lies a step that may have been, and is lost."""
    lost = [earlier.epoch.first_step - 1] if earlier.epoch.restored else []
    steps = lost if same else [*lost, *earlier.touched[-1:].tolist()]
    return max(steps, default=None)
