"""The figures of the public code of the w-event benchmark, and why ours differ; plain numbers, no drawing.

A reference file has a row for each season, amplitude, epsilon, window and mechanism, with `mae_mean`.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eventide.bench.report.scores import Contest, ReportedStream, Scores
from eventide.bench.study.study import Setting
from eventide.display.drawings import TextTable, shown
from eventide.errors import InputError

OFF = 1.1  # a cell that differs by more than a tenth is counted

WHY = {
    "uniform": "The same mechanism; only the draws are others, and the streams, which are drawn anew or rounded.",
    "sample": "The same mechanism; it looks so rarely that it matters where in a season its looks fall.",
    "bd": "The same mechanism; its error is heavy-tailed, since late looks of a window are blurred.",
    "ba": "The same mechanism.",
    "fast": "The public code looks at 7.5 % of the steps, we at 15 % as the papers do; it takes one variance of the "
    "noise for every epsilon, we the true one; and it leaves one step of each block at 0.",
    "dsat": "The public code gives 85 % of epsilon to the test, and an integer division drives its threshold to 0 at "
    "once.",
    "rescuedp": "The public code takes the filter's process noise from the true stream, and knows no floor below which "
    "a look waits, so that its errors explode at large amplitudes.",
    "adapub": "The public code overwrites the noisy deviation, so that every step is a group of its own: Uniform with "
    "80 % of the budget.",
    "pegasus": "The public code opens a new group at every step: Uniform with 80 % of the budget.",
}


class Difference(NamedTuple):
    """A mechanism's mean absolute error here over that of the reference: geometric means over all and by amplitude."""

    mechanism: str
    cells: int
    ratio: float
    by_amplitude: dict[float, float]
    off: int
    why: str


def differences(scores: Scores, reference: Scores) -> list[Difference]:
    """Our errors over those of the reference, mechanism by mechanism."""
    if scores.metric != "mae":
        raise InputError(f"the reference holds mean absolute errors; it cannot be compared by {scores.metric}")
    theirs = _by_parameters(reference)
    found = []
    for name, why in WHY.items():
        pairs = [
            (parameters, mean / theirs[parameters, name])
            for (parameters, label), mean in _by_parameters(scores).items()
            if label == name and (parameters, name) in theirs
        ]
        if pairs:
            logs = np.log([ratio for _, ratio in pairs])
            amplitudes = np.array([parameters[1] for parameters, _ in pairs])
            by_amplitude = {float(a): float(np.exp(logs[amplitudes == a].mean())) for a in np.unique(amplitudes)}
            off = int((np.abs(logs) > np.log(OFF)).sum())
            found.append(Difference(name, len(pairs), float(np.exp(logs.mean())), by_amplitude, off, why))
    if not found:
        raise InputError("the reference and these results have no cell in common; compare by season and amplitude")
    return found


def read_reference(path: str | Path) -> Scores:
    """The figures of the public code as scores of their own."""
    try:
        with Path(path).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        cells = {(_reference_contest(row), row["mechanism"]): float(row["mae_mean"]) for row in rows}
    except (OSError, UnicodeDecodeError, KeyError, ValueError, TypeError):
        cells = {}
    if not cells:
        needed = "season, amplitude, epsilon, window, experiment, mechanism, mae_mean"
        raise InputError(f"{path} is no reference; give a CSV file with the columns {needed}")
    contests = tuple(dict.fromkeys(contest for contest, _ in cells))
    mechanisms = tuple(dict.fromkeys(mechanism for _, mechanism in cells))
    means = np.array([[cells.get((contest, each), np.nan) for each in mechanisms] for contest in contests])
    streams = {contest.stream: _reference_stream(contest.stream) for contest in contests}
    return Scores("mae", 0, mechanisms, mechanisms, streams, contests, means, np.full(means.shape, np.nan))


def _reference_contest(row: dict[str, str]) -> Contest:
    setting = Setting(row["experiment"], float(row["epsilon"]), int(row["window"]))
    return Contest(f"season={int(row['season'])} amplitude={int(row['amplitude'])}", setting)


def _reference_stream(label: str) -> ReportedStream:
    parameters = {key: int(value) for key, value in (part.split("=") for part in label.split())}
    return ReportedStream("seasonal", parameters, label)


def _by_parameters(scores: Scores) -> dict[tuple[tuple[float, float, float, int], str], float]:
    """Mean errors by season, amplitude, epsilon and window, and mechanism, over all experiments that hold that cell."""
    found: dict[tuple[tuple[float, float, float, int], str], list[float]] = {}
    for contest, means in zip(scores.contests, scores.means, strict=True):
        given = scores.described(contest)
        if {"season", "amplitude"} <= given.keys():
            key = (given["season"], given["amplitude"], contest.setting.epsilon, contest.setting.window)
            for label, mean in zip(scores.mechanisms, means, strict=True):
                found.setdefault((key, label), []).append(float(mean))
    return {key: float(np.mean(means)) for key, means in found.items() if not np.isnan(means).any()}


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


def reasons_table(scores: Scores) -> TextTable:
    """Why mechanisms differ from the benchmark's public code."""
    rows = [[name, WHY[name]] for name in dict.fromkeys(scores.names) if name in WHY]
    return TextTable(["mechanism", "against the benchmark's public code"], rows)
