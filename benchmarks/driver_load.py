"""What one driver can carry: processor time, memory and bytes of a release, for ever more bins.

Counts come from memory, so this is what stays with the driver however many machines count: mechanism, ledger, store,
sink. `uniform` measures every bin at every step, which is the most that a mechanism can ask of it.

    python benchmarks/driver_load.py [--steps 4] [--bins 1000 100000 1000000]
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

import eventide as ev
from eventide.live.feeds.count_feed import MemoryFeed


def carried(bins: int, steps: int) -> tuple[float, float]:
    """Processor seconds and bytes of the release of a step."""
    chance = np.random.default_rng(1)
    rows = [chance.poisson(20, bins).astype(np.int64) for _ in range(steps)]
    mechanism = ev.mechanism("uniform", epsilon=1, window=3, bins=bins)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.jsonl"
        with ev.Publisher(MemoryFeed(rows), mechanism, Path(folder) / "store.db", [out]) as publisher:
            begin = time.process_time()
            publisher.run()
            used = time.process_time() - begin
        return used / steps, out.stat().st_size / steps


def main() -> None:
    parser = argparse.ArgumentParser(description="What one driver can carry.")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--bins", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    asked = parser.parse_args()
    for bins in asked.bins:
        seconds, size = carried(bins, asked.steps)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"{bins:9,} bins: {seconds:.4f} s of processor a step, {size / 1e6:.2f} MB a line, {most:.0f} MB in all")


if __name__ == "__main__":
    main()
