"""What `eventide choose` was asked for, checked and with durations as steps: a history, or a description of one."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from eventide.cli.settings import parse_settings
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.bench.choose.history import History
    from eventide.bench.choose.people import People
    from eventide.events.caps import Cap

NEEDS = "which says how long a step is"
READING = ("time", "time_format", "user", "bin", "other", "start", "until", "zone")  # as `publish` reads events
ONLY_COUNTED = ("time_format", "other", "start", "until", "zone")  # where --bins says that events are counted
COUNT_THEM = "is for events that are counted; give all bins with --bins"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The options as they were given; what is left out is None or empty."""

    history: str | None
    epsilon: float
    window: str | None
    hide: str | None
    step: str | None
    span: str | None
    user: str | None
    time: str | None
    bin: str | None
    time_format: str | None
    other: str | None
    start: str | None
    until: str | None
    zone: str | None
    people: int | None
    events_per_week: float | None
    caps: tuple[str, ...]
    bins: str | None
    levels: str | None
    level: float | None
    amplitude: float | None
    season: int | None
    steps: int | None
    mechanisms: tuple[str, ...]
    settings: tuple[str, ...]
    sensitivity: int
    repetitions: int | None
    seed: int

    @property
    def about_people(self) -> bool:
        """Whether a cap is asked for."""
        if self.counts_events:
            for name in ("people", "events_per_week", "caps"):
                self._refuse(name, "is for choosing a cap; leave it out, or --bins, which says that events are counted")
            return False
        for name in ONLY_COUNTED:
            self._refuse(name, COUNT_THEM)
        if (self.user, self.people) == (None, None):
            for name in ("time", "bin"):
                self._refuse(name, f"{COUNT_THEM}, or for choosing a cap name the column of people with --user")
            for name in ("events_per_week", "caps"):
                self._refuse(name, "is for choosing a cap; name the column of people with --user, or give --people")
        elif self.span is not None:
            raise InputError("--span asks for a histogram of counts, and caps are for people; leave one of them out")
        return self.user is not None or self.people is not None

    @property
    def counts_events(self) -> bool:
        """Whether HISTORY holds events, to be counted in the bins of --bins as `publish` counts them."""
        return self.history is not None and self.bins is not None and bool(self._described(*READING))

    @property
    def hidden(self) -> int | None:
        """How many steps must not show; a duration may begin in the middle of a step."""
        from eventide.events.durations import milliseconds

        if self.hide is None or self.step is None or self.hide.isdecimal():
            return None if self.hide is None else self._steps("--hide", self.hide)
        return -(-milliseconds(self.hide) // milliseconds(self.step)) + 1

    @cached_property
    def protected(self) -> int:
        """How many steps are protected together."""
        found = self.hidden if self.window is None else self._steps("--window", self.window)
        if found is None:
            raise InputError(
                "--window is missing; say how many steps are protected together, or with --hide what to hide"
            )
        return found

    @property
    def histogram_steps(self) -> int:
        """How many last steps the histogram is about."""
        if self.hide is not None and self.window is not None:
            raise InputError("--hide gives advice on the window; with --span give --window alone")
        return self._steps("--span", self.span or "")

    def study(self) -> dict[str, Any]:
        """What every choice takes."""
        named = [name.strip() for several in self.mechanisms for name in several.split(",")]
        parameters = parse_settings(self.settings, fixed=("sensitivity", "window_sensitivity", "filter"))
        if parameters and not named:
            raise InputError("--set is for a mechanism that is named; name it with --mechanism")
        return {
            "epsilon": self.epsilon,
            "window": self.protected,
            "mechanisms": named or None,
            "parameters": parameters,
            "repetitions": self.repetitions,
            "seed": self.seed,
        }

    def counts(self) -> History:
        """The counts to try mechanisms on."""
        from eventide.bench import describe
        from eventide.bench.choose.history import read_history
        from eventide.events.bins import parse_bins

        described = self._described("amplitude", "season", "steps")
        if self.history is not None and (described or self.level is not None):
            raise InputError(
                "a HISTORY and a description exclude each other; leave out --level and its like, or the file"
            )
        if self.history is not None:
            steps = self.protected if self.span is None else max(self.protected, self.histogram_steps)
            if self.counts_events:
                return self._counted(steps)
            return read_history(self.history, steps, None if self.bins is None else parse_bins(self.bins))
        if self.level is None:
            raise InputError(
                "there is nothing to try mechanisms on; give a HISTORY file, or describe a stream with --level"
            )
        return describe(level=self.level, bins=self._number_of_bins(), **described)

    def _counted(self, window: int) -> History:
        """The events of HISTORY, counted and bounded by user as `publish` would; the same ones count every time."""
        from contextlib import closing
        from dataclasses import replace

        from eventide.bench.choose.history import kept_history
        from eventide.cli.publish import option_of
        from eventide.live.feeds.base import Resume
        from eventide.live.feeds.event_feed import EventFeed
        from eventide.live.feeds.first_rows import MOST_REFUSED, MostRowsRefused
        from eventide.live.stream_spec import StreamSpec

        if self.step is None:
            raise InputError(f"counting events needs --step, {NEEDS}")
        told = self._described("step", *READING, "bins")
        spec = StreamSpec.read(told | {"max_per_step": self.sensitivity}, label=option_of)
        words = [word for name, value in told.items() for word in (option_of(name), str(value))]
        with closing(spec.feed(str(self.history), zone_is_given="zone" in told)) as feed:
            closed = feed.steps(Resume(0, None, bytes(16), [], check_first_rows=True))
            rows = (step.counts for step in closed if step is not None)
            try:
                found = kept_history(rows, spec.bins, str(self.history), window, (str(self.history), *words))
            except MostRowsRefused as refused:  # its own words are for who publishes
                raise InputError(f"{MOST_REFUSED}, so nothing can be tried. Most often: {refused.reason}") from None
            if not (isinstance(feed, EventFeed) and feed.counters.accepted):
                return found
            return replace(found, left_out=feed.left_out / feed.counters.accepted)

    def events(self) -> People:
        """The people to try caps on."""
        from eventide.bench import describe_people, read_people

        for name in ("level", "amplitude"):
            self._refuse(name, "describes counts, and caps are for people; leave it out")
        self._refuse("levels", "is for choosing a mechanism; leave it out, or --user and --people")
        if self.step is None:
            raise InputError(f"choosing a cap needs --step, {NEEDS}")
        described = self._described("people", "events_per_week", "season", "steps")
        if self.user is None:
            if self.history is not None:
                raise InputError("a HISTORY and described people exclude each other; leave out --people, or the file")
            if self.events_per_week is None:
                raise InputError("--people needs --events-per-week: how many events one has in a week, on average")
            return describe_people(step=self.step, bins=self._number_of_bins(), seed=self.seed, **described)
        if self.history is None or described or self.bins is not None:
            raise InputError(
                "--user names a column of a HISTORY of events; give that file, and leave out what describes people, "
                "and --bins, since its bins are those that occur"
            )
        columns = {"time": self.time} if self.time else {}
        return read_people(self.history, self.step, self.protected, self.user, bin=self.bin, **columns)

    def tried_caps(self) -> list[Cap] | None:
        """The caps that are named."""
        from eventide.events.caps import parse_cap

        return [parse_cap(cap, self.step or "") for cap in self.caps] or None

    def _described(self, *names: str) -> dict[str, Any]:
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    def _number_of_bins(self) -> int:
        if self.bins is not None and not self.bins.isdecimal():
            raise InputError(f"--bins {self.bins} must be a number for a described stream")
        return int(self.bins or 1)

    def _refuse(self, name: str, reason: str) -> None:
        if getattr(self, name):
            raise InputError(f"--{'cap' if name == 'caps' else name.replace('_', '-')} {reason}")

    def _steps(self, option: str, text: str) -> int:
        """A number of steps, given as such or as a duration."""
        from eventide.events.durations import steps_of_window

        if self.step is None and not text.isdecimal():
            raise InputError(f"{option} {text} needs --step, {NEEDS}; or give a number of steps")
        return steps_of_window(text, self.step)
