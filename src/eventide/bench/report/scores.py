"""The scores of a report: the mean error of every mechanism in every cell, as one array; plain numbers, no drawing.

A cell is a stream under a privacy setting, which mechanisms compete for; a mechanism that takes no part in it has NaN.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.bench.run.results import Results
from eventide.bench.study.study import Setting
from eventide.errors import InputError


class Contest(NamedTuple):
    """What mechanisms compete for: the least error on a stream under a setting."""

    stream: str
    setting: Setting


@dataclass(frozen=True)
class ReportedStream:
    """A stream as the results describe it; `short` is the least that tells it from the study's others."""

    name: str
    parameters: dict[str, Any]
    short: str = ""


@dataclass(frozen=True)
class Scores:
    """Means and their standard errors, a row for each contest and a column for each mechanism."""

    metric: str
    repetitions: int
    mechanisms: tuple[str, ...]
    names: tuple[str, ...]  # in the registry; a label adds the parameters
    streams: dict[str, ReportedStream]
    contests: tuple[Contest, ...]
    means: Floats
    errors: Floats

    @cached_property
    def least(self) -> Floats:
        """The least mean error of each contest."""
        return np.asarray(np.fmin.reduce(self.means, axis=1))

    @cached_property
    def winners(self) -> Ints:
        """The column of the least mean error of each contest."""
        return np.asarray(np.where(np.isnan(self.means), np.inf, self.means).argmin(axis=1))

    @cached_property
    def deltas(self) -> Floats:
        """Mean errors divided by the least of their contest; NaN where that is 0, so that no ratio exists."""
        least = np.where(self.least > 0, self.least, np.nan)
        return np.asarray(self.means / least[:, None])

    @cached_property
    def logs(self) -> Floats:
        """Logarithms of the distances, whose means are geometric means."""
        return np.asarray(np.log(self.deltas))

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        """Every setting, in the order of the results."""
        return tuple(dict.fromkeys(contest.setting for contest in self.contests))

    def once(self) -> Scores:
        """The same with each cell once: where experiments share an epsilon and a w, as the first one measured it."""
        first: dict[tuple[str, float, int], int] = {}
        for row, (stream, setting) in enumerate(self.contests):
            first.setdefault((stream, setting.epsilon, setting.window), row)
        rows = list(first.values())
        return replace(
            self,
            contests=tuple(self.contests[row] for row in rows),
            means=self.means[rows],
            errors=self.errors[rows],
        )

    def wins(self) -> dict[str, int]:
        """In how many contests each mechanism is best, most first."""
        counts = np.bincount(self.winners, minlength=len(self.mechanisms))
        return {self.mechanisms[column]: int(counts[column]) for column in np.argsort(-counts, kind="stable")}

    def columns(self, *names: str) -> list[int]:
        """The columns of the mechanisms with these registry names."""
        return [column for column, name in enumerate(self.names) if name in names]

    def only(self, *names: str) -> Scores:
        """The scores in which the mechanisms with these registry names compete, with whatever parameters."""
        kept = self.columns(*names)
        rows = np.flatnonzero(~np.isnan(self.means[:, kept]).all(axis=1))
        return replace(
            self,
            mechanisms=tuple(self.mechanisms[column] for column in kept),
            names=tuple(self.names[column] for column in kept),
            contests=tuple(self.contests[row] for row in rows),
            means=self.means[rows][:, kept],
            errors=self.errors[rows][:, kept],
        )

    def without(self, name: str) -> Scores:
        """The scores in which one mechanism takes no part."""
        return self.only(*(each for each in self.names if each != name))

    def place(self, contest: Contest) -> str:
        """A contest in few words."""
        return f"{self.streams[contest.stream].short}, epsilon {contest.setting.epsilon:g}, w {contest.setting.window}"

    def described(self, contest: Contest) -> dict[str, Any]:
        """All that makes a contest what it is, as one flat set of parameters."""
        stream = self.streams[contest.stream]
        return {"stream": stream.name, **stream.parameters, **asdict(contest.setting)}

    def by_stream(self, values: Floats) -> Floats:
        """One value for each contest, as an array of streams by settings; NaN where there is no such contest."""
        streams, settings = list(self.streams), list(self.settings)
        arranged = np.full((len(streams), len(settings)), np.nan)
        for contest, value in zip(self.contests, values, strict=True):
            arranged[streams.index(contest.stream), settings.index(contest.setting)] = value
        return arranged


def read_scores(results: Results, metric: str | None = None, which: str = "these") -> Scores:
    """The scores by an error metric; by default the first that the study measures."""
    rows = results.table.to_pylist()
    measured = list(dict.fromkeys(row["metric"] for row in rows if row["delta"] is not None))
    if not measured:
        raise InputError("these results hold no error to compare mechanisms by; measure one, such as mae")
    if metric not in (None, *measured):
        raise InputError(f"{which} results hold no error {metric!r}; choose one of {', '.join(measured)}")
    chosen = metric or measured[0]
    rows = [row for row in rows if row["metric"] == chosen]
    labels = dict.fromkeys(row["mechanism"] for row in rows)
    names = {row["mechanism"]: row["mechanism_name"] for row in rows}
    contests = list(dict.fromkeys(contest_of(row) for row in rows))
    places = {contest: place for place, contest in enumerate(contests)}
    columns = {label: column for column, label in enumerate(labels)}
    means, errors = np.full((2, len(contests), len(columns)), np.nan)
    for row in rows:
        place = places[contest_of(row)], columns[row["mechanism"]]
        means[place] = row["mean"]
        if row["standard_deviation"] is not None:
            errors[place] = row["standard_deviation"] / np.sqrt(row["repetitions"])
    return Scores(
        metric=chosen,
        repetitions=rows[0]["repetitions"],
        mechanisms=tuple(labels),
        names=tuple(names[label] for label in labels),
        streams=_streams(rows),
        contests=tuple(contests),
        means=means,
        errors=errors,
    )


def contest_of(row: dict[str, Any]) -> Contest:
    """What the mechanism of a row of results competes for."""
    return Contest(row["stream"], Setting(row["experiment"], row["epsilon"], row["window"]))


def _streams(rows: list[dict[str, Any]]) -> dict[str, ReportedStream]:
    """The streams by label, those of one name together and by their parameters, each with a short name of its own."""
    found = {row["stream"]: ReportedStream(row["stream_name"], json.loads(row["stream_parameters"])) for row in rows}
    names = list(dict.fromkeys(stream.name for stream in found.values()))
    differing = {label: _differing(stream, list(found.values())) for label, stream in found.items()}
    ordered = sorted(found, key=lambda label: (names.index(found[label].name), _sortable(differing[label])))
    shorts = {}
    for label in ordered:
        words = ", ".join(f"{key} {value}" for key, value in differing[label].items())
        shorts[label] = f"{found[label].name} {words}".strip() if len(names) > 1 or not words else words
    clear = len(set(shorts.values())) == len(shorts)
    return {label: replace(found[label], short=shorts[label] if clear else label) for label in ordered}


def _differing(stream: ReportedStream, streams: list[ReportedStream]) -> dict[str, Any]:
    """The parameters that not all streams of that name have alike."""
    alike = [other.parameters for other in streams if other.name == stream.name]
    return {key: value for key, value in stream.parameters.items() if any(p.get(key) != value for p in alike)}


def _sortable(parameters: dict[str, Any]) -> list[tuple[str, float, str]]:
    """Numbers by size, texts by letter, whatever stands beside them."""
    return [
        (key, value, "") if isinstance(value, int | float) else (key, 0.0, str(value))
        for key, value in parameters.items()
    ]
