"""What people wait for at the command line: a choice on 1,000 steps, and an audit of a class that knows no replicas.

Each is timed in one process and with one a core, in the same run, with the same outcome, by the clock and in processor
seconds, which say more where others use the machine too. On a quiet machine of two cores: 10 s and 8 s for the choice
(wanted: 20), nearly all of it Tide, and 44 s and 30 s for the audit (wanted: 60). What limits the audit is the class:
about five sixths of its time are 1.6 million runs, and of these about four fifths its own, for building it and for its
`release`; the rest checks and keeps what it says.

    python benchmarks/waiting.py [--steps 1000] [--bins 20] [--runs 200000]
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from eventide.audit import audit_mechanism
from eventide.bench import choose, describe


class Plain:
    """Whole-numbered noise, the same at every step: what somebody writes in five lines."""

    def __init__(self, epsilon: float, window: int, bins: int, seed: int) -> None:
        self._generator, self._bins = np.random.default_rng(seed), bins
        self._success = 1 - np.exp(-epsilon / window)

    def release(self, counts: np.ndarray) -> np.ndarray:
        """Counts and noise."""
        draws = self._generator.geometric(self._success, (2, self._bins))
        released: np.ndarray = counts + draws[0] - draws[1]
        return released


def timed(what: str, work: Callable[[int], Any], target: int) -> None:
    cores = os.cpu_count() or 1
    told, outcomes = [], []
    for processes in (1, cores):
        begin, used = time.perf_counter(), processor_seconds()
        outcomes.append(work(processes))
        clock, worked = time.perf_counter() - begin, processor_seconds() - used
        told.append(f"{processes}: {clock:.1f} s ({worked:.1f} of processors)")
    assert outcomes[0] == outcomes[1]
    print(f"{what:<50} processes {', '.join(told)}; target {target} s", flush=True)


def processor_seconds() -> float:
    """Of this process and of those that it has started."""
    for worker in multiprocessing.active_children():  # which have nothing left to do, but may not have ended yet
        worker.join()
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--bins", type=int, default=20)
    parser.add_argument("--runs", type=int, default=200_000)
    given = parser.parse_args()
    history = describe(level=400, amplitude=100, season=144, steps=given.steps, bins=given.bins)
    timed(
        f"choose, {given.steps:,} steps of {given.bins} bins",
        lambda processes: choose(history, epsilon=1, window=120, processes=processes).candidates,
        target=20,
    )
    timed(
        f"audit of a plain class, {given.runs:,} runs",
        lambda processes: audit_mechanism(Plain, 1.0, 3, 3, runs=given.runs, processes=processes),
        target=60,
    )


if __name__ == "__main__":
    main()
