"""What stores may have charged, as claims: no window held more, and nothing lies outside its steps.

There is a claim for each epoch of a store, told from epochs and entries alone. Claims are compared by time, since the
steps of another store may begin at other moments or have another length. In doubt a claim reaches further.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from eventide.errors import InputError
from eventide.events.timeline import Timeline
from eventide.live.stores.base import Epoch, Store
from eventide.live.stores.epochs import last_touched


class Claim(NamedTuple):
    """No window of an epoch holds more than `epsilon`, and nothing of it lies before `first` or behind `last`."""

    epsilon: int  # nano
    window: int
    start: str  # how its steps are cut
    length: int  # milliseconds
    zone: str
    first: int
    last: int | None  # None while it goes on

    @property
    def timeline(self) -> Timeline:
        """The times of its steps."""
        return timeline_of(self.start, self.length, self.zone)


class StreamWindows(NamedTuple):
    """The windows of a stream: so many of its steps; behind one, counts change until a block of its cap is over."""

    timeline: Timeline
    window: int
    block: int = 1  # without a cap nothing changes behind a window

    @property
    def reach(self) -> int:
        """Within how many steps counts change when one person's rows in a window do."""
        return self.window + self.block - 1

    def step_of(self, time: int) -> int:
        """The step that holds a moment."""
        return int(self.timeline.index(np.array([time]))[0])

    def last_shared(self, claim: Claim) -> int:
        """The first step of the last window that may share something with a claim that has ended.

        Neither a window of this stream nor one of the claim's own holds a step of both that lies further apart. A cap
        of the claim makes no difference: rows behind its last charge changed nothing that was charged.
        """
        assert claim.last is not None
        theirs = claim.timeline
        touched = self.step_of(theirs.end(claim.last) - 1)
        apart = self.step_of(theirs.begin(claim.last + claim.window) - 1) + 1
        return max(touched, apart - self.window)

    def match(self, claim: Claim) -> bool:
        """Whether the windows of a claim are windows of this stream, so that each holds its epsilon at the most."""
        ours, theirs = self.timeline, claim.timeline
        begin = theirs.begin(claim.first)
        alike = (claim.window, theirs.length, theirs.zone.name) == (self.window, ours.length, ours.zone.name)
        return alike and ours.begin(self.step_of(begin)) == begin


@functools.lru_cache(maxsize=256)
def timeline_of(start: str, length: int, zone: str) -> Timeline:
    """The time line of steps of so many milliseconds."""
    return Timeline(start, f"{length}ms", zone)


class Share(NamedTuple):
    """What a stream goes on with: while one of these is another, it is not the same claim."""

    epsilon: int  # nano
    window: int
    cap: dict[str, int] | None


def claims_of(store: Store, going_on: Share | None = None) -> list[Claim]:
    """The claims of a store, one for each epoch charged; the last goes on if it has this share."""
    next_step = store.next_step()
    epochs = store.epochs()
    if not epochs:
        return []
    setting = epochs[-1].setting
    goes_on = Share(setting.epsilon, setting.window, setting.cap) == going_on
    ends = [*(epoch.first_step for epoch in epochs[1:]), next_step]
    until = epochs[-1].first_step if goes_on else next_step
    entries = list(takewhile(lambda entry: entry.step < until, store.entries()))
    lost = _lost(store, epochs)
    claims = []
    for number, (epoch, end) in enumerate(zip(epochs, ends, strict=True)):
        charged = last_touched([entry for entry in entries if epoch.first_step <= entry.step < end], end)
        last = max(charged, lost.get(number, -1))
        if goes_on and number == len(epochs) - 1:
            claims.append(_claim(epoch, None))
        elif last >= 0:
            claims.append(_claim(epoch, last))
    return claims


def _lost(store: Store, epochs: Sequence[Epoch]) -> dict[int, int]:
    """Up to which step epochs may have been charged without a trace: those that were not over when steps were lost."""
    lost = {}
    for number, restored in enumerate(epochs):
        before = number - 1 if restored.restored else -1
        while before >= 0:
            lost[before] = restored.first_step - 1
            known = any(store.releases(epochs[before].first_step, restored.first_step - 1))
            before = -1 if known else before - 1
    return lost


def _claim(epoch: Epoch, last: int | None) -> Claim:
    setting, steps = epoch.setting, epoch.setting.steps
    if "start" not in steps:
        raise InputError("this store counts steps that have no times; give each stream of a service a store of its own")
    return Claim(
        setting.epsilon, setting.window, steps["start"], steps["length"], steps["zone"], epoch.measured_from, last
    )
