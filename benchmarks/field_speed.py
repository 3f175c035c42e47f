"""How fast each mechanism is: many replicas of one bin, and one wide release, next to Uniform in the same run.

python benchmarks/field_speed.py [--replicas 2000] [--steps 1000] [--bins 10000]
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import eventide as ev


def replicas_seconds(name: str, replicas: int, steps: int) -> float:
    """The better of two runs of `replicas` streams, one each, after a warm-up."""
    streams = np.random.default_rng(1).poisson(50, (replicas, steps, 1))
    times = []
    for length in (20, steps, steps):
        mechanism = ev.mechanism(name, epsilon=1, window=120, bins=1, replicas=replicas, seed=3)
        begin = time.perf_counter()
        ev.run(mechanism, streams[:, :length])
        times.append(time.perf_counter() - begin)
    return min(times[1:])


def wide_milliseconds(name: str, bins: int) -> float:
    """The slowest release among 30 with secure noise, after a warm-up: looks are slower than repeats."""
    generator = np.random.default_rng(2)
    mechanism = ev.mechanism(name, epsilon=1, window=120, bins=bins)
    times = []
    for step in range(40):
        counts = generator.poisson(20, bins) + 500 * (step % 3 == 0)
        begin = time.perf_counter()
        mechanism.release(counts)
        times.append(time.perf_counter() - begin)
    return 1e3 * max(times[10:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replicas", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--bins", type=int, default=10_000)
    options = parser.parse_args()
    print(f"{'mechanism':20}{'replicas, s':>12}{'/ uniform':>11}{'wide, ms':>10}")
    uniform = replicas_seconds("uniform", options.replicas, options.steps)
    for name in ev.mechanism_names():
        seconds = replicas_seconds(name, options.replicas, options.steps)
        print(f"{name:20}{seconds:12.2f}{seconds / uniform:11.1f}{wide_milliseconds(name, options.bins):10.1f}")


if __name__ == "__main__":
    main()
