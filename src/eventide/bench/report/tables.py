"""Tables of a report that need no comparison: streams, requirements, what else was measured, versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.bench.report.comparisons import Change, Influence, Shift
from eventide.bench.report.scores import Scores
from eventide.bench.run.results import Results
from eventide.display.drawings import TextTable, percent, shown

COVERAGE = "coverage"
MOST_CHANGES = 20


def streams_table(scores: Scores, results: Results) -> TextTable:
    """What each stream looks like; of one that is not public its shape alone."""
    rows = []
    for label, stream in scores.streams.items():
        facts = results.about["streams"].get(label, {})
        numbers = [shown(facts.get(key, np.nan)) for key in ("least", "largest", "quantile_90")]
        zeros = percent(facts["zeros"]) if "zeros" in facts else "–"
        rows.append([stream.short, f"{facts.get('bins', 0):,}", f"{facts.get('steps', 0):,}", *numbers, zeros])
    return TextTable(["stream", "bins", "steps", "least value", "largest", "90 % quantile", "0 or no data"], rows)


def requirements_table(results: Results) -> TextTable:
    """The benchmark's requirements, those that are not met first."""
    found = sorted(results.about["requirements"], key=lambda requirement: requirement["met"])
    rows = [[each["code"], "met" if each["met"] else "NOT MET", each["sentence"]] for each in found]
    return TextTable(["requirement", "", "here"], rows)


def other_metrics_table(results: Results, metric: str) -> TextTable:
    """The mean over all cells of everything else that was measured."""
    values = _by_mechanism(results)
    metrics = list(dict.fromkeys(each for _, each in values if each not in (metric, COVERAGE)))
    mechanisms = dict.fromkeys(mechanism for mechanism, _ in values)
    rows = [
        [mechanism, *(shown(float(np.mean(values.get((mechanism, each)) or [np.nan]))) for each in metrics)]
        for mechanism in mechanisms
    ]
    return TextTable(["mechanism", *metrics], rows if metrics else [])


def coverage_table(results: Results) -> TextTable:
    """How often intervals hold the truth; no rows where no mechanism gives any."""
    rows = [
        [mechanism, shown(float(np.mean(each))), shown(min(each)), shown(max(each))]
        for (mechanism, metric), each in _by_mechanism(results).items()
        if metric == COVERAGE and each
    ]
    return TextTable(["mechanism", "coverage", "in the worst cell", "in the best cell"], rows)


def influence_table(found: Sequence[Influence]) -> TextTable:
    """What each parameter changes."""
    rows = [[i.parameter, i.weight.value, shown(i.factor), percent(i.same_winner), f"{i.pairs:,}"] for i in found]
    return TextTable(["parameter", "", "factor", "same winner", "pairs of cells"], rows)


def shifts_table(shifts: Sequence[Shift]) -> TextTable:
    """What changed, by mechanism."""
    headings = ["mechanism", "cells", "times the other error", "the same", "better", "worse", "unclear"]
    rows = [[s.mechanism, f"{s.cells:,}", shown(s.ratio), *map(str, s[3:])] for s in shifts]
    return TextTable(headings, rows)


def changes_table(scores: Scores, changes: Sequence[Change]) -> TextTable:
    """The cells that changed most, of those that did."""
    changed = [change for change in changes if change.kind in ("better", "worse")]
    changed.sort(key=lambda change: min(change.ratio, 1 / change.ratio) if change.ratio else 0.0)
    rows = [
        [
            each.mechanism,
            scores.place(each.contest),
            each.kind,
            shown(each.ratio),
            f"{shown(each.low)} to {shown(each.high)}",
        ]
        for each in changed[:MOST_CHANGES]
    ]
    return TextTable(["mechanism", "cell", "", "times the other error", "interval"], rows)


def versions_table(results: Sequence[Results]) -> TextTable:
    """Of what and with what each of the results was made."""
    facts = [_facts(each) for each in results]
    names = dict.fromkeys(name for each in facts for name in each)
    columns = ["here"] if len(facts) == 1 else ["these results", "the other ones"]
    return TextTable(["", *columns], [[name, *(each.get(name, "–") for each in facts)] for name in names])


def _facts(results: Results) -> dict[str, str]:
    about: dict[str, Any] = results.about
    rows = results.table.num_rows
    repetitions = str(results.table["repetitions"][0]) if rows else "–"
    return {
        "study": about["study"],
        "seed": str(about["seed"]),
        "repetitions": repetitions,
        **about["versions"],
        "fingerprint": about["fingerprint"][:12],
    }


def _by_mechanism(results: Results) -> dict[tuple[str, str], list[float]]:
    """The means of all cells by mechanism and metric, where they exist."""
    found: dict[tuple[str, str], list[float]] = {}
    columns = (results.table[name].to_pylist() for name in ("mechanism", "metric", "mean"))
    for mechanism, metric, mean in zip(*columns, strict=True):
        found.setdefault((mechanism, metric), []).extend([] if mean is None else [mean])
    return found
