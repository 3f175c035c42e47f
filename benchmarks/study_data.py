"""Do the raw public events, counted by our own code, give the named streams of the data folder, cell by cell?

Prints for every named stream whether its raw events are at hand, whether the counts agree, and how long it took to
count; ends with 1 if any differ.

    python benchmarks/study_data.py [--data FOLDER]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

from eventide.streams.real import REAL_STREAMS, count_raw, data_folder, raw_file, read_real, why_missing


def agreement(name: str, folder: Path) -> bool:
    begin = time.perf_counter()
    counted = count_raw(name, folder)
    seconds = time.perf_counter() - begin
    stored = read_real(name, folder)
    agree = counted.bins == stored.bins and np.array_equal(counted.counts, stored.counts)
    steps, bins = counted.counts.shape
    verdict = "agree" if agree else "DIFFER"
    print(f"{name:20} {counted.counts.sum():,} events in {steps:,} steps and {bins:,} bins {verdict}; {seconds:.2f} s")
    return agree


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    folder = data_folder(parser.parse_args().data)
    agree = True
    for name in REAL_STREAMS:
        if folder is None or (missing := why_missing(name, folder)):
            print(missing if folder else why_missing(name, None))
        elif raw_file(name, folder) is None:
            print(f"{name:20} no raw events at hand; read as it was prepared")
        else:
            agree &= agreement(name, folder)
    sys.exit(not agree)


if __name__ == "__main__":
    main()
