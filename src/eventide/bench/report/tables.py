"""Tables of a report that need no comparison: streams, requirements, what else was measured, versions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.bench.report.compare import Change, Shift
from eventide.bench.report.field import Field
from eventide.bench.report.influence import Influence
from eventide.bench.reproduction.findings import Finding, Observed
from eventide.bench.reproduction.reference import WHY, Difference
from eventide.bench.run.results import Results
from eventide.display.drawings import TextTable, percent, shown

COVERAGE = "coverage"
MOST_CHANGES = 20


def streams_table(field: Field, results: Results) -> TextTable:
    """What each stream looks like; of one that is not public its shape alone."""
    rows = []
    for label, stream in field.streams.items():
        facts = results.about["streams"].get(label, {})
        numbers = [shown(facts.get(key, np.nan)) for key in ("least", "largest", "quantile_90")]
        zeros = percent(facts["zeros"]) if "zeros" in facts else "–"
        rows.append([stream.short, f"{facts.get('bins', 0):,}", f"{facts.get('steps', 0):,}", *numbers, zeros])
    return TextTable(["stream", "bins", "steps", "least count", "largest", "90 % quantile", "zeros"], rows)


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


def findings_table(found: Sequence[Finding]) -> TextTable:
    """The benchmark's findings next to ours."""
    with_reference = any(finding.reference for finding in found)
    rows = []
    for finding in found:
        reference = [_observed(finding.reference)] if with_reference else []
        rows.append([finding.published, *reference, _observed(finding.here), finding.why])
    return TextTable(["published", *(["its public code"] * with_reference), "here", "why we differ"], rows)


def differences_table(found: Sequence[Difference]) -> TextTable:
    """Our errors over those of the public code."""
    amplitudes = sorted({amplitude for each in found for amplitude in each.by_amplitude})
    rows = [
        [
            each.mechanism,
            shown(each.ratio),
            *(shown(each.by_amplitude.get(amplitude, np.nan)) for amplitude in amplitudes),
            f"{each.off} of {each.cells}",
            each.why,
        ]
        for each in found
    ]
    by_amplitude = [f"amplitude {amplitude:,g}" for amplitude in amplitudes]
    return TextTable(["mechanism", "ours / theirs", *by_amplitude, "cells off by more than 10 %", "why"], rows)


def reasons_table(field: Field) -> TextTable:
    """Why mechanisms differ from the benchmark's public code."""
    rows = [[name, WHY[name]] for name in dict.fromkeys(field.names) if name in WHY]
    return TextTable(["mechanism", "against the benchmark's public code"], rows)


def shifts_table(shifts: Sequence[Shift]) -> TextTable:
    """What changed, by mechanism."""
    headings = ["mechanism", "cells", "times the other error", "the same", "better", "worse", "unclear"]
    rows = [[s.mechanism, f"{s.cells:,}", shown(s.ratio), *map(str, s[3:])] for s in shifts]
    return TextTable(headings, rows)


def changes_table(field: Field, changes: Sequence[Change]) -> TextTable:
    """The cells that changed most, of those that did."""
    changed = [change for change in changes if change.kind in ("better", "worse")]
    changed.sort(key=lambda change: min(change.ratio, 1 / change.ratio) if change.ratio else 0.0)
    rows = [
        [
            each.mechanism,
            field.place(each.contest),
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


def _observed(seen: Observed | None) -> str:
    return "–" if seen is None else f"{'yes' if seen.holds else 'no'}: {seen.words}"
