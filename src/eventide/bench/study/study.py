"""What a study is made of: mechanisms, streams, privacy settings, metrics; and the cells that these make.

A cell is one mechanism on one stream under one setting, repeated. Its noise follows from the study's seed and the cell
alone, so that nothing else in the study changes its figures. A stream of which window queries are asked meets planners
in the place of mechanisms.
"""

from __future__ import annotations

import hashlib
import inspect
import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Ints
from eventide.bench.study.metrics import MetricOptions
from eventide.bench.study.workloads import StudiedWorkload
from eventide.errors import InputError
from eventide.events.levels import Levels
from eventide.events.statistics import OfValues, Statistic
from eventide.filters import by_name
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.levels import without_truncation
from eventide.mechanisms.registry import find_mechanism
from eventide.mechanisms.window_baselines import WindowMechanism
from eventide.privacy.noise import Source
from eventide.streams.count_files import Matrix, read_matrix
from eventide.streams.event_files import count_events
from eventide.streams.event_numbers import studied_statistic
from eventide.streams.generators import GENERATORS
from eventide.streams.real import read_real
from eventide.streams.value_generators import VALUE_GENERATORS

SOURCES = ("generator", "real", "file", "events")  # of streams
STATISTIC_KEYS = ("statistic", "between", "edges", "quantiles")  # of streams of events


@dataclass(frozen=True)
class StudiedMechanism:
    """A mechanism by its registry name or module:Class, with parameters; `experiments` it is part of, None for all.

    The label tells it from the others of the study. With the parameter levels = true it has the levels of each stream.
    """

    label: str
    name: str
    parameters: dict[str, Any]
    filter: str | None = None
    experiments: tuple[str, ...] | None = None

    def build(
        self,
        setting: Setting,
        bins: int,
        replicas: int,
        noise: Source,
        span: int | None = None,
        sensitivity: int = 1,
        levels: Levels | None = None,
        direct: bool = True,
    ) -> Mechanism:
        """A new one; if it can, it publishes histograms of the last `span` steps; with `levels`, if it is to.

        direct: what it measures is what is published, so that it may be made whole numbers from 0 up.
        """
        cls = find_mechanism(self.name)
        own = dict(self.parameters)
        if (wanted := own.pop("levels", None)) is True:
            if levels is None:
                raise InputError("levels = true needs streams with levels; give each stream a file of them")
            own["levels"] = dict(levels.described())
        elif wanted:
            raise InputError("levels of a mechanism in a study is true: the groups are those of the stream")
        asked: dict[str, Any] = {"span": span} if span is not None and issubclass(cls, WindowMechanism) else {}
        if "sensitivity" not in self.parameters and sensitivity != 1:
            asked["sensitivity"] = sensitivity
        chosen = None if self.filter is None else by_name(self.filter)
        return cls(
            epsilon=setting.epsilon,
            window=setting.window,
            bins=bins,
            replicas=replicas,
            noise=noise,
            filter=chosen if direct else without_truncation(chosen),
            **own,
            **asked,
        )


class StudiedPlanner(StudiedMechanism):
    """A planner of window queries, which stands in a study where a mechanism does."""


class Looked(NamedTuple):
    """Streams as they are looked at: the numbers that are measured `(..., T, n)`, and what is true `(..., T, d)`."""

    numbers: Ints
    truth: Array

    @classmethod
    def side_by_side(cls, *streams: Looked) -> Looked:
        """Streams of equal shape as one array each."""
        return cls(*(np.stack(arrays) for arrays in zip(*streams, strict=True)))


