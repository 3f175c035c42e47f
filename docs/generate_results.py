"""Runs the project's comparison studies and writes `docs/results/`: tables, verdicts and pictures, one command for all.

    python docs/generate_results.py --data DIR

DIR holds the real streams (or the variable EVENTIDE_DATA names it; docs/how-to/studies.md says what it looks like).
The studies are the TOML files in `docs/results/`. Results are kept in `--work`, and a run that was interrupted goes on
from there; delete that folder to begin anew. Needs the extra `plots`. Imports eventide's own runner and report, and
nothing that draws by itself.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from eventide.bench import build_report, read_results
from eventide.bench.report.page import Report
from eventide.bench.run.results import Results
from eventide.display.drawings import Figure, TextTable, shown
from eventide.display.images import draw

FOLDER = Path(__file__).parent / "results"
STUDIES = ("artificial", "real")
KINDS = {"ranking": "The ranking", "overview": "By stream", "effect": "Tide against the best of the others"}

HEAD = """# Comparison of all mechanisms

Two studies, each with every mechanism that publishes counts at each step: on the artificial streams of the w-event
benchmark (Schaeler, Huetter, Schaeler 2022) and on real streams. The sentences are those of `eventide report`, computed
from the figures; where they are about "the others", [Tide](../tide.md), which is ours, is left out. Ratios are mean
absolute errors divided by the best of the same cell, a stream under one setting of epsilon and w.

Both are made again by one command, `python docs/generate_results.py --data DIR`, which goes on where it was stopped;
DIR holds [the real streams](../how-to/studies.md#what-comes-with-eventide). What is run stands in
[artificial.toml](artificial.toml) and [real.toml](real.toml), and `eventide report` makes an interactive page of the
same results, with a curve for each stream.

How to read the figures:

* **220 cells are 200 different ones.** Epsilon 1 with w 120 stands in both experiments, as one that varies epsilon
  and one that varies w; it is measured in each with noise of its own, and counts twice. Of the 143 cells of the real
  streams 130 are different.
* **The artificial streams are one draw.** All 20 have the generator's seed 0: those of one season are the same shape
  at four sizes, and all seasons have the same sequence of peaks. The intervals are a bootstrap that takes streams for
  independent, so they say how much depends on which of these streams are looked at, and nothing about other draws.
* **An amplitude is a name.** In the variant of the public code, *amplitude 1,000* is a stream whose largest count is
  611 (602 at a season of 40), *10,000* one with 6,093 and *10* one with 8; at a season of 120 that is 3 or less in 94
  % of steps.
* **A worst cell is the largest of many noisy ratios.** 1.39 is 1.324 / 0.953 with standard errors of 0.105 and 0.057;
  with the seeds 2 and 3 the same cell, also of 50 repetitions, gives 1.12 and 1.02.
* [Tide's page](../tide.md) has figures of a study of its own on the same streams: 100 repetitions, and for the
  opponents those of the public code, whose mechanisms [differ from
  ours](../explanation/what-we-found.md#other-figures-of-the-public-code). 0.635 there and 0.641 here are two
  measurements; this page has all mechanisms as eventide runs them.
"""


def main() -> None:
    """Run, report and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("EVENTIDE_DATA"), help="folder of the real streams")
    parser.add_argument("--work", type=Path, default=Path("results-work"), help="where results are kept")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the folder of the real streams with --data or EVENTIDE_DATA")
    options.work.mkdir(parents=True, exist_ok=True)
    parts = [HEAD]
    for name in STUDIES:
        results = read_results(run(name, options.data, options.work))
        parts.append(section(name, results, build_report(results)))
    (FOLDER / "index.md").write_text("\n".join(parts), encoding="utf-8")


def run(name: str, data: Path, work: Path) -> Path:
    """The results of a study, from the folder of work if they are there."""
    study, out = FOLDER / f"{name}.toml", work / f"{name}.parquet"
    if not out.exists():
        command = [sys.executable, "-m", "eventide", "bench", str(study), "--out", str(out), "--data", str(data)]
        subprocess.run(command, check=True)
    return out


def section(name: str, results: Results, report: Report) -> str:
    """The part of the page about one study; its pictures are written beside the page."""
    study = tomllib.loads(results.about["text"])
    ranks = TextTable(
        ["mechanism", "times the best", "95 % interval", "worst cell", "best in", "as good as the best in"],
        [
            [rank.mechanism, shown(rank.typical), interval(rank.low, rank.high), shown(rank.worst),
             f"{rank.best} of {rank.cells}", f"{rank.as_good}"]
            for rank in report.ranking
        ],
    )  # fmt: skip
    title = study["title"]
    lines = [f"## {title}", "", f"{study['repetitions']} repetitions of each cell, seed {study['seed']}.", ""]
    lines += [*(f"* {sentence}" for sentence in report.verdict), "", *markdown(ranks), ""]
    for kind, words in KINDS.items():
        lines += [f"![{words}: {title.lower()}]({picture(name, kind, report.figures)})", ""]
    return "\n".join(lines)


def picture(name: str, kind: str, figures: Sequence[Figure]) -> str:
    """Paint the figure of a kind; its file name."""
    (figure,) = [figure for figure in figures if figure.name == kind]
    file = f"{name}-{kind}.png"
    draw(figure.title, figure.charts).savefig(FOLDER / file, dpi=90)
    return file


def interval(low: float, high: float) -> str:
    """Both ends, where they are known."""
    return "" if np.isnan(low) else f"{shown(low)} to {shown(high)}"


def markdown(table: TextTable) -> list[str]:
    """A table as lines of Markdown."""
    rule = ["---"] * len(table.headings)
    return [f"| {' | '.join(cells)} |" for cells in (table.headings, rule, *table.rows)]


if __name__ == "__main__":
    main()
