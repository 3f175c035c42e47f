"""What a publisher does without measuring: steps of before are taken again, the last release is repeated.

After a restart the mechanism takes the steps since its last snapshot again, on counts of zero while the meter gives the
recorded answers: its ledger is charged as it was, and nothing is drawn. At a step at which nothing may be measured the
last release is given again, bin by bin, by name; bins that are new have the value 0 and no scale. The histogram of a
sliding window is not: it would be that of other steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
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
from eventide.privacy.recorded_answers import replay
from eventide.releases.level_values import WINDOW, LevelValues
from eventide.releases.lines import ReleaseLine, read_line


def rebuilt(mechanism: Mechanism, state: StoreState, timeline: Timeline | None = None) -> Mechanism:
    """`mechanism` itself at its beginning, or one like it that stands where the store does; it learns the times."""
    if state.snapshot is not None:
        mechanism = load(state.snapshot, type(mechanism), mechanism.filter)
    if timeline is not None:
        mechanism.know_times(timeline, state.origin)
    nothing = np.zeros(mechanism.numbers, dtype=np.int64)
    for answers in state.recorded:
        with replay(mechanism.meter, answers):
            mechanism.release(nothing)
    steps = max(0, state.next_step - state.origin)
    if state.next_step >= state.measured_from and mechanism.step != steps:
        raise StoreError("the store's record of the mechanism does not reach its last step; restore a backup")
    return mechanism


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
