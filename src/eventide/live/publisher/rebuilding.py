"""What a publisher does without measuring: steps of before are taken again, the last release is repeated.

After a restart the mechanism takes the steps since its last snapshot again, on counts of zero while the meter gives the
recorded answers: its ledger is charged as it was, which is compared with what is stored, and nothing is drawn. Where a
mechanism decides by floating-point numbers, which another version or processor rounds otherwise, it may decide
otherwise this time: then the store has no state to go on from, and the publisher begins an epoch. At a step at which
nothing may be measured the last release is given again, bin by bin, by name; bins that are new have the value 0 and no
scale. The histogram of a sliding window is not: it would be that of other steps.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.errors import StoreError
from eventide.events.levels import Levels
from eventide.events.timeline import Timeline
from eventide.live.stores.base import StoreState
from eventide.live.stores.stored_releases import over_bins
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.saving import load
from eventide.privacy.ledger import Entry
from eventide.privacy.recorded_answers import replay
from eventide.releases.level_values import WINDOW, LevelValues
from eventide.releases.lines import ReleaseLine, read_line


class OtherCharges(StoreError):
    """Steps taken again are charged otherwise than they were."""


def rebuilt(
    mechanism: Mechanism,
    state: StoreState,
    timeline: Timeline | None = None,
    charges: Callable[[int], Iterable[Entry]] = lambda first: (),
    *,
    alone: bool = True,
) -> Mechanism:
    """`mechanism` itself at its beginning, or one like it that stands where the store does; it learns the times.

    `charges` gives what the store was charged from a step on; unless the mechanism is `alone` others were charged too.
    """
    if state.snapshot is not None:
        mechanism = load(state.snapshot, type(mechanism), mechanism.filter)
    if timeline is not None:
        mechanism.know_times(timeline, state.origin)
    if state.recorded:
        _replay(mechanism, state, charges(mechanism.step + state.origin), alone=alone)
    steps = max(0, state.next_step - state.origin)
    if state.next_step >= state.measured_from and mechanism.step != steps:
        raise StoreError("the store's record of the mechanism does not reach its last step; restore a backup")
    return mechanism


def _replay(mechanism: Mechanism, state: StoreState, stored: Iterable[Entry], *, alone: bool) -> None:
    """Let the mechanism take the recorded steps again, and refuse where that is charged otherwise than it was."""
    nothing = np.zeros(mechanism.numbers, dtype=np.int64)
    again: list[Entry] = []
    mechanism.ledger.entries = again
    for answers in state.recorded:
        with replay(mechanism.meter, answers):
            mechanism.release(nothing)
    mechanism.ledger.entries = None
    now = Counter(entry._replace(step=entry.step + state.origin) for entry in again)
    then = Counter(stored)
    different = now - then if not alone else (now - then) + (then - now)
    if different:
        raise OtherCharges(
            f"the record of step {min(entry.step for entry in different)} does not lead to the charges that the store "
            "has for it: the store is damaged, or another version of the mechanism wrote it; restore a backup, or "
            "publish with the version that wrote it"
        )


def repeated(
    last: bytes | None, bins_then: Sequence[str], bins: Sequence[str], mechanism: Mechanism, step: int
) -> ReleaseLine:
    """`last`, a release of the bins `bins_then`, as the release of a later step; its levels are sums of its bins."""
    first, *others = mechanism.statistics_told or (None,)
    absent = np.nan if first is not None else 0.0  # of what is computed there are no data
    release = ReleaseLine(step, False, np.full(len(bins), absent), np.full(len(bins), np.inf))
    if others:
        nothing = LevelValues(release.values, release.scale)
        release = dataclasses.replace(release, statistic=first, statistics=dict.fromkeys(others, nothing))
    if last is not None:
        own: dict[str, Any] = dict.fromkeys(("levels", *WINDOW))
        then = dataclasses.replace(read_line(last), step=step, fresh=False, **own)
        told = then.statistics and {
            name: _nothing(each) if name in mechanism.statistics_of_slots else dataclasses.replace(each, fresh=False)
            for name, each in then.statistics.items()
        }
        release = over_bins(dataclasses.replace(then, statistics=told), bins_then, bins, absent=absent)
    if mechanism.levels is None:
        return release
    return dataclasses.replace(release, levels=sums_of_bins(release.values, mechanism.levels))


def _nothing(told: LevelValues) -> LevelValues:
    """What there is of a slot at a step at which it is not measured."""
    return LevelValues(np.full_like(told.values, np.nan), np.full_like(told.scale, np.inf))


def sums_of_bins(values: Floats, levels: Levels) -> dict[str, LevelValues]:
    """What levels are where nothing was measured: the sums of bins, without a noise scale of their own."""
    sums = {level: np.asarray(np.bincount(labels, values), np.float64) for level, labels in levels.labels.items()}
    return {level: LevelValues(each, np.full(each.shape, np.inf)) for level, each in sums.items()}
