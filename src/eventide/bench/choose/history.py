"""The stream that a choice is made on: a history somebody may look at, or one made up from a description.

However long and wide a history is, no more is kept than its last steps and a sample of its bins, and `notes` says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.mechanisms.base import whole_counts
from eventide.streams.count_files import bins_in_file, open_counts

MOST_BINS = 200  # distances over all bins, which decide in many mechanisms, are hardly noisier than over more
MOST_STEPS = 2000
MOST_WINDOWS = 4  # of steps, where that is more
MOST_DESCRIBED = 100_000  # steps
LARGEST_DESCRIBED = 10**12  # counts
SAMPLE_SEED = 1


@dataclass(frozen=True)
class History:
    """Counts `(T, d)` to try mechanisms on, their bins, where they are from, and what was left out of them.

    season: its length in steps, where it is known and need not be found. read_with: the source and the options with
    which its events are published, where it was counted from events; left_out: the part of these that the limit of a
    person in a step left out.
    """

    counts: Ints = field(repr=False)
    bins: tuple[str, ...] = field(repr=False)
    source: str
    made_up: bool = False
    season: int | None = None
    notes: tuple[str, ...] = ()
    read_with: tuple[str, ...] = ()
    left_out: float = 0.0


def read_history(path: str | Path, window: int, bins: Sequence[str] | None = None) -> History:
    """Read a file of counts, wide or long; `bins` are all bins of a long one, else those that occur in it."""
    file = open_counts(path, bins or bins_in_file(path))
    return kept_history(file.steps(), file.bins, file.name, window)


def given_history(counts: Any, window: int) -> History:
    """Take a matrix of counts, one row a step."""
    matrix = whole_counts(counts)
    if matrix.ndim != 2 or 0 in matrix.shape:
        raise InputError("a history is a matrix of counts with at least one step (row) and one bin (column)")
    return kept_history(matrix, tuple(map(str, range(matrix.shape[1]))), "the given counts", window)


def describe(
    *, level: float, amplitude: float = 0, season: int | None = None, steps: int = 1000, bins: int = 1, seed: int = 1
) -> History:
    """Make up a stream: Poisson counts around a smooth wave.

    The streams of `eventide.streams.generators` are made to stress mechanisms; this one is made to be like what people
    describe.

    Parameters
    ----------
    level
        The count of a bin at its lowest.
    amplitude
        How far the wave rises above it and falls back, in all bins alike.
    season
        In how many steps it does so.
    steps, bins
        How many there are.
    seed
        The same seed gives the same counts.

    >>> describe(level=400, amplitude=100, season=144, bins=3).counts.shape
    (1000, 3)
    """
    if not (min(level, amplitude) >= 0 and 0 < level + amplitude <= LARGEST_DESCRIBED):
        raise InputError(
            "level and amplitude of a described stream are numbers from 0 up, not both 0, "
            f"and together {LARGEST_DESCRIBED:,} at most"
        )
    if amplitude and season is None:
        raise InputError("an amplitude needs a season: say in how many steps the counts rise and fall once")
    if not 1 <= steps <= MOST_DESCRIBED or bins < 1 or (season is not None and season < 2):
        raise InputError(
            f"a described stream has from 1 to {MOST_DESCRIBED:,} steps, at least one bin, and a season of at least two"
        )
    made = min(bins, MOST_BINS)
    wave = level + amplitude * (1 - np.cos(2 * np.pi * np.arange(steps) / (season or 1))) / 2
    counts = np.random.default_rng(seed).poisson(np.repeat(wave[:, None], made, axis=1))
    words = f"level {level:g}" + (f", amplitude {amplitude:g}, season {season}" if amplitude else "")
    return History(
        counts,
        tuple(map(str, range(made))),
        f"a made-up stream ({words})",
        made_up=True,
        season=season if amplitude else None,
        notes=sampled(made, bins),
    )


def kept_history(
    rows: Iterable[Ints], bins: tuple[str, ...], source: str, window: int, read_with: tuple[str, ...] = ()
) -> History:
    """The last rows, and of many bins some drawn at random, always the same ones."""
    drawn = drawn_bins(len(bins))
    kept: deque[Ints] = deque(maxlen=max(MOST_STEPS, MOST_WINDOWS * window))
    steps = 0
    for row in rows:
        kept.append(row[drawn])
        steps += 1
    notes = sampled(len(drawn), len(bins))
    if len(kept) < steps:
        notes += (f"the last {len(kept):,} of the {steps:,} steps were tried",)
    if not kept:
        raise InputError(f"{source} has no step to try anything on; give a longer history")
    tried = tuple(bins[place] for place in drawn)
    return History(np.stack(kept), tried, source, notes=notes, read_with=read_with)


def drawn_bins(bins: int) -> Ints:
    """The bins that are tried: all, or of many some drawn at random, always the same ones."""
    if bins <= MOST_BINS:
        return np.arange(bins)
    return np.sort(np.random.default_rng(SAMPLE_SEED).choice(bins, MOST_BINS, replace=False))


def sampled(tried: int, bins: int) -> tuple[str, ...]:
    """A note where not all bins are tried."""
    return (f"{tried} of the {bins:,} bins were tried, drawn at random",) if tried < bins else ()
