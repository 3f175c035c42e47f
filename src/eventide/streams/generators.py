"""Made-up streams of counts, each a stress of its own; the same arguments always make the same stream.

Every generator gives whole counts of shape `(length, bins)`. `GENERATORS` finds them by name.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.errors import InputError

LONGEST_SEASON = 2000  # 1.5 to the power of half of it is still a float
LARGEST_BURST = 1e9
STREAMS_OF_THE_PUBLIC_CODE = 100  # it scales by the largest value of so many streams and uses the first

Generator = Callable[..., Ints]


def seasonal(
    length: int = 1000, season: int = 80, amplitude: int = 1000, variant: str = "published-code", seed: int = 0
) -> Ints:
    """One bin whose seasons grow and shrink exponentially: the artificial stream of the w-event benchmark, rounded.

    variant="paper" is what the benchmark's report describes: growth 1.5, seasons start near 8, the largest count is
    `amplitude`. "published-code" is what its public code does: growth 1.3, seasons start between 2 and 4, the floor is
    2, and the largest count usually stays well below `amplitude`, which only the largest of 100 streams reaches.

    >>> stream = seasonal(length=400, season=40, amplitude=600, variant="paper")
    >>> stream.shape, int(stream.max())
    ((400, 1), 600)
    """
    _demand(4 <= season <= LONGEST_SEASON, f"season is {season}; it lies between 4 and {LONGEST_SEASON}")
    _demand(length > 0 and amplitude > 0, "length and amplitude must be above 0")
    _demand(variant in _SEASONAL, f"there is no variant {variant!r}; choose one of {', '.join(_SEASONAL)}")
    values = _SEASONAL[variant](np.random.default_rng(seed), length, season, amplitude)
    counts: Ints = np.maximum(np.rint(values), 0).astype(np.int64)
    return counts.reshape(length, 1)


def random_walk(length: int = 1000, bins: int = 1, level: int = 1000, stride: int = 10, seed: int = 0) -> Ints:
    """Each bin starts at `level` and moves by at most `stride` a step, without end; it turns around at 0."""
    moves = np.random.default_rng(seed).integers(-stride, stride + 1, _shape(length, bins, level))
    return np.abs(level + np.cumsum(moves, axis=0))


def level_shifts(length: int = 1000, bins: int = 1, level: int = 1000, every: int = 100, seed: int = 0) -> Ints:
    """Poisson counts around levels that jump, on average once in `every` steps, to anywhere below twice `level`."""
    random, shape = np.random.default_rng(seed), _shape(length, bins, level)
    _demand(every > 0, "every must be above 0: it is a number of steps")
    jumps = random.random(shape) < 1 / every
    levels = random.uniform(0, 2 * level, shape)
    jumps[0] = True
    last_jump = np.maximum.accumulate(np.where(jumps, np.arange(length)[:, None], 0), axis=0)
    return random.poisson(np.take_along_axis(levels, last_jump, axis=0))


def constant(length: int = 1000, bins: int = 1, level: int = 1000) -> Ints:
    """Nothing ever happens: whatever a mechanism gets wrong here is noise."""
    return np.full(_shape(length, bins, level), level, dtype=np.int64)


def sparse_poisson(length: int = 1000, bins: int = 100, rate: float = 0.05, seed: int = 0) -> Ints:
    """Independent Poisson counts that are nearly all 0."""
    return np.random.default_rng(seed).poisson(rate, _shape(length, bins, rate))


def bernoulli(length: int = 1000, bins: int = 1, rate: float = 0.5, seed: int = 0) -> Ints:
    """Each count is 1 with probability `rate`, else 0: the bit stream that papers on window queries call uniform."""
    _demand(0 <= rate <= 1, "rate is a probability, between 0 and 1")
    return np.random.default_rng(seed).binomial(1, rate, _shape(length, bins, rate))


def bursts(
    length: int = 1000, bins: int = 1, level: int = 20, chance: float = 0.02, tail: float = 1.2, seed: int = 0
) -> Ints:
    """Poisson counts around `level`; with `chance` a step adds a burst of `level` times a Pareto number.

    The smaller `tail`, the heavier: at 2 and below bursts have no variance, at 1 and below no mean.
    """
    random, shape = np.random.default_rng(seed), _shape(length, bins, level)
    _demand(0 <= chance <= 1 and tail > 0, "chance lies between 0 and 1, and tail is above 0")
    burst = np.minimum(level * (1 + random.pareto(tail, shape)), LARGEST_BURST)
    return random.poisson(level, shape) + np.where(random.random(shape) < chance, burst, 0).astype(np.int64)


GENERATORS: dict[str, Generator] = {
    "seasonal": seasonal,
    "random-walk": random_walk,
    "level-shifts": level_shifts,
    "constant": constant,
    "sparse-poisson": sparse_poisson,
    "bernoulli": bernoulli,
    "bursts": bursts,
}


def _as_in_the_paper(random: np.random.Generator, length: int, season: int, amplitude: int) -> Floats:
    place, half, number = _seasons(random, length, season)
    powers = half - np.abs(place - half)  # up to the middle, and the mirror image down again
    values = np.maximum(random.normal(8, 2, length), 1)[number] * 1.5**powers
    return np.asarray(values / values.max() * amplitude)


def _as_in_the_public_code(random: np.random.Generator, length: int, season: int, amplitude: int) -> Floats:
    def unscaled() -> Floats:
        place, half, number = _seasons(random, length, season)
        powers = np.minimum(place, 2 * half - 2 - place)  # it shrinks once or twice more often than it grew
        return np.asarray(random.uniform(2, 4, length)[number] * 1.3**powers)

    streams = [unscaled() for _ in range(STREAMS_OF_THE_PUBLIC_CODE)]
    return (streams[0] - 2) / np.max(streams) * amplitude + 2


def _seasons(random: np.random.Generator, length: int, season: int) -> tuple[Ints, Ints, Ints]:
    """For every step: its place in its season, half of that season's length, and the season's number."""
    sizes = np.zeros(length, dtype=np.int64)
    while (short := sizes < 4).any():
        sizes[short] = random.normal(season, 2, short.sum())
    ends, steps = np.cumsum(sizes), np.arange(length)
    number = np.searchsorted(ends, steps, side="right")
    return steps - (ends - sizes)[number], sizes[number] // 2, number


_SEASONAL = {"paper": _as_in_the_paper, "published-code": _as_in_the_public_code}


def _shape(length: int, bins: int, level: float) -> tuple[int, int]:
    _demand(length > 0 and bins > 0 and level >= 0, "length and bins must be above 0, and a level or rate not below")
    return length, bins


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise InputError(otherwise)
