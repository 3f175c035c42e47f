"""How many due answers a second a plan at work gives, next to a limit: python benchmarks/answering.py [rounds].

The limit is what numpy needs for the same windows without privacy: one cumulative sum over the ticks, two looks into it
for each window, and the list of windows. Ticks are pushed in arrays, in one go or a hundred at a time, with secure and
with seeded noise; times are the shortest of several rounds, after warm-up.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np

from eventide import windows
from eventide.arrays import Ints
from eventide.bench.study.workloads import general, special
from eventide.windows.answering.schedule import Schedule
from eventide.windows.plans import Plan
from eventide.windows.workload import Query


def shortest(action: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def without_privacy(plan: Plan, counts: Ints) -> int:
    """Every due answer, exact; how many there are."""
    kind, begin, end = Schedule(plan.workload).ending(0, len(counts))
    sums = np.concatenate([np.zeros((1, *counts.shape[1:]), dtype=np.int64), np.cumsum(counts, axis=0)])
    which = np.repeat(np.arange(len(kind)), plan.workload.count[kind])
    return len((sums[end] - sums[begin])[which])


def measure(name: str, plan: Plan, counts: Ints, rounds: int) -> None:
    bins = None if counts.ndim == 1 else counts.shape[1]

    def pushed(pieces: int, seed: int | None) -> Callable[[], object]:
        parts = np.array_split(counts, pieces)
        return lambda: [answers.push_many(part) for answers in [plan.start(bins=bins, seed=seed)] for part in parts]

    due = without_privacy(plan, counts)
    limit = due / shortest(lambda: without_privacy(plan, counts), rounds)
    print(f"{name}: {due:,} due answers from {len(counts):,} ticks, {plan.planner!r}")
    print(f"  {'without privacy, numpy cumulative sum':44}{limit:14,.0f} a second")
    for what, pieces, seed in [
        ("all at once, secure noise", 1, None),
        ("100 ticks at a time, secure noise", -(-len(counts) // 100), None),
        ("all at once, seeded noise", 1, 1),
        ("100 ticks at a time, seeded noise", -(-len(counts) // 100), 1),
    ]:
        speed = due / shortest(pushed(pieces, seed), rounds)
        print(f"  {what:44}{speed:14,.0f} a second, {speed / limit:.3f} of that")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    random = np.random.default_rng(0)
    workload = windows.plan(general(0), planner="best", horizon=5_000)
    measure("general, 10 steps (target 100,000)", workload, random.poisson(20, 5_000), rounds)
    measure("the same", windows.plan(general(0), planner="emd", horizon=5_000), random.poisson(20, 5_000), rounds)
    measure("special", windows.plan(special(0)), random.poisson(20, 102_400), rounds)
    minute = windows.plan([Query(60, 1), Query(1_440, 60)])
    measure("last hour every minute, last day every hour", minute, random.poisson(20, 100_000), rounds)
    measure("general, 200 bins", workload, random.poisson(20, (5_000, 200)), rounds)
    answers = workload.start()
    begin = time.perf_counter()
    for count in random.poisson(20, 1_000):
        answers.push(count)
    print(f"one tick at a time, general: {(time.perf_counter() - begin) * 1e3:.0f} us a tick")


if __name__ == "__main__":
    main()
