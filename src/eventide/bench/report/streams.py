"""The streams behind a report, read again: what zeros would cost, and releases next to true counts.

True counts are shown of generated streams, and of others only if the user says that they are public. What is shown must
be what was studied: a stream with another digest is left out, and so is a cell that now gives another mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.bench.report.scores import Contest, contest_of
from eventide.bench.run.results import Results
from eventide.bench.run.runner import LARGEST_RUN, LONGEST_RUN, releases
from eventide.bench.study.custom_mechanisms import is_custom
from eventide.bench.study.metrics import MetricOptions, MetricTally, StepBlock
from eventide.bench.study.study import Cell, Facts, StudiedMechanism, StudiedStream, Study
from eventide.errors import EventideError, InputError
from eventide.streams.generators import GENERATORS
from eventide.streams.real import data_folder


class Shown(NamedTuple):
    """A cell's first repetition: totals over all bins, true and released, step by step; and its error.

    interval: the ends of the mechanism's own intervals `(T, 2)`, where it gives them; a total of several bins has none.
    """

    mechanism: str
    truth: Ints
    released: Floats
    error: float
    interval: Floats | None


@dataclass(frozen=True)
class ShownStreams:
    """The counts of all streams that may be shown, by label; `skipped` says why some of them cannot be."""

    results: Results
    metric: str
    counts: dict[str, Ints]
    skipped: tuple[str, ...]

    def errors_of_zeros(self) -> dict[str, float]:
        """By stream, the error of releasing zeros for ever."""
        return {label: self._error_of_zeros(counts) for label, counts in self.counts.items()}

    def released(self, contest: Contest, mechanism: str) -> Shown | None:
        """Run a cell again; None if it cannot be, or is not the one in the results."""
        row = self._rows.get((contest.stream, contest.setting, mechanism))
        truth = self.counts[contest.stream]
        if row is None or is_custom(row["mechanism_name"]) or _is_too_large(truth, row["repetitions"]):
            return None
        study = _study(self.results, row["repetitions"])
        cell = Cell(_mechanism(row), _stream(row, Path()), contest.setting)
        tally = self._tally(truth, study.repetitions, contest.setting.epsilon, contest.setting.window)
        released, intervals = [], []
        try:
            for block in releases(study, [cell], truth[None], 0, study.repetitions):
                tally.add(block)
                released.append(block.released[:, 0, 0].sum(axis=1))
                if block.interval is not None and truth.shape[1] == 1:
                    intervals.append(block.interval[:, :, 0, 0, 0])
        except EventideError:
            return None  # a mechanism that this version does not know, or not with these parameters
        errors = tally.figures()[self.metric][0]
        if not np.isclose(errors.mean(), row["mean"], rtol=1e-9):
            return None
        interval = np.concatenate(intervals) if intervals else None
        return Shown(mechanism, truth.sum(axis=1), np.concatenate(released), float(errors[0]), interval)

    def _error_of_zeros(self, counts: Ints) -> float:
        zeros = np.zeros((len(counts), 1, 1))
        tally = self._tally(counts, 1, 1.0, 1)
        tally.add(StepBlock(0, counts[:, None, None], np.zeros((*zeros.shape, counts.shape[1])), zeros > 0, zeros))
        return float(tally.figures()[self.metric][0, 0])

    def _tally(self, counts: Ints, repetitions: int, epsilon: float, window: int) -> MetricTally:
        options = MetricOptions(**self.results.about["options"])
        return MetricTally((self.metric,), counts[None], repetitions, epsilon, window, options)

    @cached_property
    def _rows(self) -> dict[tuple[Any, ...], dict[str, Any]]:
        """The rows of the metric by stream, setting and mechanism."""
        rows = (row for row in self.results.table.to_pylist() if row["metric"] == self.metric)
        return {(*contest_of(row), row["mechanism"]): row for row in rows}


def read_shown(results: Results, metric: str, public: Iterable[str], data: str | Path | None) -> ShownStreams:
    """Read every generated stream again, and those named in `public`, which lie in the folder `data`."""
    rows = {row["stream"]: row for row in results.table.to_pylist()}
    public = set(public)
    known = {name for row in rows.values() for name in (row["stream"], row["stream_name"])}
    if unknown := sorted(public - known):
        raise InputError(f"these results hold no stream {unknown[0]!r}; choose from {', '.join(sorted(known))}")
    counts: dict[str, Ints] = {}
    skipped: dict[str, list[str]] = {}
    for label, row in rows.items():
        if row["stream_source"] != "generator" and public.isdisjoint((label, row["stream_name"])):
            continue
        try:
            counts[label] = _read(_stream(row, data_folder(data) or Path()), results.about["streams"].get(label, {}))
        except EventideError as problem:
            skipped.setdefault(str(problem), []).append(label)
    return ShownStreams(results, metric, counts, tuple(_not_shown(*each) for each in skipped.items()))


def _not_shown(reason: str, labels: list[str]) -> str:
    """A sentence about all streams that have the reason in common; several are named without their parameters."""
    if len(labels) == 1:
        return f"{labels[0]} is not shown: {reason}"
    names = ", ".join(dict.fromkeys(label.partition(" ")[0] for label in labels))
    return f"{len(labels)} streams ({names}) are not shown: {reason}"


def _read(stream: StudiedStream, facts: dict[str, Any]) -> Ints:
    try:
        counts = stream.read()
    except (OSError, KeyError):
        raise InputError("it is not in the data folder; name the folder with --data") from None
    if facts.get("digest") not in (None, Facts.of(counts).digest):
        raise InputError("it is no longer the stream that was studied")
    return counts


def _is_too_large(truth: Ints, repetitions: int) -> bool:
    """Whether the study ran the repetitions in several lots, too large for a picture."""
    steps, bins = truth.shape
    return bool(repetitions * bins > LARGEST_RUN or repetitions * steps > LONGEST_RUN)


def _study(results: Results, repetitions: int) -> Study:
    """As much of the study as it takes to repeat a cell."""
    about = results.about
    return Study(about["study"], about["text"], about["seed"], repetitions, options=MetricOptions(**about["options"]))


def _mechanism(row: dict[str, Any]) -> StudiedMechanism:
    return StudiedMechanism(row["mechanism"], row["mechanism_name"], json.loads(row["parameters"]), row["filter"])


def _stream(row: dict[str, Any], folder: Path) -> StudiedStream:
    """The stream of a row; its parameters keep the order of its label, from which the noise follows."""
    described = json.loads(row["stream_parameters"])
    columns, merge, steps = (described.pop(key, None) for key in ("columns", "merge", "steps"))
    known = signature(GENERATORS[row["stream_name"]]).parameters if row["stream_source"] == "generator" else ()
    if not set(described) <= set(known):
        raise InputError("windows were asked for, not counts")
    ordered = sorted(described, key=lambda key: row["stream"].index(f" {key}="))
    return StudiedStream(
        row["stream_source"],
        row["stream_name"],
        parameters={key: described[key] for key in ordered},
        folder=folder,
        columns=None if columns is None else tuple(columns.split(",")),
        merge=merge or 1,
        steps=steps,
    )
