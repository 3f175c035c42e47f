"""What a release costs, as a ratio to the noise vector it needs at the least.

Prints, in one run: one release of Uniform, BD and BA at 88,762 bins over one exact noise vector of that width; 100
replicas of BA over 1,000 steps of one bin; 2,000 replicas with a stream each; and the memory of a million steps.

    python benchmarks/releases.py [--steps 1000000]
"""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Callable

import numpy as np

import eventide as ev
from eventide.privacy.amounts import NANO

BINS = 88_762


def best(action: Callable[[], object], repeats: int) -> float:
    """The shortest of several times, in seconds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def wide_releases() -> None:
    counts = np.random.default_rng(1).poisson(3, BINS)
    source = ev.noise.Secure()
    names = {"uniform": 2.0, "bd": 4.0, "ba": 4.0}
    mechanisms = {name: ev.mechanism(name, epsilon=1, window=120, bins=BINS) for name in names}
    for mechanism in mechanisms.values():
        mechanism.release(counts)
    noise = best(lambda: source.laplace(120 * NANO, np.array([[NANO]]), (1, BINS)), 20)
    print(f"one exact noise vector of {BINS:,} draws at scale 120: {noise * 1e3:.2f} ms")
    for name, limit in names.items():
        mechanism = mechanisms[name]
        looks: list[float] = []
        quiet: list[float] = []
        for step in range(40):
            jumped = counts + 2000 * (step % 2)  # far enough to make BD and BA look
            begin = time.perf_counter()
            release = mechanism.release(jumped)
            (looks if release.fresh else quiet).append(time.perf_counter() - begin)
        line = f"{name:8} a look {min(looks) * 1e3:.2f} ms, ratio {min(looks) / noise:.2f} (limit {limit:g})"
        print(line + (f"; a repeat {min(quiet) * 1e3:.2f} ms" if quiet else ""))


def many_replicas() -> None:
    generator = np.random.default_rng(2)
    one, many = generator.poisson(50, (1000, 1)), generator.poisson(50, (2000, 1000, 1))

    def study(matrix: np.ndarray[tuple[int, ...], np.dtype[np.int64]], replicas: int) -> None:
        ev.run(ev.BudgetAbsorption(epsilon=1, window=120, bins=1, replicas=replicas, seed=3), matrix)

    study(one[:10], 100)
    few = best(lambda: study(one, 100), 3)
    all_own = best(lambda: study(many, 2000), 2)
    print(f"BA, 100 replicas, 1,000 steps of one bin: {few:.3f} s (limit 0.3)")
    print(f"BA, 2,000 replicas with a stream each: {all_own:.3f} s, ratio {all_own / few:.2f} (limit 4)")


def long_stream(steps: int) -> None:
    mechanism = ev.BudgetAbsorption(epsilon=1, window=120, bins=10)
    streams = np.random.default_rng(4).poisson(30, (1000, 10))
    tracemalloc.start()
    sizes = []
    for _ in range(10):
        for step in range(steps // 10):
            mechanism.release(streams[step % 1000])
        sizes.append(tracemalloc.get_traced_memory()[0] // 1024)
    tracemalloc.stop()
    print(f"memory held after each tenth of {steps:,} steps, in KiB: {sizes}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    options = parser.parse_args()
    wide_releases()
    many_replicas()
    long_stream(options.steps)


if __name__ == "__main__":
    main()
