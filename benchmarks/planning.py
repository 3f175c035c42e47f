"""How long planning takes and what it brings, next to the planner `emd`: python benchmarks/planning.py [seeds].

Times are after warm-up; what compiling costs once is measured in a process with an empty cache. The published
workloads are averaged over seeds, the large ones are drawn once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time

import numpy as np

from eventide import windows
from eventide.bench.study.workloads import general, special
from eventide.windows.workload import Query

COMPILE = """
import time
from eventide import windows
from eventide.bench.study.workloads import special
for _ in range(2):
    start = time.perf_counter()
    windows.plan(special(0))
    print(time.perf_counter() - start)
"""


def compile_time() -> float:
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
        run = subprocess.run(
            [sys.executable, "-c", COMPILE], env=environment, capture_output=True, text=True, check=True
        )
    first, second = map(float, run.stdout.split())
    return first - second


def measure(queries: list[Query], horizon: int | None) -> list[float]:
    """Seconds and workload error of emd, then of best, and the error of sample-dp where it applies."""
    figures = []
    for planner in ("emd", "best"):
        start = time.perf_counter()
        plan = windows.plan(queries, planner=planner, horizon=horizon)
        figures += [time.perf_counter() - start, plan.cost]
    nested = horizon is None
    return [*figures, windows.plan(queries, planner="sample-dp").cost if nested else np.nan]


def main() -> None:
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"compiling, once: {compile_time():.1f} s\n")
    workloads: dict[str, list[tuple[list[Query], int | None]]] = {
        "special, 100 queries": [(special(seed), None) for seed in range(seeds)],
        "general, 100 queries, 10 steps": [(general(seed), 5_000) for seed in range(seeds)],
        "1,000 queries, 50 steps to 500": [(general(0, 1_000, 50, 500), 20_000)],
        "10,000 queries, 200 steps to 1,000": [(general(0, 10_000, 200, 1_000), 20_000)],
        "10,000 queries, 200 steps, 50,000": [(general(0, 10_000, 200, 1_000), 50_000)],
    }
    measure(*workloads["special, 100 queries"][0])
    print(f"{'workload':36}{'emd s':>8}{'best s':>8}{'best/emd error':>16}{'range':>14}{'best/dp error':>15}")
    for name, drawn in workloads.items():
        emd_time, emd_error, best_time, best_error, dp_error = np.array([measure(*each) for each in drawn]).T
        ratio, to_dp = best_error / emd_error, best_error / dp_error
        spread = f"{ratio.min():.2f}-{ratio.max():.2f}"
        times = f"{emd_time.mean():8.3f}{best_time.mean():8.3f}"
        against_dp = "-" if np.isnan(to_dp).any() else f"{to_dp.mean():.3f}"
        print(f"{name:36}{times}{ratio.mean():16.4f}{spread:>14}{against_dp:>15}")


if __name__ == "__main__":
    main()
