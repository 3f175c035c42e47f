"""One description of a stream, for everybody who publishes one: command line, service, engines and library.

Each setting stands here once: its name, what holds where it is left out, how it is read, what it means. Options,
keys of a configuration and pages of the reference are made from that. A description that exists is right: what cannot
be meant is refused when it is made, all of it by `examine`, the first by the constructor. Nothing heavy is loaded
before something is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack

from eventide.errors import InputError, unknown
from eventide.events.bins import is_spare
from eventide.events.durations import milliseconds
from eventide.live import setting_readers as readers
from eventide.live.setting_readers import defaults_of, setting, settings_of
from eventide.live.stream_reading import Mistake, StreamReading

if TYPE_CHECKING:
    from eventide.events.caps import Cap
    from eventide.events.clock import Clock
    from eventide.events.files.members import Paths
    from eventide.events.reader import EventReader
    from eventide.events.statistics import Statistic
    from eventide.events.timeline import Timeline
    from eventide.live.feeds.base import Feed
    from eventide.live.publisher.window_queries import Questions
    from eventide.live.sources.base import EventSource
    from eventide.mechanisms.base import Mechanism
    from eventide.privacy.amounts import Amount
    from eventide.windows.workload import Query

OF = ("bins", "total")
OF_ROWS = {"time": "pickup", "user": "rider", "bin": "district"}
_INSTEAD = {  # of a frame or a column
    "bins": "give the list of all bins, which everybody may know",
    **dict.fromkeys(OF_ROWS, "give the name of the column"),
}


class EventOptions(TypedDict, total=False):
    """How events are read and cut into steps: what a feed must be told besides its bins."""

    step: str | None
    start: str | date | None
    until: str | date | None
    zone: str
    late: str | None
    other: str | None
    time: str
    time_format: str | None
    user: str | None
    bin: str
    cap: str | None
    statistic: str | Sequence[str]
    between: str | Sequence[str] | Mapping[str, Sequence[float]]
    edges: str | Sequence[str] | Mapping[str, Sequence[float]]
    quantiles: str | Sequence[float]
    split: str | Mapping[str, Any]


class FeedOptions(EventOptions, total=False):
    """The same of a source that is still to be opened: whether a file grows (`follow`), and what time it is.

    `continue_with` is where to begin if the file that was followed before is not to be found.
    """

    follow: bool
    continue_with: str | Path | None
    clock: Clock | None


class StreamOptions(EventOptions, total=False):
    """Everything that a `StreamSpec` is made with."""

    epsilon: Amount
    window: int | str
    bins: Iterable[str] | int | str
    spare_bins: int
    max_per_step: int
    sensitivity: int
    window_sensitivity: int
    mechanism: str
    parameters: Mapping[str, Any]
    levels: Any
    filter: str
    seasons: str | Sequence[float]
    population: str
    keep: int | str
    queries: str | Path | Sequence[Query]
    queries_epsilon: Amount
    queries_of: str


@dataclass(frozen=True, init=False, kw_only=True)
class StreamSpec:
    """A stream: how its steps are cut, its events read and bounded, its counts published, and about whom they are.

    What is left out and has no default is empty: 0, "" or (). Durations are text such as 10min, moments ISO text.

    >>> spec = StreamSpec(epsilon=1, window="24h", step="1h", start="2026-01-01", bins=["north", "south"], user="who")
    >>> spec.window, spec.timeline().iso(1)
    (24, '2026-01-01T01:00:00+00:00')

    Parameters
    ----------
    **options
        The settings that follow, each by its name.
    """

    epsilon: Fraction = setting(Fraction(0), readers.budget, "Privacy budget of every window of steps.", "1.0")
    window: int = setting(
        0,
        readers.steps_or_duration,
        "How many consecutive steps are protected together, or a duration such as 24h.",
        '"24h"',
        left_out="1 if only window queries are answered",
    )
    step: str = setting("", readers.duration, "How long a step is, such as 10min, 1h or 1d.", '"10min"')
    start: str = setting(
        "",
        readers.moment,
        "When the first step begins.",
        "2026-01-01T00:00:00Z",
        left_out="from the data; live: midnight, and steps that are over at the first start are not measured",
    )
    until: str | None = setting(
        None,
        readers.moment,
        "When the last step ends, rounded up to the end of a step.",
        "2027-01-01",
        left_out="from the data; live: never",
        served=False,
    )
    zone: str = setting(
        "UTC",
        readers.text,
        "Time zone of days and of times that name none, such as 2026-01-31 14:30.",
        '"Europe/Berlin"',
    )
    late: str | None = setting(
        None, readers.lateness, "How long after a step's end its events may arrive.", '"1min"', left_out="0"
    )
    bins: tuple[str, ...] = setting(
        (),
        readers.as_written,
        "All bins: a file with one name a line, a number N for the bins 0 to N-1, a range such as 1..24, or in a "
        "configuration a list.",
        '["north", "south", "harbour"]',
        "FILE_OR_N",
    )
    spare_bins: int = setting(
        0,
        readers.positive,
        "How many further bins to reserve; they get names later, with eventide bins, and count nothing until then.",
        "20",
        left_out="none",
    )
    levels: Any = setting(
        None,
        readers.as_written,
        "Publish groups of bins too, which add up: a CSV of bins and the groups each is in, from small to large.",
        '"districts.csv"',
        "FILE",
    )
    other: str | None = setting(
        None, readers.text, "Count events of unknown bins in this bin; without it they are refused.", '"else"'
    )
    time: str = setting("timestamp", readers.column, "The column or field of an event's time.", '"time"', "COL")
    time_format: str | None = setting(
        None,
        readers.time_format,
        "How times are written: s, ms, us or ns since 1970, or a pattern such as %d.%m.%Y %H:%M.",
        '"%d.%m.%Y %H:%M"',
        "FORMAT",
        left_out="ISO 8601, or numbers by their size",
    )
    user: str | None = setting(
        None,
        readers.column,
        "The column or field of its user; without it every event is taken for a person of its own.",
        '"user"',
        "COL",
    )
    bin: str = setting("bin", readers.column, "The column or field of its bin.", '"bin"', "COL")
    statistic: str | tuple[str, ...] = setting(
        "events",
        readers.text_or_texts,
        "What is published of events: events, people (different people: each once in a bin of a step), people/1d (the "
        "same of a day, where steps are shorter), sum:COLUMN, mean:COLUMN or quantiles:COLUMN; may be repeated.",
        '"people"',
    )
    between: str | tuple[str, ...] = setting(
        "",
        readers.of_columns,
        "The range of a column for sums or means; values outside are cut to it. A third number is the unit.",
        '"fare=0,120"',
        "COLUMN=LOW,HIGH",
    )
    edges: str | tuple[str, ...] = setting(
        "",
        readers.of_columns,
        "The buckets of a column of quantiles: the numbers between which they lie.",
        '"stay=0,5,10,20,60"',
        "COLUMN=EDGE,EDGE,...",
    )
    quantiles: tuple[float, ...] = setting(
        (),
        readers.parts,
        "Which quantiles of a column are published.",
        '"0.25,0.5,0.75"',
        "PART,PART,...",
        left_out="0.5, the median",
    )
    split: dict[str, Any] = setting(
        {},
        readers.split,
        "With several statistics: how epsilon is shared among them, as weights, such as people=2,mean:fare=1: two "
        "thirds and one third of it.",
        '"people=0.5,mean:fare=0.5"',
        "STATISTIC=PART,...",
        left_out="all the same",
    )
    max_per_step: int = setting(
        1,
        readers.positive,
        "How many events of one user count in a step. Of statistics of people: in how many bins one person counts.",
        "1",
    )
    sensitivity: int = setting(
        1,
        readers.positive,
        "For ready-made counts: the most that one person adds to a step, over all bins.",
        "1",
        served=False,
    )
    cap: str | None = setting(
        None,
        readers.cap,
        "Count at most N events of a user in each block of time, such as 2/7d, for less noise; needs a user.",
        '"2/7d"',
        "N/DURATION",
    )
    window_sensitivity: int = setting(
        0,
        readers.positive,
        "For ready-made counts: the most by which all counts of a window change together if one person's rows change.",
        "8",
        served=False,
    )
    mechanism: str = setting(
        "tide",
        readers.text,
        "When to measure, and with how much budget: a name, or module:Class; of several statistics also for each, such "
        "as people=ba,sum:fare=uniform.",
        '"tide"',
    )
    parameters: dict[str, Any] = setting(
        {}, readers.table, "A parameter of the mechanism, as JSON; there may be several.", "{ k = 3 }", option="set"
    )
    filter: str = setting(
        "truncate",
        readers.text,
        "What is made of the noisy counts: truncate (whole numbers from 0 up), kalman, posterior-median, repeat (as "
        "measured), or none (the mechanism's own); of several statistics also for each, such as people=kalman.",
        '"truncate"',
    )
    seasons: str | tuple[float, ...] = setting(
        "",
        readers.seasons,
        "Seasons that tide learns: periods in steps such as 24,168, auto (the day and the week, where a step has a "
        "length), or none.",
        '"auto"',
        left_out="auto with a cap, else none",
    )
    population: str = setting("everybody", readers.text, "Whose events these are.", '"residents"')
    keep: int = setting(
        0,
        readers.steps_or_duration,
        "How long releases are kept in the store, such as 400d; charges are kept for ever.",
        '"400d"',
        left_out="for ever",
    )
    queries: tuple[Query, ...] = setting(
        (), readers.as_written, "Answer the window queries of this TOML file.", '"queries.toml"', "FILE"
    )
    queries_epsilon: Fraction = setting(
        Fraction(0), readers.budget, "Their share of epsilon; the releases of every step get the rest.", "0.3"
    )
    queries_of: str = setting(
        "bins", readers.one_of(OF), "Answer queries for every bin (bins), or for all together (total).", '"bins"'
    )

    def __init__(self, **options: Unpack[StreamOptions]) -> None:
        self._make(options)

    def _make(self, options: Mapping[str, Any]) -> None:
        defaults = defaults_of(type(self))  # what is as if it were left out need not be read
        plain = {name: _plain(name, value) for name, value in options.items()}
        given = {name: value for name, value in plain.items() if name not in defaults or value != defaults[name]}
        self._take(self._right(given, Path(), str))

    @classmethod
    def read(cls, written: Mapping[str, Any], folder: Path = Path(), label: Callable[[str], str] = str) -> Self:
        """The description that was written; an error calls a setting what `label` calls it.

        Files are looked for in `folder`.
        """
        return cls.of(cls._right(written, folder, label))

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The description with these values, which `examine` gave."""
        made = object.__new__(cls)
        made._take(values)
        return made

    @classmethod
    def examine(cls, written: Mapping[str, Any], folder: Path = Path()) -> tuple[dict[str, Any], list[Mistake]]:
        """What was written as it is meant, as far as it is right, with all defaults; and every mistake."""
        reading = StreamReading(cls, written, folder)
        return reading.values, reading.mistakes

    @classmethod
    def for_mechanism(cls, mechanism: Mechanism, options: EventOptions) -> Self:
        """What makes a feed for this mechanism: of events where the length of a step is given, else of counts."""
        from eventide.events.statistic_names import parse_statistic, with_step

        if step := options.get("step"):
            told: dict[str, Any] = {name: readers.of_columns(options.get(name) or ()) for name in ("between", "edges")}
            told["quantiles"] = readers.parts(options.get("quantiles", ()))
            of_one = parse_statistic(with_step(options.get("statistic", "events"), step), **told).sensitivity(1)
            most = {"max_per_step": max(1, mechanism.sensitivity // of_one)}
        else:
            most = {"sensitivity": mechanism.sensitivity}
        mode = getattr(mechanism, "pan_private", None)
        own = {} if mode is None else {"parameters": {"pan_private": mode}}
        spec = cls.read({**options, "bins": mechanism.bins, **most, **own})
        if spec.bins != mechanism.bins:
            raise InputError(f"the bin {spec.other!r} for other events is not in the list; add it there")
        return spec

    @classmethod
    def _right(cls, written: Mapping[str, Any], folder: Path, label: Callable[[str], str]) -> dict[str, Any]:
        if strange := written.keys() - settings_of(cls).keys():
            raise TypeError(unknown("setting", min(strange), settings_of(cls)))
        values, mistakes = cls.examine(written, folder)
        if mistakes:
            raise InputError(mistakes[0].told(label))
        return values

    def _take(self, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def need(self, *names: str, label: Callable[[str], str] = str) -> None:
        """Refuse a description in which one of these settings is left out."""
        for name in names:
            if not (value := getattr(self, name)):
                example = settings_of(type(self))[name].example.strip('"')
                or_0 = "" if isinstance(value, str | tuple) else " or 0"
                raise InputError(Mistake(name, f"is missing{or_0}; give it, such as {example}").told(label))

    def timeline(self) -> Timeline:
        """The times of the stream's steps."""
        from eventide.events.timeline import Timeline

        self.need("step", "start")
        return Timeline(self.start, self.step, self.zone)

    @property
    def one_by_one(self) -> bool:
        """Whether events may be held nowhere but in noisy cells."""
        return self.parameters.get("pan_private") is not None

    def reader(self, *, zone_is_given: bool = True) -> EventReader:
        """What reads the stream's events, new; without a given zone, mixed ones are a mistake that a feed finds."""
        from eventide.events.reader import Columns, EventReader

        self.need("bins")
        columns = Columns(self.time, self.user, self.bin)
        zone = self.zone if zone_is_given or self.zone != defaults_of(type(self))["zone"] else None
        how: dict[str, Any] = {"time_format": self.time_format, "grid": self.made_statistic().grid}
        return EventReader(self.bins, columns, other=self.other, zone=zone, **how)

    def counting(self) -> dict[str, Any]:
        """What an `EventFeed` of the stream's events is made with, where the start is given."""
        return {"timeline": self.timeline(), "reader": self.reader()} | self._limits()

    def _limits(self) -> dict[str, Any]:
        bounds: dict[str, Any] = {"max_per_step": self.max_per_step, "cap": self.cap_in_steps()}
        bounds["statistic"] = self.made_statistic()
        return bounds | {"late": self.late, "until": self.until}

    def counted_bins(self) -> tuple[str, ...] | None:
        """The bins that ready-made counts have; None where they say it themselves."""
        return tuple(name for name in self.bins if not is_spare(name)) or None

    def made_statistic(self) -> Statistic:
        """What is published of the events."""
        from eventide.events.statistic_names import parse_statistic

        return parse_statistic(self.statistic, self.between, self.edges, self.quantiles).for_bins(len(self.bins))

    def cap_in_steps(self) -> Cap | None:
        """The cap with its block as a number of steps, if there is one."""
        from eventide.events.caps import parse_cap

        return parse_cap(self.cap, self.step) if self.cap else None

    def feed(
        self,
        source: Paths | EventSource,
        *,
        follow: bool = False,
        continue_with: str | Path | None = None,
        clock: Clock | None = None,
        clients: str | Path | None = None,
        zone_is_given: bool = True,
    ) -> Feed:
        """A feed of one or more files, of standard input ("-"), of an address, or of a source of events.

        Without the length of a step a file holds counts. follow: go on as the file grows. continue_with: where to begin
        if the file that was followed before is not to be found. clock: what time it is; the machine's where left out.
        clients: a file of client settings, for an address. zone_is_given: whether somebody chose the zone, though it be
        the default. What was opened is let go of again if the feed cannot be made.
        """
        from eventide.events.clock import SystemClock
        from eventide.events.files.members import one_path
        from eventide.live.feeds.count_feed import CountFeed
        from eventide.live.feeds.event_feed import EventFeed
        from eventide.live.feeds.noisy_feed import NoisyFeed
        from eventide.live.sources.base import EventSource
        from eventide.live.sources.growing_file import GrowingFile
        from eventide.live.sources.open_source import open_source
        from eventide.streams.count_files import open_counts

        if not self.step:
            if isinstance(source, EventSource):
                raise InputError("a source of events needs the length of a step; give one, such as 10min")
            return CountFeed(open_counts(one_path(source), self.counted_bins()))
        reader, clock = self.reader(zone_is_given=zone_is_given), clock or SystemClock()
        if isinstance(source, EventSource):
            events = source
        else:
            how: dict[str, Any] = {"follow": follow, "continue_with": continue_with, "clients": clients}
            events = open_source(source, clock, one_by_one=self.one_by_one, **how)
        try:
            timeline = self.timeline() if self.start else self._timeline_of(events, reader, clock)
            if isinstance(events, GrowingFile):
                events.begin_at(timeline.start)
            made = NoisyFeed if self.one_by_one else EventFeed
            return made(events, timeline, reader, clock, **self._limits())
        except BaseException:
            events.close()
            raise

    def _timeline_of(self, source: EventSource, reader: EventReader, clock: Clock) -> Timeline:
        """The time line where nobody says when it begins."""
        from eventide.events.timeline import Timeline
        from eventide.live.sources.complete_files import CompleteFiles
        from eventide.live.sources.frame_events import FrameEvents

        if isinstance(source, CompleteFiles | FrameEvents):
            longest = max([self.step, *self.made_statistic().slots], key=milliseconds)
            return Timeline.around(source.first_time(reader), longest, self.zone).cut(self.step)
        today = Timeline.around(clock.now(), "1d", self.zone)  # the clock is public
        timeline = Timeline(today.iso(0), self.step, self.zone)
        timeline.from_clock = True
        return timeline

    def build_mechanism(self) -> Mechanism:
        """The stream's mechanism, new; of epsilon it has what window queries leave."""
        from eventide.live.stream_mechanism import mechanism_of

        self.need("epsilon", "window", "bins")
        return mechanism_of(self)

    def questions(self) -> Questions | None:
        """The window queries that are answered beside the releases, if there are any."""
        from eventide.live.publisher.window_queries import Questions

        if not (self.queries and self.queries_epsilon):
            return None
        return Questions(self.queries, self.queries_epsilon, self.queries_of, truncate=self.filter == "truncate")


def _plain(name: str, value: Any) -> Any:
    """What was given in Python for a setting, as lists and mappings; an error shows nothing of what may be data."""
    is_frame = hasattr(value, "columns") and hasattr(value, "shape")
    if name == "levels":
        return _levels_of_frame(value) if is_frame else value
    if is_frame:
        raise InputError(f"{name} cannot be a frame; {_INSTEAD.get(name, 'see help(eventide.StreamSpec)')}")
    if name in ("statistic", "between", "edges") and (hasattr(value, "to_list") or hasattr(value, "to_pylist")):
        raise InputError(f"{name}: give text or a list of texts, not a column")
    listed = readers.listed(value)
    if name in OF_ROWS and not isinstance(listed, str | None):
        raise InputError(
            f"{name}: give the name of the column, such as {name}={OF_ROWS[name]!r}, not the column itself; of several "
            "columns make one"
        )
    if name == "bins":
        if isinstance(value, set | frozenset):
            return sorted(value, key=str)  # or each process had another order
        if listed is not value and isinstance(listed, list) and len(set(map(str, listed))) < len(listed):
            raise InputError(f"bins: names must differ; {_INSTEAD[name]}, not the column of the events")
    return listed


def _levels_of_frame(frame: Any) -> dict[str, dict[str, str]]:
    """Levels in a frame that has what a file of levels has: the bins, then the group of each in a column a level."""
    from eventide.events.levels import levels_of_rows
    from eventide.events.texts import texts
    from eventide.streams.frames import open_frame

    opened = open_frame(frame)
    columns: list[list[str]] = [[] for _ in opened.columns]
    for batch in opened.read(opened.columns):
        for column, name in zip(columns, opened.columns, strict=True):
            column += [cell.decode(errors="replace") for cell in texts(batch.column(name)).to_pylist()]
    return levels_of_rows(opened.columns, list(zip(*columns, strict=True)), "levels", "row", 1)


StreamSpec.__doc__ = f"{StreamSpec.__doc__}" + "".join(
    f"{name}\n        {each.help}\n    " for name, each in settings_of(StreamSpec).items()
)
