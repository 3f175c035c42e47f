"""Reads the settings of a stream to the end, whatever it meets: first each by itself, then those that need others.

Every mistake is kept with the setting that it is about, so that whoever wrote it can be shown the place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from eventide.errors import EventideError, InputError, unknown
from eventide.events.durations import milliseconds, steps_of_window
from eventide.live import setting_readers as readers
from eventide.live.setting_readers import defaults_of, settings_of
from eventide.mechanisms.registry import MECHANISMS, find_mechanism

if TYPE_CHECKING:
    from eventide.events.statistics import Statistic
    from eventide.windows.workload import Query

OF_THE_STREAM = {
    "epsilon",
    "window",
    "bins",
    "sensitivity",
    "window_sensitivity",
    "filter",
    "seasons",
    "replicas",
    "seed",
}
REFERRED = re.compile(
    "`(user|max_per_step|queries|cap|step|between|edges|quantiles)`"
)  # settings that a sentence about another one names

Found = TypeVar("Found")


class Mistake(NamedTuple):
    """What is wrong with a setting; other settings stand in `backquotes`."""

    field: str
    sentence: str

    def told(self, label: Callable[[str], str] = str) -> str:
        """The same for whoever calls settings in his own way, such as --max-per-step."""
        sentence = REFERRED.sub(lambda found: label(found[1]), self.sentence)
        return f"{label(self.field)}{' ' if sentence.startswith('is missing') else ': '}{sentence}"


class StreamReading:
    """Reads the settings of a class; `values` are those that are right, and the defaults of all others."""

    def __init__(self, cls: type[Any], written: Mapping[str, Any], folder: Path) -> None:
        self._defaults, self._folder, self._wrong = defaults_of(cls), folder, set[str]()
        self.values, self.mistakes = defaults_of(cls), list[Mistake]()
        for name, each in settings_of(cls).items():
            if written.get(name) is not None:
                self._set(name, partial(each.read, written[name]))
        self._read_together()
        self._check_times()
        self._check_mechanism()
        self._check_statistic()
        self._check_bounds()
        self._check_share()

    def _read_together(self) -> None:
        window, bins, queries, step = (self.values[name] for name in ("window", "bins", "queries", "step"))
        if isinstance(window, str):
            self._set("window", lambda: steps_of_window(window, step or None) if self._is_right("step") else 0)
        if step and self._is_right("step", "window"):
            self._look("statistic", self._cut_into_slots)
            step = self.values["step"]
        if isinstance(keep := self.values["keep"], str):
            self._set("keep", lambda: self._steps_kept(keep, step) if self._is_right("step") else 0)
        levels = self.values["levels"]
        if levels and step and not bins:  # which are never taken from events
            bins = self._look("levels", lambda: self._bins_of_levels(levels)) or ()
        if bins:
            self._set("bins", lambda: self._with_spares(self._bins(bins, self.values["other"])))
        if levels is not None and self._is_right("levels", "bins"):
            self._set("levels", lambda: self._levels(levels, self.values["bins"]))
        if queries:
            self._set("queries", lambda: self._queries(queries, step or None) if self._is_right("step") else ())

    def _cut_into_slots(self) -> None:
        """Of people of slots alone the steps that are published are the slots, and the window is counted in them.

        Beside others they are told the length of a step.
        """
        from eventide.events.slot_times import refuse_no_slot
        from eventide.events.slots import slots_met
        from eventide.events.statistic_names import with_step
        from eventide.events.statistics import SLOTS

        values, written = self.values, self.values["statistic"]
        step, window = values["step"], values["window"]
        if not isinstance(written, str):
            values["statistic"] = with_step(written, step)
            for name in values["statistic"]:
                if name.startswith(SLOTS):
                    refuse_no_slot(*name.removeprefix(SLOTS).split("/"))
            return
        slot = written.removeprefix(SLOTS) if written.startswith(SLOTS) else ""
        if not slot or "/" in slot:  # which was done before
            return
        met = slots_met(window or 1, step, slot, values["start"], values["zone"])
        values |= {"statistic": f"{written}/{step}", "step": slot, "window": window and met}

    def _steps_kept(self, written: str, step: str) -> int:
        if written.isdecimal():
            return int(written)
        if not step:
            raise InputError(f"{written} needs the length of a step; for ready-made counts write a number of steps")
        return -(-milliseconds(written) // milliseconds(step))

    def _bins(self, written: Any, other: str | None) -> tuple[str, ...]:
        from eventide.events.bins import checked_names, parse_bins, with_other

        if isinstance(written, str | int | Path):
            path = self._folder / str(written)
            return with_other(parse_bins(str(path) if path.is_file() else str(written)), other)
        names = [readers.bin_name(each) for each in written]
        return with_other(checked_names(names, "the list", "bin", shown=False), other)

    def _levels(self, written: Any, bins: tuple[str, ...]) -> Any:
        """The levels of the bins; of counts that still have to say their bins, what a file says of them."""
        from eventide.events.levels import Levels, read_levels, with_spare_groups

        given = read_levels(self._folder / written) if isinstance(written, str | Path) else written
        if self.values["spare_bins"] and bins:
            given = with_spare_groups(given, bins)
        return Levels.of(given, bins) if bins else given

    def _with_spares(self, bins: tuple[str, ...]) -> tuple[str, ...]:
        from eventide.events.bins import with_spares

        number = self.values["spare_bins"] if self._is_right("spare_bins") else 0
        return with_spares(bins, number) if number else bins

    def _bins_of_levels(self, written: Any) -> tuple[str, ...]:
        """The bins that levels name, of a file or a frame, where nothing else does."""
        from eventide.events.levels import bins_in

        if isinstance(written, str | Path):
            return bins_in(self._folder / written)
        groups = next(iter(written.values())) if isinstance(written, Mapping) else ()
        return tuple(groups) if isinstance(groups, Mapping) else ()

    def _queries(self, written: Any, step: str | None) -> tuple[Query, ...]:
        from eventide.windows.query_files import read_queries

        return tuple(read_queries(self._folder / written, step) if isinstance(written, str | Path) else written)

    def _check_times(self) -> None:
        from eventide.events.timeline import parse_time
        from eventide.events.zones import Zone

        zone = self._look("zone", lambda: Zone(self.values["zone"]))
        for name in ("start", "until"):
            if self.values[name] and zone is not None:
                self._look(name, partial(parse_time, self.values[name], zone))

    def _check_mechanism(self) -> None:
        from eventide.filters.registry import names as filter_names
        from eventide.privacy.noise import PRIVATE_NAMES

        filters = [*filter_names(), "none"]
        for name in self._chosen("mechanism"):
            if ":" in name:
                self._look("mechanism", partial(find_mechanism, name))
            elif name not in MECHANISMS:
                self._note("mechanism", unknown("mechanism", name, MECHANISMS))
        for name in self._chosen("filter"):
            if name not in filters:
                self._note("filter", unknown("filter", name, filters))
        for parameter, value in self.values["parameters"].items():
            if parameter in OF_THE_STREAM:
                self._note("parameters", f"{parameter!r} is decided elsewhere; leave it out here")
            elif parameter == "noise" and isinstance(value, str) and value not in PRIVATE_NAMES:
                self._note("parameters", f"the noise must be {' or '.join(PRIVATE_NAMES)}; nothing else is private")

    def _chosen(self, setting: str) -> list[str]:
        """What was chosen: one for all statistics, or some for single ones."""
        told = self._look(setting, lambda: readers.of_each(self.values[setting]))
        return [] if told is None else list(told.values()) or [self.values[setting]]

    def _check_bounds(self) -> None:
        values = self.values
        if values["parameters"].get("pan_private") is not None:
            self._check_cells()
        elif values["max_per_step"] > 1 and not values["user"]:
            self._note("max_per_step", "it bounds the events of a person; name what holds the person, as `user`")
        if values["sensitivity"] > 1 and values["user"]:
            self._note("sensitivity", "it is for ready-made counts; of events `max_per_step` says how many count")
        if values["window_sensitivity"] and values["user"]:
            self._note("window_sensitivity", "it is for ready-made counts; of events `cap` says how many count")
        if values["cap"] and not values["user"]:
            self._note("cap", "it bounds the events of a person; name what holds the person, as `user`")
        elif values["cap"] and self._is_right("step", "cap"):
            self._look("cap", self._check_cap)

    def _check_cells(self) -> None:
        """Where events are held in noisy cells alone, nobody is remembered and nothing else is made of them."""
        for name in ("user", "cap"):
            if self.values[name]:
                self._note(
                    name,
                    "a limit per person has to remember who was seen, and pan_private remembers nobody; leave it out, "
                    "and with `max_per_step` say how many events of one person a step has at most, which is trusted",
                )
        if self.values["statistic"] != "events":
            self._note("statistic", "pan_private counts events and nothing else; leave one of them out")
        for name in ("levels", "queries", "spare_bins"):
            if self.values[name] not in (None, (), 0):
                self._note(name, "pan_private is for releases of bins alone; leave one of them out")

    def _check_cap(self) -> None:
        from eventide.events.caps import parse_cap

        written, window, most = (self.values[name] for name in ("cap", "window", "max_per_step"))
        cap = parse_cap(written, self.values["step"])
        if cap.events < most:
            raise InputError(f"it counts less in a block than the {most} of `max_per_step` in a step; make it larger")
        if window and (bound := cap.window_sensitivity(window, most)) >= window * most:
            raise InputError(
                f"{written} brings nothing: in a window of {window} steps one person still changes the counts by up to "
                f"{bound}, and without a cap by {window * most}; choose fewer events or a longer time, or leave it out"
            )

    def _check_statistic(self) -> None:
        from eventide.events.statistic_names import parse_statistic
        from eventide.events.statistics import EVENTS

        values = self.values
        told = (values[name] for name in ("statistic", "between", "edges", "quantiles"))
        statistic = self._look("statistic", lambda: parse_statistic(*told))
        if statistic is None or not self._is_right("statistic", "between", "edges", "quantiles", "split"):
            return
        self._check_each(statistic)
        if statistic is EVENTS:
            return
        if values["spare_bins"] and not statistic.direct:
            self._note("spare_bins", f"{statistic.name} cannot have bins that come and go; leave it out")
        if not values["step"] and self._is_right("step"):
            self._note("statistic", "it is made of events; give the length of a step, as `step`, or leave it out")
        if statistic.needs_users and not values["user"]:
            self._note("statistic", f"{statistic.name} need a person; name what holds the person, as `user`")
        given = {"cap": values["cap"], "levels": values["levels"] is not None, "queries": values["queries"]}
        for setting in given.keys() - statistic.takes:
            if given[setting] and setting == "cap" and statistic.slots:
                self._note(
                    "cap",
                    "people of slots beside other statistics cannot have one; leave it out, or give them a store of "
                    "their own and let both draw from one account",
                )
            elif given[setting]:
                self._note(setting, f"{statistic.name} cannot be published with it; leave one of them out")
        if (
            values["levels"] is not None
            and "levels" in statistic.takes
            and not statistic.adds_up(values["max_per_step"])
        ):
            self._note("levels", f"{statistic.name} in several bins do not add up; leave levels out, or `max_per_step`")

    def _check_each(self, statistic: Statistic) -> None:
        """Every statistic has a part, where any has; and each is measured by a mechanism that can be one of several.

        What was chosen for the only statistic is as if it were chosen for all.
        """
        from eventide.events.several_statistics import SeveralStatistics

        parts = statistic.parts if isinstance(statistic, SeveralStatistics) else ()
        names = [part.name for part in parts]
        if (split := self.values["split"]) and set(split) != set(names):
            every = ", ".join(names) or "several statistics, which there are not"
            self._note("split", f"it must give a part to each of {every}, and to nothing else")
        names = names or [statistic.name]
        for setting in ("mechanism", "filter"):
            if not self._is_right(setting) or not (told := readers.of_each(self.values[setting])):
                continue
            for name in told.keys() - set(names):
                self._note(setting, unknown("statistic", name, names))
            if not parts and self._is_right(setting):
                self.values[setting] = told[statistic.name]
        for name in self._chosen("mechanism") if self._is_right("mechanism") and not statistic.direct else ():
            if not (name in MECHANISMS and find_mechanism(name).takes_levels):
                self._note(
                    "mechanism", f"{name} cannot measure {statistic.name}; choose tide, ba, uniform, sample or hybrid"
                )

    def _check_share(self) -> None:
        share, epsilon = self.values["queries_epsilon"], self.values["epsilon"]
        if share and not self.values["queries"] and self._is_right("queries", "step"):
            self._note("queries_epsilon", "it is a share of epsilon for window queries; name their file with `queries`")
        elif share and epsilon and share >= epsilon:
            left = f"{float(share):g} leaves nothing of epsilon {float(epsilon):g} for releases; give less"
            self._note("queries_epsilon", left)

    def _is_right(self, *names: str) -> bool:
        return not self._wrong & set(names)

    def _set(self, name: str, read: Callable[[], Any]) -> None:
        """Take what is read for the value of a setting, or note why it cannot be."""
        found = self._look(name, read)
        self.values[name] = self._defaults[name] if found is None else found

    def _look(self, name: str, look: Callable[[], Found]) -> Found | None:
        try:
            return look()
        except (EventideError, TypeError, ValueError) as problem:
            self._note(name, str(problem))
            return None

    def _note(self, name: str, sentence: str) -> None:
        self._wrong.add(name)
        self.mistakes.append(Mistake(name, sentence))
