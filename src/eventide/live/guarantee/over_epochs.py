"""What was promised over the whole life of a store, whose epsilon and window may have changed.

Charges of two epochs never meet in one window (`live/stores/verification.py`). So what somebody did inside the shortest
of the windows meets those of one epoch alone, and over everything that was ever published the largest epsilon bounds
it.
Epochs that charged nothing told nothing, and promise nothing to be kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from eventide.events.durations import in_words
from eventide.events.timeline import Timeline
from eventide.live.guarantee.promise import share_in
from eventide.live.stores.base import Epoch, StoreSetting
from eventide.live.stores.verification import Verification
from eventide.privacy.amounts import NANO


class Promised(NamedTuple):
    """The epsilon of any window of so many steps, for the steps from one on."""

    first: int
    epsilon: float  # of all streams about the same people, where they share it
    window: int


def promises(epochs: Sequence[Epoch], verified: Verification) -> list[Promised]:
    """One for each stretch of epochs with the same promise, oldest first; the last is that of now."""
    found: list[Promised] = []
    for epoch, spending in zip(epochs, verified.spending, strict=True):
        share = share_in(epoch.guarantee)
        epsilon = share.total if share else epoch.setting.epsilon / NANO
        one = Promised(epoch.first_step, epsilon, epoch.setting.window)
        if not (len(spending.touched) or epoch is epochs[-1]):
            continue
        if not found or found[-1][1:] != one[1:]:
            found.append(one)
    return found


def over_all(found: Sequence[Promised]) -> Promised:
    """What holds of everything: the largest epsilon, in the shortest window."""
    return Promised(0, max(one.epsilon for one in found), min(one.window for one in found))


def sentences(found: Sequence[Promised], setting: StoreSetting) -> list[str]:
    """What was promised from when until when; nothing where that never changed."""
    if len(found) < 2:
        return []
    ended = [
        f"of steps {one.first} to {after.first - 1} (before {moment(after.first, setting)}): {_terms(one, setting)}"
        for one, after in pairwise(found)
    ]
    last = found[-1]
    return [*ended, f"from step {last.first} on ({moment(last.first, setting)}): {_terms(last, setting)}"]


def moment(step: int, setting: StoreSetting) -> str:
    """When a step begins, or its number where steps have no times."""
    steps = setting.steps
    if "start" not in steps:
        return f"step {step}"
    return Timeline(steps["start"], f"{steps['length']}ms", steps["zone"]).iso(step)[:16]


def span(window: int, setting: StoreSetting) -> str:
    """A window in words."""
    steps = "single step" if window == 1 else f"{window} consecutive steps"
    if "length" not in setting.steps:
        return steps
    length = setting.steps["length"]
    return f"{in_words(window * length)} ({steps} of {in_words(length)})"


def _terms(one: Promised, setting: StoreSetting) -> str:
    return f"epsilon {one.epsilon:g} inside any {span(one.window, setting)}"
