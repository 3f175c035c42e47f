"""How fast is the noise? Times as ratios to numpy's float Laplace and to opendp, all from this one run.

    python benchmarks/noise.py

One vector of a wide stream (88,762 bins) at three scales, then the small calls that studies and thin streams make.

At scale 120 the ratio to numpy is 0.52, and 0.51 to 0.58 on a machine whose other core was busy. It was 1.17 while
every digit of a draw was tossed with a coin of its own; what brought it is a table that gives the eight digits that are
about even at once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from timeit import timeit

import numpy as np

from eventide.privacy import coins, noise

BINS = 88_762
SCALES = (1, 10, 120)
REPETITIONS = 60
NANO = 10**9


def best(*contenders: Callable[[], object], repetitions: int = REPETITIONS, calls: int = 1) -> list[float]:
    """The best seconds per call of each; the contenders alternate, so that a busy moment hits all alike."""
    rounds = [[timeit(call, number=calls) / calls for call in contenders] for _ in range(repetitions)]
    return [min(times) for times in zip(*rounds, strict=True)]


def vector(scale: int) -> str:
    secure, seeded, opendp, generator = noise.Secure(), noise.Seeded(1), noise.OpenDP(), np.random.default_rng(1)
    charge, shape = np.array([NANO // scale]), (BINS,)
    ours, studies, floats = best(
        lambda: secure.laplace(NANO, charge, shape),
        lambda: seeded.laplace(NANO, charge, shape),
        lambda: generator.laplace(0, scale, shape),
    )
    (theirs,) = best(lambda: opendp.laplace(NANO, charge, shape), repetitions=2)
    times = "".join(f"{1e3 * seconds:6.2f}ms" for seconds in (ours, studies, floats))
    return f"scale {scale:>6} {times}{1e3 * theirs:8.1f}ms{ours / floats:15.2f}{theirs / ours:28.0f}"


def small_calls() -> None:
    secure, seeded, fresh = noise.Secure(), noise.Seeded(1), itertools.count(10**7)
    replicas, one = np.full((100, 1), NANO // 10), np.array([NANO // 10])
    some = replicas * (np.arange(100)[:, None] % 2)
    cases: dict[str, Callable[[], object]] = {
        "secure, one draw": lambda: secure.laplace(NANO, one, (1,)),
        "seeded, 100 replicas": lambda: seeded.laplace(NANO, replicas, (100, 1)),
        "seeded, 50 of 100 replicas charged": lambda: seeded.laplace(NANO, some, (100, 1)),
        "probabilities of a new scale near 100": lambda: coins.laplace_expansions(NANO, next(fresh), 72),
        "probabilities of scale 10^16": lambda: coins.laplace_expansions(noise.LARGEST_SCALE, 1, 72),
    }
    for name, seconds in zip(cases, best(*cases.values(), repetitions=20, calls=200), strict=True):
        print(f"{name:<40}{1e6 * seconds:7.1f} microseconds")


if __name__ == "__main__":
    print(f"{BINS:,} draws   secure  seeded   numpy    opendp   secure/numpy (target 1.0)   opendp/secure")
    for scale in SCALES:
        print(vector(scale))
    small_calls()
