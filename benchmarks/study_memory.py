"""How much memory does a study of wide streams take? Every mechanism in a process of its own, next to the limit.

Prints processor time and peak memory of 100 repetitions of a stream of 1,300 steps and 3,000 bins (window 120, epsilon
1), which the runner splits into lots of equal size: on a sparse stream, and on one that stands still, where groups of
steps grow longest. Ends with 1 if any mechanism takes more than 2 GB.

    python benchmarks/study_memory.py [--repetitions 100] [--steps 1300] [--streams sparse-poisson,constant] [NAME ...]
"""

from __future__ import annotations

import argparse
import dataclasses
import multiprocessing
import resource
import sys
import time
from multiprocessing.connection import Connection

import eventide as ev
from eventide.bench import Study, load_study
from eventide.bench.run.runner import Runner
from eventide.bench.study.study import Facts, Setting, StudiedMechanism, StudiedStream

LIMIT = 2.0  # GB
BINS = 3000


def one_cell(study: Study, figures: Connection) -> None:
    """Run the study's only cell, and send processor seconds and peak memory in GB."""
    begin = time.process_time()
    Runner(study)([0])
    figures.send((time.process_time() - begin, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20))


def in_a_process_of_its_own(study: Study) -> tuple[float, float]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=one_cell, args=(study, theirs))
    process.start()
    theirs.close()
    seconds, peak = ours.recv()
    process.join()
    return seconds, peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--repetitions", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1300)
    parser.add_argument("--streams", default="sparse-poisson,constant")
    options = parser.parse_args()
    study = dataclasses.replace(
        load_study("quick"), repetitions=options.repetitions, settings=(Setting("wide", 1.0, 120),)
    )
    largest = 0.0
    for generator in options.streams.split(","):
        stream = StudiedStream("generator", generator, {"length": options.steps, "bins": BINS})
        facts = Facts.of(stream.prepared(stream.matrix()))
        wide = dataclasses.replace(study, streams=(stream,), facts={stream.label: facts})
        for name in options.names or ev.mechanism_names():
            seconds, peak = in_a_process_of_its_own(
                dataclasses.replace(wide, mechanisms=(StudiedMechanism(name, name, {}),))
            )
            largest = max(largest, peak)
            print(f"{generator:15} {name:20} {seconds:7.1f} s, peak {peak:.2f} GB (limit {LIMIT:g})", flush=True)
    sys.exit(largest > LIMIT)


if __name__ == "__main__":
    main()
