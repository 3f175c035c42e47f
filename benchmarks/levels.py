"""Levels against sums over bins: the error of the total, of districts and of places, and how good the split is.

    python benchmarks/levels.py PART... [--data DIR] [--repetitions N] [--mechanism NAME]

Parts, each printed line by line as it is measured:

    city      240 places, 16 quarters, 4 kinds, with epsilon 1 and a window of a day (144 steps)
    flu       states, nine census regions and the nation (--data)
    covid     counties, states and the nation (--data)
    search    how far the default split is from the best fixed one, found by search on each of them

A ratio is the mean absolute error of a level, over that of the sums over the bins of the same mechanism without levels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

import eventide as ev
from eventide.arrays import Ints
from eventide.events.levels import BIN, Levels
from eventide.streams.city import build_city

MOST_STEPS = 432


def city() -> tuple[Ints, Levels]:
    town = build_city()
    quarters = [name.split()[0] for name in town.bins]
    return town.counts, Levels({"quarter": quarters, "kind": list(town.kinds)}, town.bins)


def errors(
    stream: Ints,
    bins: tuple[str, ...],
    levels: Levels,
    *,
    with_levels: bool,
    epsilon: float,
    window: int,
    repetitions: int,
    mechanism: str,
    split: Mapping[str, float] | None = None,
    seed: int = 77,
) -> dict[str, float]:
    """The mean absolute error of each level; without levels, that of the sums over bins."""
    own = {"levels": levels, "level_split": split} if with_levels else {}
    made = ev.mechanism(
        mechanism, epsilon=epsilon, window=window, bins=bins, replicas=repetitions, filter="truncate", seed=seed, **own
    )
    labels = {BIN: np.arange(len(bins)), **levels.labels}
    adders = {name: np.eye(int(each.max()) + 1)[each] for name, each in labels.items()}
    total = dict.fromkeys(labels, 0.0)
    for counts in stream:
        values = made.release(counts).values
        for name, adder in adders.items():
            total[name] += float(np.abs((values - counts) @ adder).mean())
    return {name: error / len(stream) for name, error in total.items()}
