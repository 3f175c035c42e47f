"""Reads a study from TOML, and refuses a bad one before any work, naming the line.

    seed = 1                       # every figure follows from it
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

`vary` holds lists, and every combination of their values is run. Imports the study and what stands left of it.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, TypeVar

from eventide.bench.metrics import METRICS, MetricOptions
from eventide.bench.study import Facts, Setting, StudiedMechanism, StudiedStream, Study, labelled
from eventide.bench.third_party import find_mechanism, is_third_party, why_refused
from eventide.bench.toml_lines import TOP, Document, Entry
from eventide.errors import EventideError, InputError
from eventide.filters import names as filter_names
from eventide.mechanisms.registry import mechanism_names
from eventide.privacy.amounts import exact, nano
from eventide.privacy.ledger import positive_integer
from eventide.privacy.noise import Seeded, Zero
from eventide.streams.generators import GENERATORS
from eventide.streams.real import REAL_STREAMS, data_folder, why_missing

OPTIONS: dict[str, tuple[Callable[[float], bool], str]] = {
    "sanity_bound": (lambda value: value > 0, "a number above 0"),
    "crossing_quantile": (lambda value: 0 <= value <= 1, "a number from 0 to 1"),
    "crossing_tolerance": (lambda value: value >= 0 and value == int(value), "a whole number of steps"),
}
TABLES = ("mechanisms", "streams", "privacy")
TOP_KEYS = ("title", "seed", "repetitions", "metrics", *OPTIONS, "filter", *TABLES)
SOURCES: dict[str, Collection[str]] = {"generator": GENERATORS, "real": REAL_STREAMS, "file": ()}
SET_BY_THE_STUDY = ("epsilon", "window", "bins", "replicas", "noise", "seed")

Value = TypeVar("Value")
Part = TypeVar("Part", Setting, StudiedMechanism, StudiedStream)


def builtin_studies() -> list[str]:
    """The names of the studies that come with eventide."""
    return sorted(file.name.removesuffix(".toml") for file in _builtin().iterdir() if file.name.endswith(".toml"))


def load_study(source: str | Path, data: str | Path | None = None) -> Study:
    """Read and check a study: a TOML file, or the name of a built-in one. `data` is the folder of real streams.

    >>> load_study("quick").repetitions
    50
    """
    path = Path(source)
    if path.suffix == ".toml":
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InputError(f"{path} cannot be read as a text file; check the path") from None
    elif str(source) in builtin_studies():
        text = (_builtin() / f"{source}.toml").read_text(encoding="utf-8")
    else:
        raise InputError(
            f"there is no study {str(source)!r}; give a .toml file or one of {', '.join(builtin_studies())}"
        )
    return StudyFile(Document(text, path.name), path.parent, data_folder(data)).study(path.stem)


class StudyFile:
    """A study's document on its way to becoming a study."""

    def __init__(self, document: Document, folder: Path, data: Path | None) -> None:
        self.document = document
        self.folder = folder
        self.data = data
        self.facts: dict[str, Facts] = {}
        self.skipped: list[str] = []

    def study(self, name: str) -> Study:
        """Check everything and build the study."""
        top = self.document.values
        self._check_keys(top, TOP_KEYS, TOP, "key")
        if "repetitions" not in top:
            raise self.document.complaint("repetitions is missing; say how often each cell is to be run")
        repetitions = self._asked(TOP, "repetitions", positive_integer, top["repetitions"], "repetitions")
        metrics, options = self._metrics(), self._options()
        settings = self._distinct(self._settings(), "setting")
        experiments = [setting.experiment for _, setting in settings]
        mechanisms = self._distinct(self._mechanisms(experiments), "mechanism")
        streams = self._distinct(self._streams(experiments), "stream")
        if not streams:
            raise InputError(f"{self.document.place}: no stream is left; {'; '.join(self.skipped)}")
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
        self._asked(TOP, "seed", Seeded, study.seed)
        for entry, mechanism in mechanisms:
            self._try_out(entry, mechanism, study)
        return study

    def _metrics(self) -> tuple[str, ...]:
        metrics = self.document.values.get("metrics", ["mae", "mre"])
        if not isinstance(metrics, list) or not metrics:
            raise self.document.complaint('metrics is a list of names, such as ["mae", "mre"]', key="metrics")
        for metric in metrics:
            if metric not in METRICS:
                raise self.document.unknown("metric", str(metric), METRICS, TOP, "metrics")
        return tuple(dict.fromkeys(metrics))

    def _options(self) -> MetricOptions:
        given = {key: self.document.values[key] for key in OPTIONS if key in self.document.values}
        for key, value in given.items():
            holds, otherwise = OPTIONS[key]
            if isinstance(value, bool) or not isinstance(value, int | float) or not holds(value):
                raise self.document.complaint(f"{key} is {value!r}; it must be {otherwise}", key=key)
        return MetricOptions(**given)

    def _settings(self) -> Iterator[tuple[Entry, Setting]]:
        for entry, values in self._entries("privacy"):
            self._check_keys(values, ("experiment", "epsilon", "window"), entry, "key")
            for key in ("epsilon", "window"):
                if key not in values:
                    raise self.document.complaint(f"{key} is missing in this privacy setting", entry)
            self._asked(entry, "epsilon", nano, values["epsilon"])
            window = self._asked(entry, "window", positive_integer, values["window"], "window")
            varied = self.document.values["privacy"][entry.number].get("vary", {})
            experiment = values.get("experiment", f"vary {' and '.join(varied)}" if varied else "fixed")
            yield entry, Setting(str(experiment), float(exact(values["epsilon"])), window)

    def _mechanisms(self, experiments: list[str]) -> Iterator[tuple[Entry, StudiedMechanism]]:
        for entry, values in self._entries("mechanisms"):
            name = str(values.pop("name", ""))
            if not is_third_party(name) and name not in mechanism_names():
                raise self.document.unknown("mechanism", name, mechanism_names(), entry, "name")
            part_of = self._experiments(entry, values, experiments)
            label = labelled(name, values)
            chosen = values.pop("filter", self.document.values.get("filter"))
            if chosen not in (None, *filter_names()):
                raise self.document.unknown("filter", str(chosen), filter_names(), entry, "filter")
            if fixed := [key for key in SET_BY_THE_STUDY if key in values]:
                raise self.document.complaint(f"{fixed[0]} is set by the study; remove it here", entry, fixed[0])
            cls = self._asked(entry, "name", find_mechanism, name)
            if is_third_party(name) and (reason := why_refused(cls, values)):
                raise self.document.complaint(f"{name} is refused: {reason}", entry, "name")
            yield entry, StudiedMechanism(label, name, values, chosen, part_of)

    def _streams(self, experiments: list[str]) -> Iterator[tuple[Entry, StudiedStream]]:
        for entry, values in self._entries("streams"):
            sources = [source for source in SOURCES if source in values]
            if len(sources) != 1:
                raise self.document.complaint(f"a stream has one of {', '.join(SOURCES)}", entry)
            source, name = sources[0], str(values.pop(sources[0]))
            if source != "file" and name not in SOURCES[source]:
                raise self.document.unknown(f"{source} stream", name, SOURCES[source], entry, source)
            if source == "real" and (missing := why_missing(name, self.data)):
                self.skipped.append(missing)
                continue
            stream = StudiedStream(
                source,
                name,
                folder=(self.data if source == "real" else None) or self.folder,
                experiments=self._experiments(entry, values, experiments),
                public=bool(values.pop("public", source != "file")),
                columns=self._texts(entry, values, "columns"),
                merge=self._asked(entry, "merge", positive_integer, values.pop("merge", 1), "merge"),
                parameters=values,  # what is left
            )
            parameters = inspect.signature(GENERATORS[name]).parameters if source == "generator" else ()
            self._check_keys(values, parameters, entry, f"parameter of {name}")
            matrix = self._asked(entry, source, stream.matrix)
            counts = self._asked(entry, "columns" if stream.columns else "merge", stream.prepared, matrix)
            self.facts[stream.label] = Facts.of(counts)
            yield entry, stream

    def _entries(self, table: str) -> Iterator[tuple[Entry, dict[str, Any]]]:
        """Every combination of the varied values of each entry of a table."""
        written = self.document.values.get(table)
        if not (isinstance(written, list) and written and all(isinstance(each, dict) for each in written)):
            raise self.document.complaint(f"the study needs at least one [[{table}]]", key=table)
        for number, values in enumerate(written):
            entry = Entry(table, number)
            varied = values.get("vary", {})
            if not (isinstance(varied, dict) and all(isinstance(each, list) and each for each in varied.values())):
                raise self.document.complaint("vary holds lists, such as vary.window = [40, 80]", entry, "vary")
            plain = {key: value for key, value in values.items() if key != "vary"}
            for chosen in itertools.product(*varied.values()):
                yield entry, plain | dict(zip(varied, chosen, strict=True))

    def _distinct(self, parts: Iterator[tuple[Entry, Part]], what: str) -> list[tuple[Entry, Part]]:
        """The parts, each of which must have a label of its own."""
        seen: dict[str, tuple[Entry, Part]] = {}
        for entry, part in parts:
            if part.label in seen:
                raise self.document.complaint(f"the {what} {part.label!r} stands here for the second time", entry)
            seen[part.label] = entry, part
        return list(seen.values())

    def _experiments(self, entry: Entry, values: dict[str, Any], known: list[str]) -> tuple[str, ...] | None:
        named = self._texts(entry, values, "experiments")
        for name in named or ():
            if name not in known:
                raise self.document.unknown("experiment", name, dict.fromkeys(known), entry, "experiments")
        return named

    def _texts(self, entry: Entry, values: dict[str, Any], key: str) -> tuple[str, ...] | None:
        texts = values.pop(key, None)
        if texts is not None and not (isinstance(texts, list) and texts):
            raise self.document.complaint(f"{key} is a list of names", entry, key)
        return None if texts is None else tuple(map(str, texts))

    def _check_keys(self, values: Iterable[str], known: Iterable[str], entry: Entry, what: str) -> None:
        for key in values:
            if key not in known:
                raise self.document.unknown(what, key, known, entry)

    def _try_out(self, entry: Entry, mechanism: StudiedMechanism, study: Study) -> None:
        """Build the mechanism once for every setting and number of bins that it will meet."""
        known = dict.fromkeys(name for cls in find_mechanism(mechanism.name).__mro__ for name in _keywords(cls))
        self._check_keys(mechanism.parameters, known, entry, f"parameter of {mechanism.name}")
        cells = [cell for cell in study.cells if cell.mechanism is mechanism]
        for setting, bins in dict.fromkeys((cell.setting, study.facts[cell.stream.label].bins) for cell in cells):
            self._asked(entry, "name", mechanism.build, setting, bins, 1, Zero())

    def _asked(self, entry: Entry, key: str, function: Callable[..., Value], *arguments: Any) -> Value:
        """What the function gives; what it refuses is refused with the line of the key it was asked for."""
        try:
            return function(*arguments)
        except (EventideError, TypeError, ValueError) as problem:
            raise self.document.complaint(str(problem), entry, key) from None


def _keywords(cls: type) -> list[str]:
    """The keywords that a class adds to its constructor."""
    if "__init__" not in vars(cls):
        return []
    parameters = inspect.signature(cls.__init__).parameters.values()  # type: ignore[misc]
    return [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]


def _builtin() -> Traversable:
    return resources.files("eventide.bench") / "studies"
