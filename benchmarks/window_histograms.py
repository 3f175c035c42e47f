"""Histograms of the last steps: retroactive grouping, a plan of window queries, or sums of releases?

Prints, for three real streams and two made-up ones, spans of 5 to 60 steps, with epsilon 1 at event level (w = 1) and
for windows of 15 steps, three figures: the mean absolute error of a bin of the histogram at a step, the mean relative
error (the divisor is at least 1), and the mean absolute error of the 20 largest bins. The level is the mean of the true
histograms, of all bins and of the 20 largest: the absolute error of nothing but zeros. All are rounded to whole counts
from 0 up. A plan is asked at every step, and at every fifth of the span; in between its last answer stands. The sums
are those of releases without a filter of the command line. Of a wide stream the bins with most events take part. A real
stream that is not in the data folder is left out.

    python benchmarks/window_histograms.py [--data FOLDER] [--steps 300] [--bins 1000] [--repetitions 5] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.bench.run.histograms import LARGEST, PLAN, HistogramRun
from eventide.streams.generators import level_shifts, sparse_poisson
from eventide.streams.real import data_folder, read_real, why_missing

EPSILON, WINDOWS = 1.0, (1, 15)
SPANS = (5, 15, 30, 60)
REAL = ("kosarak_head", "retail_product_day", "taxi_porto")


def streams(data: Path | None, steps: int, bins: int) -> Iterator[tuple[str, Ints]]:
    for name in REAL:
        if missing := why_missing(name, data):
            print(missing)
        elif data is not None:
            yield name, by_size(read_real(name, data).counts[:steps])[:, :bins]
    yield "level shifts", level_shifts(steps, bins=300, level=50)
    yield "rare events", sparse_poisson(steps, bins=1000, rate=0.5)


def by_size(counts: Ints) -> Ints:
    """The bins with most events first."""
    return counts[:, np.argsort(-counts.sum(axis=0), kind="stable")]


def field(span: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Who takes part, by label, name and parameters."""
    yield "rg", "rg", {}
    yield "rg max_group=16", "rg", {"max_group": 16}
    yield "rg-baseline", "rg-baseline", {}
    yield "rg-window-baseline", "rg-window-baseline", {}
    yield "plan, every step", PLAN, {}
    yield "plan, every fifth", PLAN, {"step": span // 5}
    yield "sum of uniform", "uniform", {}
    yield "sum of tide", "tide", {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--bins", type=int, default=1000)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--json", type=Path, help="keep the figures here, too")
    options = parser.parse_args()
    kept = []
    for name, counts in streams(data_folder(options.data), options.steps, options.bins):
        for window in WINDOWS:
            print(f"\n{name}: {len(counts)} steps, {counts.shape[1]} bins, epsilon {EPSILON:g}, w = {window}")
            print(f"{'':20}" + "".join(f"{f'span {span}':>23}" for span in SPANS))
            large = by_size(counts)[:, :LARGEST].mean()
            print(f"{'level':20}" + "".join(f"{span * counts.mean():9.3g}{span * large:14.3g}" for span in SPANS))
            for number, (label, *_) in enumerate(field(SPANS[0])):
                cells = []
                for span in SPANS:
                    _, who, parameters = list(field(span))[number]
                    run = HistogramRun(who, parameters, counts, span, EPSILON, window, options.repetitions, seed=1)
                    errors = {kind: float(each.mean()) for kind, each in run.errors()._asdict().items()}
                    cells.append(f"{errors['absolute']:9.3g}{errors['relative']:7.3g}{errors['of_largest']:7.3g}")
                    kept.append({"stream": name, "window": window, "span": span, "who": label} | errors)
                    if options.json:
                        options.json.write_text(json.dumps(kept))
                print(f"{label:20}{''.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
