"""The streams behind a report, read again: what zeros would cost, and releases next to what is true.

True values are shown of generated streams, and of others only if the user says that they are public. What is shown must
be what was studied: a stream with another digest is left out, and so is a cell that now gives another mean.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.bench.report.scores import Contest, contest_of
from eventide.bench.run.results import Results
from eventide.bench.run.runner import LARGEST_RUN, LONGEST_RUN, releases
from eventide.bench.study.custom_mechanisms import is_custom
from eventide.bench.study.metrics import MetricOptions, MetricTally, StepBlock
from eventide.bench.study.study import Cell, Facts, Looked, StudiedMechanism, StudiedStream, Study, stream_parameters
from eventide.errors import EventideError, InputError
from eventide.streams.real import data_folder


class Shown(NamedTuple):
    """A cell's first repetition: totals over all bins, true and released, step by step; and its error.

    Of means and quantiles, which do not add up, the first bin and quantile. interval: the ends of the mechanism's own
    intervals `(T, 2)`, where it gives them; a total of several bins has none.
    """

    mechanism: str
    truth: Array
    released: Floats
    error: float
    interval: Floats | None


@dataclass(frozen=True)
class ShownStreams:
    """All streams that may be shown, by label; `skipped` says why some of them cannot be."""

    results: Results
    metric: str
    looked: dict[str, Looked]
    skipped: tuple[str, ...]

    def errors_of_zeros(self) -> dict[str, float]:
        """By stream, the error of releasing zeros for ever; not of means and quantiles, for which 0 is no guess."""
        return {
            label: self._error_of_zeros(looked.truth)
            for label, looked in self.looked.items()
            if self._stream_of(label).without_data is None
        }

    def released(self, contest: Contest, mechanism: str) -> Shown | None:
        """Run a cell again; None if it cannot be, or is not the one in the results."""
        row = self._rows.get((contest.stream, contest.setting, mechanism))
        numbers, truth = looked = self.looked[contest.stream]
        if row is None or is_custom(row["mechanism_name"]) or _is_too_large(numbers, row["repetitions"]):
            return None
        study, stream = _study(self.results, row["repetitions"]), _stream(row, Path())
        cell, adds_up = Cell(_mechanism(row), stream, contest.setting), stream.without_data is None
        told = study.repetitions, contest.setting.epsilon, contest.setting.window
        tally = self._tally(truth, *told, adds_up=adds_up)
        shown = slice(None) if adds_up else slice(1)
        released, intervals = [], []
        try:
            for block in releases(study, [cell], Looked.side_by_side(looked), 0, study.repetitions):
                tally.add(block)
                released.append(block.released[:, 0, 0, shown].sum(axis=1))
                if block.interval is not None and (truth.shape[1] == 1 or not adds_up):
                    intervals.append(block.interval[:, :, 0, 0, 0])
        except EventideError:
            return None  # a mechanism that this version does not know, or not with these parameters
        errors = tally.figures()[self.metric][0]
        if not np.isclose(errors.mean(), row["mean"], rtol=1e-9):
            return None
        interval = np.concatenate(intervals) if intervals else None
        true = truth[:, shown].sum(axis=1)
        return Shown(mechanism, true, np.concatenate(released), float(errors[0]), interval)

    def _error_of_zeros(self, truth: Array) -> float:
        zeros = np.zeros((len(truth), 1, 1))
        tally = self._tally(truth, 1, 1.0, 1)
        tally.add(StepBlock(0, truth[:, None, None], np.zeros((*zeros.shape, truth.shape[1])), zeros > 0, zeros))
        return float(tally.figures()[self.metric][0, 0])

    def _tally(
        self, truth: Array, repetitions: int, epsilon: float, window: int, *, adds_up: bool = True
    ) -> MetricTally:
        options = MetricOptions(**self.results.about["options"])
        return MetricTally((self.metric,), truth[None], repetitions, epsilon, window, options, adds_up=adds_up)

    def _stream_of(self, label: str) -> StudiedStream:
        return _stream(next(row for row in self._rows.values() if row["stream"] == label), Path())

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
    looked: dict[str, Looked] = {}
    skipped: dict[str, list[str]] = {}
    for label, row in rows.items():
        if row["stream_source"] != "generator" and public.isdisjoint((label, row["stream_name"])):
            continue
        try:
            looked[label] = _read(_stream(row, data_folder(data) or Path()), results.about["streams"].get(label, {}))
        except EventideError as problem:
            skipped.setdefault(str(problem), []).append(label)
    return ShownStreams(results, metric, looked, tuple(_not_shown(*each) for each in skipped.items()))


def _not_shown(reason: str, labels: list[str]) -> str:
    """A sentence about all streams that have the reason in common; several are named without their parameters."""
    if len(labels) == 1:
        return f"{labels[0]} is not shown: {reason}"
    names = ", ".join(dict.fromkeys(label.partition(" ")[0] for label in labels))
    return f"{len(labels)} streams ({names}) are not shown: {reason}"


def _read(stream: StudiedStream, facts: dict[str, Any]) -> Looked:
    try:
        matrix = stream.prepared(stream.matrix())
    except (OSError, KeyError):
        raise InputError("it is not in the data folder; name the folder with --data") from None
    if facts.get("digest") not in (None, Facts.of(matrix).digest):
        raise InputError("it is no longer the stream that was studied")
    return stream.looked(matrix)


def _is_too_large(numbers: Ints, repetitions: int) -> bool:
    """Whether the study ran the repetitions in several lots, too large for a picture."""
    steps, bins = numbers.shape
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
    if not set(described) <= set(stream_parameters(row["stream_source"], row["stream_name"])):
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
