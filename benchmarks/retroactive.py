"""What retroactive grouping brings to histograms of sliding windows, and what one publication costs.

Prints, for real streams and made-up ones, the mean squared error of the window's histogram as a ratio to that of noise
on every unit (event-level, epsilon 0.1, windows of 15 units), with groups of up to 4 and up to 16 units, and for noise
on every window. Then the time of one publication at 88,762 bins with 2.5 million events, as a ratio to one noise
vector of that width. A real stream that is not in the data folder is left out.

    python benchmarks/retroactive.py [--data FOLDER] [--steps 1000] [--seeds 3]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import eventide as ev
from eventide.arrays import Floats, Ints
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.retroactive_grouping import RetroactiveGrouping
from eventide.mechanisms.window_baselines import TimeUnitBaseline, WindowBaseline
from eventide.privacy.amounts import NANO
from eventide.streams.generators import level_shifts, random_walk
from eventide.streams.real import data_folder, read_real, why_missing

EPSILON, SPAN = 0.1, 15
REAL = ("taxi_porto", "tdrive_beijing", "retail_product_day")
BINS, EVENTS = 88_762, 2_500_000


def streams(data: Path | None, steps: int) -> Iterator[tuple[str, Ints]]:
    for name in REAL:
        if missing := why_missing(name, data):
            print(missing)
        elif data is not None:
            yield name, read_real(name, data).counts[:steps]
    yield "walk, moves up to 1", random_walk(500, bins=100, level=200, stride=1)
    yield "walk, moves up to 10", random_walk(500, bins=100, level=200, stride=10)
    yield "level shifts, every 100 units", level_shifts(500, bins=100, level=200)


def window_error(mechanism: Mechanism, counts: Ints) -> float:
    """The mean squared error of the histograms of all windows."""
    sums = np.cumsum(counts, axis=0)
    sums[SPAN:] -= sums[:-SPAN].copy()
    errors = [np.mean((released(mechanism, row) - true) ** 2) for row, true in zip(counts, sums, strict=True)]
    return float(np.mean(errors))


def released(mechanism: Mechanism, counts: Ints) -> Floats:
    histogram = mechanism.release(counts).window_values
    assert histogram is not None
    return histogram


def accuracy(data: Path | None, steps: int, seeds: int) -> None:
    print(f"squared error of windows over that of noise on every unit, epsilon {EPSILON}, span {SPAN}")
    print(f"{'stream':30}{'units':>6}{'bins':>7}{'groups to 4':>13}{'to 16':>8}{'noise on windows':>18}")
    for name, counts in streams(data, steps):
        common = {"epsilon": EPSILON, "bins": counts.shape[1], "span": SPAN}
        errors = np.zeros(4)
        for seed in range(seeds):
            mechanisms: list[Mechanism] = [
                TimeUnitBaseline(**common, seed=seed),
                RetroactiveGrouping(**common, seed=seed),
                RetroactiveGrouping(**common, max_group=16, seed=seed),
                WindowBaseline(**common, seed=seed),
            ]
            errors += [window_error(mechanism, counts) for mechanism in mechanisms]
        small, large, whole = errors[1:] / errors[0]
        print(f"{name:30}{counts.shape[0]:6}{counts.shape[1]:7}{small:13.2f}{large:8.2f}{whole:18.2f}", flush=True)


def speed() -> None:
    random = np.random.default_rng(1)
    shares = 1 / np.arange(1, BINS + 1)
    steps = random.multinomial(EVENTS, shares / shares.sum(), size=8)
    grouping, source = RetroactiveGrouping(epsilon=EPSILON, bins=BINS), ev.noise.Secure()
    charge = np.array([[9 * NANO // 100]])
    releases, vectors = [], []
    for index in range(40):
        begin = time.perf_counter()
        grouping.release(steps[index % len(steps)])
        middle = time.perf_counter()
        source.laplace(NANO, charge, (1, BINS))
        releases.append(middle - begin)
        vectors.append(time.perf_counter() - middle)
    release, vector = min(releases[8:]), min(vectors)
    print(f"\n{BINS:,} bins, {EVENTS:,} events: one exact noise vector {vector * 1e3:.2f} ms; one publication")
    print(f"{release * 1e3:.1f} ms (limit 60), ratio {release / vector:.1f}; middle {np.median(releases) * 1e3:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    accuracy(data_folder(options.data), options.steps, options.seeds)
    speed()


if __name__ == "__main__":
    main()
