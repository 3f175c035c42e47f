"""The release of a step at which nothing may be measured: the last one again, bin by bin, by name.

Bins that are new have the value 0 and no scale.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from eventide.arrays import Floats
from eventide.releases.lines import ReleaseLine, read_line


def repeated(last: bytes | None, bins_then: Sequence[str], bins: Sequence[str], step: int) -> ReleaseLine:
    """`last`, a release of the bins `bins_then`, as the release of a later step of the bins `bins`."""
    if last is None:
        return ReleaseLine(step, False, np.zeros(len(bins)), np.full(len(bins), np.inf))
    release = dataclasses.replace(read_line(last), step=step, fresh=False)
    if tuple(bins_then) == tuple(bins):
        return release
    place = {name: index for index, name in enumerate(bins_then)}
    source = np.array([place.get(name, -1) for name in bins])

    def moved(array: Floats, absent: float) -> Floats:
        return np.where(source < 0, absent, array[source])

    return dataclasses.replace(
        release,
        values=moved(release.values, 0),
        scale=moved(release.scale, np.inf),
        low=None if release.low is None else moved(release.low, np.nan),
        high=None if release.high is None else moved(release.high, np.nan),
    )
