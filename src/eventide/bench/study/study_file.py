"""Reads a study from TOML, and refuses a bad one before any work, naming the line.

    seed = 1                       # of the noise
    repetitions = 100
    metrics = ["mae", "mre"]
    sanity_bound = 0.001           # of mre, as a part of the column's total

    [[mechanisms]]
    vary.name = ["uniform", "sample", "ba"]

    [[streams]]
    generator = "seasonal"
    vary.amplitude = [10, 1000]

    [[privacy]]
    window = 120
    vary.epsilon = [0.1, 1.0]

`vary` holds lists, and every combination of their values is run.
"""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from eventide.bench.study.custom_mechanisms import is_custom, why_refused
from eventide.bench.study.metrics import METRICS, PLAN_METRICS, MetricOptions, is_of_level
from eventide.bench.study.study import (
    SOURCES,
    Facts,
    Setting,
    StudiedMechanism,
    StudiedPlanner,
    StudiedStream,
    Study,
    labelled,
    stream_parameters,
)
from eventide.bench.study.study_tables import StudyTables
from eventide.bench.study.workloads import WORKLOADS, StudiedWorkload
from eventide.errors import InputError, unknown
from eventide.events.levels import Levels
from eventide.events.statistics import EVENTS, OfValues
from eventide.filters import names as filter_names
from eventide.mechanisms.registry import OWN_CLASS, find_mechanism, mechanism_names, no_mechanism
from eventide.parameters import parameter_defaults
from eventide.privacy.amounts import exact, nano
from eventide.privacy.ledger import positive_integer
from eventide.privacy.noise import Seeded, Zero
from eventide.streams.generators import GENERATORS
from eventide.streams.real import REAL_STREAMS, data_folder, why_missing
from eventide.streams.value_generators import VALUE_GENERATORS
from eventide.toml_lines import TOP, Document, TomlTable
from eventide.windows.planners.registry import PLANNERS

OPTIONS: dict[str, tuple[Callable[[float], bool], str]] = {
    "sanity_bound": (lambda value: 0 < value < math.inf, "a number above 0"),
    "crossing_quantile": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "crossing_tolerance": (lambda value: value >= 0 and isinstance(value, int), "a whole number of steps"),
}
TABLES = ("mechanisms", "streams", "privacy")
TOP_KEYS = ("title", "seed", "repetitions", "metrics", *OPTIONS, "filter", *TABLES)
KNOWN_STREAMS: dict[str, Collection[str]] = {"generator": (*GENERATORS, *VALUE_GENERATORS), "real": REAL_STREAMS}
SET_BY_THE_STUDY = ("epsilon", "window", "bins", "span", "replicas", "noise", "seed")
WORKLOAD_KEYS = ("workload_seed", "window_factor", "step_factor")


def builtin_studies() -> list[str]:
    """The names of the studies that come with eventide."""
    return sorted(file.name.removesuffix(".toml") for file in _builtin().iterdir() if file.name.endswith(".toml"))


def study_text(source: str | Path) -> str:
    """The TOML of a study: of a file, or of a built-in one by its name."""
    path = Path(source)
    if path.suffix == ".toml":
        try:
            return path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise InputError(f"{path} is not a file; check the path") from None
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path} cannot be read as a text file; check the path") from None
    if str(source) in builtin_studies():
        return (_builtin() / f"{source}.toml").read_text(encoding="utf-8")
    raise InputError(f"{unknown('study', str(source), builtin_studies())} (or give a .toml file)")


def load_study(
    source: str | Path, data: str | Path | None = None, added: Mapping[str, Mapping[str, Any]] | None = None
) -> Study:
    """Read and check a study.

    Parameters
    ----------
    source
        A TOML file, or the name of a built-in study.
    data
        The folder of the named real streams; EVENTIDE_DATA by default.
    added
        Further mechanisms, by registry name or module:Class, each with its parameters. They become part of the study.

    >>> load_study("quick").repetitions
    50
    """
    path, text = Path(source), study_text(source)
    tables = [_written({"name": name, **parameters}) for name, parameters in (added or {}).items()]
    return StudyFile(Document(text, path.name, "\n".join(tables)), path.parent, data_folder(data)).study(path.stem)


