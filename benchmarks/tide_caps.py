"""Tide behind a cap on people's events: counts of one bin, one event of a person a step, blocks as long as the window.

Errors are against the counts before the cap, so what it leaves out is error too.
"""

from __future__ import annotations

import csv
import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.events.caps import window_sensitivity
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import build_mechanism

MOST_STEPS = 2000
SEED = 5


class Case(NamedTuple):
    """A file of events, the seconds of a step, the window and the periods in steps, and caps to try."""

    file: str
    seconds: int
    window: int
    seasons: tuple[int, ...]
    caps: tuple[int, ...]


class Errors(NamedTuple):
    """Mean absolute errors: of Tide without a cap; by cap, of the looks themselves and of Tide."""

    uncapped: float
    capped: dict[int, tuple[float, float]]


CASES = {
    "retail, customers a day": Case("retail_events.csv.gz", 86_400, 30, (7,), (1, 2, 3, 5)),
    "retail, customers an hour": Case("retail_events.csv.gz", 3_600, 168, (24, 168), (1, 2, 3, 5)),
    "planes an hour": Case("nycflights_events.csv.gz", 3_600, 168, (24, 168), (1, 2, 3, 5, 8)),
}


def errors(case: Case, epsilon: float, folder: Path, repetitions: int) -> Errors:
    """All errors of a case."""
    people = visits(folder / case.file, case.seconds)
    truth = np.bincount(people[:, 0])[:MOST_STEPS]
    given = {"epsilon": epsilon, "window": case.window, "bins": 1, "replicas": repetitions, "seed": SEED}
    capped = {}
    for cap in case.caps:
        counts, bound = counted(people, cap, case.window), window_sensitivity(cap, case.window, case.window)
        told = given | {"window_sensitivity": bound}
        capped[cap] = (
            _error(build_mechanism("uniform", told), counts, truth),
            _error(build_mechanism("tide", told | {"seasons": case.seasons}), counts, truth),
        )
    return Errors(_error(build_mechanism("tide", given | {"seasons": case.seasons}), truth, truth), capped)


def visits(path: Path, seconds: int) -> Ints:
    """Step and person, a row for each step that a person is seen in, in order of time."""
    with gzip.open(path, "rt") as lines:
        rows = [(row["timestamp"], row["user"]) for row in csv.DictReader(lines) if row["user"]]
    times = np.array([datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp() for when, _ in rows])
    step = (times // seconds).astype(np.int64)
    step -= times.min().astype(np.int64) // 86_400 * 86_400 // seconds
    _, person = np.unique([who for _, who in rows], return_inverse=True)
    return np.unique(np.stack([step, person], axis=1), axis=0)


def counted(people: Ints, cap: int, block: int) -> Ints:
    """The counts of which each person is counted at most `cap` times in each of their blocks."""
    offset = np.random.default_rng(SEED).integers(0, block, people[:, 1].max() + 1)
    blocks = np.stack([people[:, 1], (people[:, 0] + offset[people[:, 1]]) // block], axis=1)
    order = np.lexsort((people[:, 0], blocks[:, 1], blocks[:, 0]))
    _, first, length = np.unique(blocks[order], axis=0, return_index=True, return_counts=True)
    place = np.arange(len(order)) - np.repeat(first, length)
    return np.bincount(people[order[place < cap], 0], minlength=people[:, 0].max() + 1)


def _error(mechanism: Mechanism, counts: Ints, truth: Ints) -> float:
    released = (np.maximum(np.rint(mechanism.release([count]).values), 0) for count in counts[: len(truth)])
    return float(np.mean([np.abs(values - true).mean() for values, true in zip(released, truth, strict=True)]))