@dataclass(frozen=True)
class StudiedStream:
    """A stream by its source, one of SOURCES, and its name there; how it is prepared, what is asked of it.

    columns: the bins to keep, in this order. merge: how many consecutive steps are summed into one. steps: how many of
    these to keep. levels: the groups of its bins, from a file of that name. span: ask for the histogram of so many last
    steps instead of the counts of each step. workload: ask window queries. public: may the true counts be shown?
    """

    source: str
    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    folder: Path = Path()
    columns: tuple[str, ...] | None = None
    merge: int = 1
    steps: int | None = None
    span: int | None = None
    workload: StudiedWorkload | None = None
    public: bool = True
    experiments: tuple[str, ...] | None = None
    levels: Levels | None = None
    levels_file: str = ""

    @property
    def label(self) -> str:
        """The name with the parameters that were given."""
        return labelled(self.name, self.described)

    @property
    def described(self) -> dict[str, Any]:
        """Everything that makes this stream what it is, besides its source and name."""
        prepared = {
            "columns": self.columns and ",".join(self.columns),
            "merge": None if self.merge == 1 else self.merge,
            "steps": self.steps,
            "span": self.span,
            "levels": self.levels_file or None,
        }
        asked = {} if self.workload is None else self.workload.described
        return self.parameters | {key: value for key, value in prepared.items() if value is not None} | asked

    @cached_property
    def statistic(self) -> Statistic:
        """What is asked of its events; of counts, these."""
        return studied_statistic(**{key: self.parameters[key] for key in STATISTIC_KEYS if key in self.parameters})

    @property
    def sensitivity(self) -> int:
        """What one event adds to a step: 1, or of values what the statistic says."""
        return self.statistic.sensitivity(1)

    @property
    def without_data(self) -> float | None:
        """Of means and quantiles, what somebody says who is told that there are no data: the middle of the range."""
        statistic = self.statistic
        if statistic.adds_up(1) or not isinstance(statistic, OfValues):
            return None
        return float(statistic.grid.low + statistic.grid.high) / 2

    def read(self) -> Ints:
        """The numbers of all steps, `(T, n)`: counts of each bin, or those of which a statistic is told."""
        return self.look().numbers

    def look(self) -> Looked:
        """The same with what is true of what is asked."""
        return self.looked(self.prepared(self.matrix()))

    def looked(self, matrix: Matrix) -> Looked:
        """The numbers of a prepared matrix, and what is true of what is asked of them."""
        return Looked(matrix.counts, self.asked(matrix.counts) if matrix.truth is None else matrix.truth)

    def matrix(self) -> Matrix:
        """Make the stream or read it, as it is."""
        if self.source == "generator" and self.name in VALUE_GENERATORS:
            made = {key: value for key, value in self.parameters.items() if key not in STATISTIC_KEYS}
            return VALUE_GENERATORS[self.name](**made).numbers(self.statistic)
        if self.source == "generator":
            counts = GENERATORS[self.name](**self.parameters)
            return Matrix(counts, tuple(map(str, range(counts.shape[1]))))
        if self.source == "events":
            return count_events(self.folder / self.name, **self.parameters)
        return read_real(self.name, self.folder) if self.source == "real" else read_matrix(self.folder / self.name)

    def prepared(self, matrix: Matrix) -> Matrix:
        """Choose columns, merge and choose steps; a rest of steps too short to be merged is left out."""
        counts, bins, truth = matrix
        if self.merge > 1 and not (self.statistic.adds_up(1) and self.statistic.adds_up_in_time):
            raise InputError(
                f"{self.statistic.name} of several steps of {self.name} do not add up; make steps longer instead"
            )
        if self.columns is not None:
            missing = [column for column in self.columns if column not in bins]
            if missing:
                known = ", ".join(bins[:9]) + " ..." * (len(bins) > 9)
                raise InputError(f"{self.name} has no column {missing[0]!r}; its columns are {known}")
            chosen = [bins.index(column) for column in self.columns]
            counts, bins = _of_bins(counts, len(bins), chosen), self.columns
            truth = None if truth is None else _of_bins(truth, len(matrix.bins), chosen)
        steps = len(counts) // self.merge
        if steps == 0:
            raise InputError(f"{self.name} has {len(counts)} steps; it cannot be merged by {self.merge}")
        if self.steps is not None and steps < self.steps:
            raise InputError(f"{self.name} has only {steps} of the {self.steps} steps to keep")
        return Matrix(self._merged(counts), bins, None if truth is None else self._merged(truth))

    def _merged(self, rows: Array) -> Array:
        steps = len(rows) // self.merge
        merged = rows[: steps * self.merge].reshape(steps, self.merge, -1).sum(axis=1)
        return np.asarray(merged[: self.steps])

    def asked(self, counts: Ints) -> Ints:
        """What is asked of streams of counts `(..., T, d)`: these, or the sums of the last `span` steps."""
        if self.span is None:
            return counts
        sums = np.cumsum(counts, axis=-2)
        sums[..., self.span :, :] -= sums[..., : -self.span, :].copy()
        return sums


@dataclass(frozen=True)
class Setting:
    """A privacy setting, as part of an experiment."""

    experiment: str
    epsilon: float
    window: int

    @property
    def label(self) -> str:
        """Experiment, epsilon and window."""
        return f"{self.experiment}: epsilon={self.epsilon:g} window={self.window}"


