"""The releases of a store as arrays over one list of bins, also where epochs had different ones.

A bin that an epoch did not have has no value there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from eventide.arrays import Array
from eventide.live.stores.base import Store
from eventide.releases.lines import ReleaseLine, read_line


def all_bins(store: Store) -> tuple[str, ...]:
    """The bins of all epochs, those of the last one first."""
    return tuple(dict.fromkeys(name for epoch in reversed(store.epochs()) for name in epoch.setting.bins))


def stored_releases(store: Store, bins: tuple[str, ...]) -> Iterator[ReleaseLine]:
    """All releases, over `bins`; a bin that was none at a step has no value there, which is NaN."""
    place = {name: number for number, name in enumerate(bins)}
    next_step, epochs = store.next_step(), store.epochs()
    ends = [*(epoch.first_step for epoch in epochs), next_step][1:]
    for epoch, end in zip(epochs, ends, strict=True):
        own = epoch.setting.bins
        places = None if own == bins else np.array([place[name] for name in own])
        for _, line in store.releases(epoch.first_step, end - 1):
            release = read_line(line)
            yield release if places is None else _spread(release, places, len(bins))


def _spread(release: ReleaseLine, places: Array, size: int) -> ReleaseLine:
    arrays: dict[str, Any] = {name: getattr(release, name) for name in ("values", "scale", "low", "high")}
    for name, numbers in arrays.items():
        if numbers is not None:
            arrays[name] = np.full(size, np.inf if name == "scale" else np.nan)
            arrays[name][places] = numbers
    return replace(release, **arrays)
