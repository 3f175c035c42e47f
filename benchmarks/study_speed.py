"""How fast is the benchmark's artificial study?

Prints, for each mechanism, the time of one setting (20 streams of 1,000 steps, all repetitions, one process); then the
runs per second of the whole study, next to the public Java code's 280 seconds for its 198,000 runs on two cores.

On a quiet machine of two cores it is 24 times as fast (wanted: 20), 11.6 s by the clock and 22 of processors. What
limits it: nothing stands out in a profile. Nearly half is the fixed price of many calls of numpy: with 40 runs instead
of 2,000 a step still took 0.13 ms. Checks and copies that are left out save a microsecond or two each. Noise from one
uniform number instead of two exponential ones, tried in the same runs, saved no more than a hundredth. Runs of several
epsilons side by side would save a third; they need ledgers and mechanisms that have more than one.

    python benchmarks/study_speed.py [--processes 2] [--repetitions 100]
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import tempfile
import time
from pathlib import Path

from eventide.bench import Study, load_study, run_study
from eventide.bench.run.runner import Runner, batches_of

JAVA_RUNS_PER_SECOND = 198_000 / 280


def one_setting(study: Study) -> None:
    runner = Runner(study)
    for batch in batches_of(study):
        cell = study.cells[batch.cells[0]]
        if cell.setting == study.settings[-1]:
            begin = time.perf_counter()
            runner(batch.cells)
            seconds = time.perf_counter() - begin
            runs = len(batch.cells) * study.repetitions
            print(f"{cell.mechanism.label:10} {seconds:6.2f} s for {runs:,} runs, {runs / seconds:8,.0f} a second")


def whole(study: Study, processes: int) -> None:
    """Processor seconds tell what the study costs also where the machine is shared; two cores halve them at best."""
    with tempfile.TemporaryDirectory() as folder:
        begin, before = time.perf_counter(), processor_seconds()
        run_study(study, Path(folder) / "results.parquet", processes)
        seconds, worked = time.perf_counter() - begin, processor_seconds() - before
    runs = len(study.cells) * study.repetitions
    ratio = runs / seconds / JAVA_RUNS_PER_SECOND
    print(f"whole study, {processes} processes: {runs:,} runs in {seconds:.1f} s, {runs / seconds:,.0f} a second,")
    print(f"{ratio:.1f} times the public Java code; {worked:.1f} processor seconds")


def processor_seconds() -> float:
    """Of this process and of those that it has started and seen end."""
    used = [resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=100)
    options = parser.parse_args()
    study = dataclasses.replace(load_study("paper-artificial"), repetitions=options.repetitions)
    one_setting(study)
    whole(study, options.processes)


if __name__ == "__main__":
    main()