def _written(mechanism: Mapping[str, Any]) -> str:
    """A mechanism as a table of a study; numbers, texts and lists read alike in JSON and TOML."""
    if unwritten := [key for key, value in mechanism.items() if value is None or isinstance(value, dict)]:
        raise InputError(f"{unwritten[0]} must be a number, a text, true, false or a list; leave it out otherwise")
    lines = [f"{json.dumps(key)} = {json.dumps(value, ensure_ascii=False)}" for key, value in mechanism.items()]
    return "\n".join(["[[mechanisms]]", *lines, ""])


class StudyFile(StudyTables):
    """A study's document on its way to becoming a study."""

    def __init__(self, document: Document, folder: Path, data: Path | None) -> None:
        super().__init__(document)
        self.folder = folder
        self.data = data
        self.facts: dict[str, Facts] = {}
        self.skipped: list[str] = []

    def study(self, name: str) -> Study:
        """Check everything and build the study."""
        top = self.document.values
        self.check_keys(top, TOP_KEYS, TOP, "key")
        if "repetitions" not in top:
            raise self.document.complaint("repetitions is missing; say how often each cell is to be run")
        repetitions = self.asked(TOP, "repetitions", positive_integer, top["repetitions"], "repetitions")
        metrics, options = self._metrics(), self._options()
        settings = self.distinct(self._settings(), "setting")
        experiments = [setting.experiment for _, setting in settings]
        mechanisms = self.distinct(self._mechanisms(experiments), "mechanism")
        streams = self.distinct(self._streams(experiments), "stream")
        if not streams:
            others = f"; and {len(self.skipped) - 1} more" * (len(self.skipped) > 1)
            raise InputError(f"{self.document.place}: no stream is left; {self.skipped[0]}{others}")
        study = Study(
            name=name,
            text=self.document.text,
            seed=top.get("seed", 0),
            repetitions=repetitions,
            metrics=metrics,
            options=options,
            states_sanity_bound="sanity_bound" in top,
            mechanisms=tuple(mechanism for _, mechanism in mechanisms),
            streams=tuple(stream for _, stream in streams),
            settings=tuple(setting for _, setting in settings),
            facts=self.facts,
            skipped=tuple(self.skipped),
        )
        self.asked(TOP, "seed", Seeded, study.seed)
        if not study.cells:
            raise self.document.complaint(
                "nothing is left to run: planners need streams with a workload, mechanisms streams without one"
            )
        self._check_levels(study)
        for entry, mechanism in mechanisms:
            self._check_metrics(mechanism, metrics)
            self._try_out(entry, mechanism, study)
        return study

    def _metrics(self) -> tuple[str, ...]:
        metrics = self.document.values.get("metrics", ["mae", "mre"])
        if not isinstance(metrics, list) or not metrics:
            raise self.document.complaint('metrics is a list of names, such as ["mae", "mre"]', key="metrics")
        known = dict.fromkeys((*METRICS, *PLAN_METRICS))
        for metric in map(str, metrics):
            if metric not in known and not is_of_level(metric):
                raise self.document.unknown("metric", metric, known, TOP, "metrics")
        return tuple(dict.fromkeys(metrics))

    def _check_levels(self, study: Study) -> None:
        """Refuse the error of a level that no stream has."""
        known = {f"mae:{name}" for stream in study.streams if stream.levels for name in stream.levels.names}
        for metric in filter(is_of_level, study.metrics):
            if metric not in known:
                raise self.document.complaint(
                    f"no stream has the level of {metric}; streams name their groups with levels", key="metrics"
                )

    def _check_metrics(self, mechanism: StudiedMechanism, metrics: tuple[str, ...]) -> None:
        known = PLAN_METRICS if isinstance(mechanism, StudiedPlanner) else METRICS
        for metric in metrics:
            if metric not in known and (known is PLAN_METRICS or not is_of_level(metric)):
                raise self.document.complaint(
                    f"{metric} cannot be measured of {mechanism.label}; choose from {', '.join(known)}", key="metrics"
                )

    def _options(self) -> MetricOptions:
        given = {key: self.document.values[key] for key in OPTIONS if key in self.document.values}
        for key, value in given.items():
            holds, otherwise = OPTIONS[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
                raise self.document.complaint(f"{key} is {value!r}; it must be {otherwise}", key=key)
        return MetricOptions(**given)

    def _settings(self) -> Iterator[tuple[TomlTable, Setting]]:
        for entry, values in self.entries("privacy"):
            self.check_keys(values, ("experiment", "epsilon", "window"), entry, "key")
            for key in ("epsilon", "window"):
                if key not in values:
                    raise self.document.complaint(f"{key} is missing in this privacy setting", entry)
            self.asked(entry, "epsilon", nano, values["epsilon"])
            window = self.asked(entry, "window", positive_integer, values["window"], "window")
            varied = self.document.values["privacy"][entry.number].get("vary", {})
            experiment = values.get("experiment", f"vary {' and '.join(varied)}" if varied else "fixed")
            yield entry, Setting(str(experiment), float(exact(values["epsilon"])), window)

    def _mechanisms(self, experiments: list[str]) -> Iterator[tuple[TomlTable, StudiedMechanism]]:
        for entry, values in self.entries("mechanisms"):
            if "planner" in values:
                yield entry, self._planner(entry, values, experiments)
                continue
            name = self.one_name(entry, values, "name")
            if not is_custom(name) and name not in mechanism_names():
                raise self.document.complaint(no_mechanism(name, OWN_CLASS), entry, "name")
            part_of = self.experiments(entry, values, experiments)
            label = labelled(name, values)
            chosen = values.pop("filter", self.document.values.get("filter"))
            if chosen not in (None, *filter_names()):
                raise self.document.unknown("filter", str(chosen), filter_names(), entry, "filter")
            if fixed := [key for key in SET_BY_THE_STUDY if key in values]:
                raise self.document.complaint(f"{fixed[0]} is set by the study; remove it here", entry, fixed[0])
            cls = self.asked(entry, "name", find_mechanism, name)
            self.check_keys(values, parameter_defaults(cls), entry, "parameter", name)
            if is_custom(name) and (reason := why_refused(cls, values)):
                raise self.document.complaint(f"{name} is refused: {reason}", entry, "name")
            yield entry, StudiedMechanism(label, name, values, chosen, part_of)

    def _planner(self, entry: TomlTable, values: dict[str, Any], experiments: list[str]) -> StudiedPlanner:
        self.check_keys(values, ("planner", "experiments"), entry, "key", "a planner")
        name = str(values["planner"])
        if name not in PLANNERS:
            raise self.document.unknown("planner", name, PLANNERS, entry, "planner")
        return StudiedPlanner(name, name, {}, experiments=self.experiments(entry, values, experiments))

    def _streams(self, experiments: list[str]) -> Iterator[tuple[TomlTable, StudiedStream]]:
        for entry, values in self.entries("streams"):
            sources = [source for source in SOURCES if source in values]
            if len(sources) != 1:
                raise self.document.complaint(f"a stream has one of {', '.join(SOURCES)}", entry)
            source, name = sources[0], self.one_name(entry, values, sources[0])
            if source in KNOWN_STREAMS and name not in KNOWN_STREAMS[source]:
                raise self.document.unknown(f"{source} stream", name, KNOWN_STREAMS[source], entry, source)
            if source == "real" and (missing := why_missing(name, self.data)):
                self.skipped += [missing] * (missing not in self.skipped)
                continue
            stream = StudiedStream(
                source,
                name,
                folder=(self.data if source == "real" else None) or self.folder,
                experiments=self.experiments(entry, values, experiments),
                public=self.switch(entry, values, "public", source in KNOWN_STREAMS),
                columns=self.texts(entry, values, "columns"),
                merge=self.positive(entry, values, "merge", 1),
                steps=self.positive(entry, values, "steps", None),
                span=self.positive(entry, values, "span", None),
                workload=self._workload(entry, values),
                levels_file=str(values.pop("levels", "")),
                parameters={key: _plain(value) for key, value in values.items()},  # what is left
            )
            self.check_parameters(values, stream_parameters(source, name), entry, name)
            self._check_statistic(entry, stream)
            matrix = self.asked(entry, source, stream.matrix)
            preparing = next((key for key in ("columns", "steps") if getattr(stream, key)), "merge")
            matrix = self.asked(entry, preparing, stream.prepared, matrix)
            stream = self._with_levels(entry, stream, matrix.bins)
            facts = self.asked(entry, preparing, Facts.of, matrix)
            if stream.levels is not None:
                facts = replace(facts, digest=f"{facts.digest} {stream.levels.digest()}")
            self.facts[stream.label] = facts
            yield entry, stream

    def _check_statistic(self, entry: TomlTable, stream: StudiedStream) -> None:
        """Refuse what cannot be asked of a statistic."""
        statistic = self.asked(entry, "statistic", lambda: stream.statistic)
        if stream.workload is not None and statistic is not EVENTS:
            raise self.document.complaint("window queries are of events; leave statistic out", entry, "statistic")
        unfit = [key for key in ("span", "levels") if key in stream.described]
        if unfit and isinstance(statistic, OfValues):
            raise self.document.complaint(
                f"{unfit[0]} is for counts of events and people; leave it or statistic out", entry, unfit[0]
            )

    def _with_levels(self, entry: TomlTable, stream: StudiedStream, bins: Sequence[str]) -> StudiedStream:
        """The stream with the groups of its file, found from the folder of the study."""
        if not stream.levels_file:
            return stream
        levels = self.asked(entry, "levels", Levels.of, (self.folder or Path()) / stream.levels_file, bins)
        return replace(stream, levels=levels)

    def _workload(self, entry: TomlTable, values: dict[str, Any]) -> StudiedWorkload | None:
        if "workload" not in values:
            if alone := [key for key in WORKLOAD_KEYS if key in values]:
                raise self.document.complaint(f"{alone[0]} is for streams with a workload", entry, alone[0])
            return None
        name = values.pop("workload")
        if name not in WORKLOADS:
            raise self.document.unknown("workload", str(name), WORKLOADS, entry, "workload")
        seed = values.pop("workload_seed", 0)
        self.asked(entry, "workload_seed", Seeded, seed)
        window_factor = self.positive(entry, values, "window_factor", 1)
        return StudiedWorkload(name, seed, window_factor, self.positive(entry, values, "step_factor", 1))

    def _try_out(self, entry: TomlTable, mechanism: StudiedMechanism, study: Study) -> None:
        """Build the mechanism once for every setting and number of bins that it will meet, or plan every workload."""
        cells = [cell for cell in study.cells if cell.mechanism is mechanism]
        if isinstance(mechanism, StudiedPlanner):
            met = dict.fromkeys((cell.stream.workload, study.facts[cell.stream.label].steps) for cell in cells)
            for workload, ticks in met:
                if workload is not None:
                    self.asked(entry, "planner", workload.plan, mechanism.name, 1.0, ticks)
            return
        known = parameter_defaults(find_mechanism(mechanism.name))
        self.check_keys(mechanism.parameters, known, entry, "parameter", mechanism.name)
        facts, streams = study.facts, {each.stream.label: each.stream for each in cells}
        built = dict.fromkeys((each.setting, each.stream.label) for each in cells)
        for setting, label in built:
            stream = streams[label]
            numbers, direct = facts[label].bins * stream.statistic.columns, stream.statistic.direct
            asked = stream.span, stream.sensitivity, stream.levels, direct
            self.asked(entry, "name", mechanism.build, setting, numbers, 1, Zero(), *asked)


def _plain(value: Any) -> Any:
    """A date or time as text, everything else as it is."""
    return str(value) if isinstance(value, datetime.date | datetime.time) else value


def _builtin() -> Traversable:
    return resources.files("eventide.bench") / "studies"