@dataclass(frozen=True)
class Facts:
    """What a stream looks like; `digest` tells whether it is the same stream again.

    zeros: the part of its cells that hold 0, or have no data.
    """

    steps: int
    bins: int
    digest: str
    least: float
    largest: float
    quantile_90: float
    zeros: float

    @classmethod
    def of(cls, matrix: Matrix) -> Facts:
        """Look at a stream: at its counts, or at what is true of its numbers."""
        digest = hashlib.sha256(np.ascontiguousarray(matrix.counts).data)
        values: Array = matrix.counts
        known = values
        if matrix.truth is not None:
            digest.update(np.ascontiguousarray(matrix.truth).data)
            values, known = matrix.truth, matrix.truth[~np.isnan(matrix.truth)]
        if not known.size:
            raise InputError("there are no events in any of its steps and bins; choose others")
        return cls(
            steps=len(values),
            bins=len(matrix.bins),
            digest=digest.hexdigest(),
            least=known.min().item(),
            largest=known.max().item(),
            quantile_90=float(np.quantile(known, 0.9)),
            zeros=float((values.size - np.count_nonzero(known)) / values.size),
        )


@dataclass(frozen=True)
class Cell:
    """One mechanism on one stream under one setting."""

    mechanism: StudiedMechanism
    stream: StudiedStream
    setting: Setting


@dataclass(frozen=True)
class Study:
    """A whole study, checked; `skipped` says which streams it asked for and could not have.

    To repeat a cell takes no more than the seed, the repetitions, the metrics and their options.
    """

    name: str
    text: str
    seed: int
    repetitions: int
    metrics: tuple[str, ...] = ()
    options: MetricOptions = field(default_factory=MetricOptions)
    states_sanity_bound: bool = False
    mechanisms: tuple[StudiedMechanism, ...] = ()
    streams: tuple[StudiedStream, ...] = ()
    settings: tuple[Setting, ...] = ()
    facts: dict[str, Facts] = field(default_factory=dict)
    skipped: tuple[str, ...] = ()

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """Every combination whose parts belong to the setting's experiment, in the order of the file."""
        return tuple(
            Cell(mechanism, stream, setting)
            for setting in self.settings
            for stream in self.streams
            for mechanism in self.mechanisms
            if _takes_part(stream, setting) and _takes_part(mechanism, setting) and _meet(mechanism, stream)
        )

    def short_streams(self) -> list[str]:
        """Which streams are shorter than a window, so that none of their windows is whole; a sentence each."""
        longest: dict[str, int] = {}
        for cell in self.cells:
            longest[cell.stream.label] = max(longest.get(cell.stream.label, 0), cell.setting.window)
        return [
            f"{label} is shorter than a window of {window:,} steps (length {self.facts[label].steps:,}): no window is "
            "whole"
            for label, window in longest.items()
            if self.facts[label].steps < window
        ]

    def seed_of(self, cell: Cell, first_repetition: int = 0) -> int:
        """The seed of a cell's noise, from that repetition on."""
        setting = cell.setting
        parts = [self.seed, cell.mechanism.label, cell.stream.label, setting.experiment]
        parts += [repr(setting.epsilon), setting.window, first_repetition]
        return int.from_bytes(hashlib.sha256(json.dumps(parts).encode()).digest()[:7])


def labelled(name: str, parameters: dict[str, Any]) -> str:
    """A name and its parameters in a line.

    >>> labelled("hybrid", {"k": 5})
    'hybrid k=5'
    """
    return " ".join([name, *(f"{key}={value}" for key, value in parameters.items())])


def stream_parameters(source: str, name: str) -> dict[str, inspect.Parameter]:
    """The parameters with which a stream is made."""
    if source not in ("generator", "events"):
        return {}
    of_events = dict(inspect.signature(count_events).parameters)
    if source == "events":
        return {key: parameter for key, parameter in of_events.items() if key != "path"}
    if name in GENERATORS:
        return dict(inspect.signature(GENERATORS[name]).parameters)
    own = inspect.signature(VALUE_GENERATORS[name]).parameters
    return dict(own) | {key: of_events[key] for key in STATISTIC_KEYS}


def _of_bins(rows: Array, bins: int, chosen: list[int]) -> Array:
    """Of rows with one or several numbers for each bin, those of some bins."""
    return np.asarray(rows.reshape(len(rows), bins, -1)[:, chosen].reshape(len(rows), -1))


def _takes_part(part: StudiedMechanism | StudiedStream, setting: Setting) -> bool:
    return part.experiments is None or setting.experiment in part.experiments


def _meet(mechanism: StudiedMechanism, stream: StudiedStream) -> bool:
    return isinstance(mechanism, StudiedPlanner) == (stream.workload is not None)
