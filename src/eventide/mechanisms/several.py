"""Several statistics as one mechanism: each has a share of epsilon, a mechanism and a filter; all have one ledger.

Somebody's row of a step is in all statistics of it, so their charges at a step add up. Each statistic has a share of
epsilon, fixed beforehand, and decides for itself when to measure; what it measures is charged to its share and to the
common ledger, which the promise is about (`eventide.privacy.part_meter`). What is told of the measured numbers follows
from them alone, and is free.

A statistic of slots of several steps, such as the people of a day beside hourly counts, is measured at the last step of
its slot. Each slot may be charged the n-th part of its share, where n is the most slots that a window meets. The common
ledger holds that as a span from the first step of the slot to the last: fixed before anybody came, so nothing is
charged for the past. A slot of which the first step was not seen is not measured.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn, Unpack

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import InputError, StateError
from eventide.events.several_statistics import SeveralStatistics
from eventide.events.slots import SlotsBesideSteps
from eventide.events.statistic_names import statistic_of
from eventide.events.statistics import Statistic, Told
from eventide.events.timeline import Timeline
from eventide.filters.algorithms import checked_algorithm
from eventide.filters.registry import by_name
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.levels import without_truncation
from eventide.mechanisms.registry import build_mechanism, mechanism_class
from eventide.mechanisms.release import Release
from eventide.mechanisms.saving import as_before
from eventide.privacy.amounts import NANO, SMALLEST, Amount
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.part_meter import PartMeter, SlotMeter
from eventide.privacy.sealed import SealedStep
from eventide.privacy.state import Stateful
from eventide.releases.level_values import LevelValues


class Several(Mechanism):
    """Publishes several statistics of the same events, or one whose numbers are not what is published.

    Guarantee: w-event privacy with epsilon, for all statistics together.

    Epsilon: each statistic has its part, by the given weights; without any, all have the same.

    Parameters
    ----------
    epsilon, window, bins, **common
        As in `Mechanism`. The sensitivity is that of the only statistic, or of several how many events of a person
        count in a step, which is `most`. The filter is that of every statistic that has none of its own.
    statistics
        For each statistic: `statistic`, its name, and as text `between`, `edges` or `quantiles` as it needs them;
        `part`, its weight; `mechanism`, `parameters` and `filter` (a name, where it is not that of all). Of people of
        slots (`people/1d/1h`, with the length of a step), `slots` says how many of them a window meets.
    most
        How many events of a person count in a step.
    algorithm
        Of those that Tide measures, as in `Tide`.

    >>> import eventide as ev
    >>> people = {"statistic": "people", "mechanism": "uniform"}
    >>> fares = {"statistic": "mean:fare", "between": "fare=0,100,1", "mechanism": "uniform"}
    >>> both = Several(2, 1, ["north"], statistics=[people, fares], noise=ev.noise.Zero())
    >>> release = both.release([3, 40, 260])  # three people; their fares are 40 above 0, and 260 below 100
    >>> release.values, release.statistics["mean:fare"].values.round(2)
    (array([3.]), array([13.33]))
    """

    takes_window_sensitivity = True

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        statistics: Sequence[Mapping[str, Any]],
        most: int = 1,
        algorithm: int | None = None,
        **common: Unpack[CommonParameters],
    ) -> None:
        self.algorithm = checked_algorithm(algorithm)
        self.statistics, self.most = [dict(each) for each in statistics], most
        size = bins if isinstance(bins, int) else len(bins)
        parts = [statistic_of(each).for_bins(size) for each in self.statistics]
        if not parts:
            raise InputError("there is no statistic to publish; name one")
        if common.get("levels") is not None:
            raise InputError("several statistics have no levels; leave one of them out")
        whole = parts[0] if len(parts) == 1 else SeveralStatistics(parts)
        if whole.slots and common.get("window_sensitivity") is not None:
            raise InputError("statistics of slots have no window sensitivity in common with others; leave one out")
        self._told_of = list(whole.parts) if isinstance(whole, SeveralStatistics) else parts
        if isinstance(self._told_of[0], SlotsBesideSteps):
            raise InputError("the first statistic must be one that every step has; name slots behind it")
        common.setdefault("sensitivity", whole.sensitivity(most))
        self._whole = whole
        super().__init__(epsilon, window, bins, **common)

    @property
    def numbers(self) -> int:
        """How many numbers a step has: those of all statistics, one statistic behind another."""
        return self.size * self._whole.columns

    @property
    def kept_by_stores(self) -> tuple[str, ...]:
        """The algorithm."""
        return ("algorithm",)

    @property
    def statistics_told(self) -> tuple[str, ...]:
        """The names of all statistics."""
        return tuple(name for statistic in self._told_of for name in statistic.names)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about all of them."""
        return dataclasses.replace(super().guarantee, moved=self._whole.moved, worth=self._whole.unit)

    def covered(self) -> tuple[str, ...]:
        """What the guarantee says about the statistics."""
        names = [statistic.name for statistic in self._told_of]
        return (f"this covers the releases of {', '.join(names)} together",) if len(names) > 1 else ()

    @property
    def statistics_of_slots(self) -> frozenset[str]:
        """The names of those that have no numbers but at the last steps of their slots."""
        return frozenset(each.name for each in self._told_of if isinstance(each, SlotsBesideSteps))

    def each_statistic(self) -> list[tuple[Statistic, Mechanism]]:
        """Every statistic with the mechanism that publishes it; of slots, a step of that is a slot."""
        assert isinstance(self._parts, StatisticParts)
        return self._parts.each()

    def know_times(self, timeline: Timeline, origin: int) -> None:
        """Cut slots by the clocks of a time line, of which step `origin` is step 0 here."""
        assert isinstance(self._parts, StatisticParts)
        self._parts.know_times(timeline, origin)

    def _made_parts(self) -> StatisticParts:
        return StatisticParts(self, self._told_of)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Each statistic decides for itself."""
        _ask_the_parts()

    def budget_allocation(self) -> Ints:
        """Each statistic decides for itself."""
        _ask_the_parts()


class StatisticParts(Stateful):
    """The mechanisms of the statistics of `whole`, and how their releases become one."""

    state = ("_parts",)

    def __init__(self, whole: Several, statistics: Sequence[Statistic]) -> None:
        self._whole, self._statistics, self._origin = whole, statistics, 0
        self._slots = {each.name: each.times() for each in statistics if isinstance(each, SlotsBesideSteps)}
        self._met = {
            each.name: described.get("slots") or each.times().met(whole.window)
            for each, described in zip(statistics, whole.statistics, strict=True)
            if isinstance(each, SlotsBesideSteps)
        }
        shares = _shares(whole)
        slices = SeveralStatistics(statistics).slices(whole.size)
        self._parts = {
            statistic.name: self._part(statistic, share, described, places)
            for statistic, share, described, places in zip(statistics, shares, whole.statistics, slices, strict=True)
        }

    def _part(self, statistic: Statistic, share: int, described: Mapping[str, Any], places: slice) -> Mechanism:
        """The mechanism of one statistic, whose meter charges the ledger of the whole as well."""
        whole, sensitivity = self._whole, statistic.sensitivity(self._whole.most)
        chosen = whole.filter
        if (named := described.get("filter")) is not None:
            chosen = None if named == "none" else by_name(named)
        own: dict[str, Any] = {
            "epsilon": Fraction(share, NANO),
            "window": whole.window,
            "bins": whole.size * statistic.columns,
            "sensitivity": sensitivity,
            "replicas": whole.replicas,
            "filter": chosen if statistic.direct else without_truncation(chosen),
            "noise": whole.source,
        }
        if isinstance(statistic, SlotsBesideSteps):
            own |= {"epsilon": Fraction(share // self._met[statistic.name], NANO), "window": 1}  # of every slot
        elif whole.window_sensitivity is not None:
            own["window_sensitivity"] = whole.window_sensitivity * sensitivity // whole.sensitivity
        name = described.get("mechanism", "tide")
        if not mechanism_class(name).takes_levels:
            raise InputError(f"{name} cannot publish {statistic.name}; choose tide, ba, uniform, sample or hybrid")
        before = as_before(mechanism_class(name))
        if "algorithm" in before:
            before["algorithm"] = whole.algorithm
        part = build_mechanism(name, before | dict(described.get("parameters", {})) | own)
        meter = SlotMeter if isinstance(statistic, SlotsBesideSteps) else PartMeter
        part.meter = meter(whole.meter, part.ledger, places, sensitivity)
        return part

    def know_times(self, timeline: Timeline, origin: int) -> None:
        """Cut slots by the clocks of a time line; refuse more of them in a window than were said."""
        self._origin = origin
        for each in self._statistics:
            if isinstance(each, SlotsBesideSteps):
                self._slots[each.name] = times = each.times(timeline)
                if (met := times.met(self._whole.window)) > self._met[each.name]:
                    raise InputError(
                        f"a window meets {met} slots of {each.name} on these clocks, and the mechanism was made for "
                        f"{self._met[each.name]}; make it with the zone and the start of the stream"
                    )

    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise scale of any statistic, in parts of what one event adds to it."""
        ranges = [np.array(part.noise_range()) / statistic.added_by_event() for statistic, part in self.each()]
        return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))

    def each(self) -> list[tuple[Statistic, Mechanism]]:
        """Every statistic with its mechanism."""
        return [(statistic, self._parts[statistic.name]) for statistic in self._statistics]

    def release(self, step: SealedStep) -> Release:
        """Let every statistic answer that has a number at this step, and say what its answers mean."""
        self._open_slots(step.index)
        answering = {name: self._parts[name].step for name in self._parts if self._answers(name, step.index)}
        released: dict[str, Release] = {}
        try:
            for name in answering:
                released[name] = self._parts[name].take(_meter(self._parts[name]).seal_part(step))
        finally:  # also where one failed, the step is over for all of them
            for name, own_step in answering.items():
                if self._parts[name].step == own_step:
                    self._parts[name].end_step()
                if name in self._slots:
                    self._whole.ledger.close_span(lane=name)
        told = {
            name: found
            for statistic in self._statistics
            for name, found in self._told(statistic, released.get(statistic.name)).items()
        }
        first, *others = told
        charged = np.asarray(self._whole.ledger.charged()).reshape(self._whole.replicas, -1)
        everywhere = released[self._statistics[0].name].fresh_bins
        fresh_bins = np.asarray(self._of_bins(everywhere, self._statistics[0]).any(axis=-1))
        return Release(
            step=step.index,
            values=told[first].values,
            fresh=np.any([each.fresh for each in released.values()], axis=0),
            fresh_bins=fresh_bins,
            scale=told[first].scale,
            spent=charged.max(axis=1),
            low=told[first].low,
            high=told[first].high,
            statistic=first if others else None,
            statistics={name: told[name] for name in others} or None,
        )

    def _open_slots(self, step: int) -> None:
        """Charge the slots that begin with a step."""
        for name, times in self._slots.items():
            if times.begins(self._origin + step):
                self._whole.ledger.open_span(self._parts[name].ledger.nano_epsilon, lane=name)

    def _answers(self, name: str, step: int) -> bool:
        """Whether a statistic has a number at a step: a slot at its last one, if it was charged from the first on."""
        if (times := self._slots.get(name)) is None:
            return True
        return times.ends(self._origin + step) and bool(self._whole.ledger.open_spans(name).any())

    def _told(self, statistic: Statistic, release: Release | None) -> dict[str, LevelValues]:
        """What a release says of a statistic, by its names; of one that has no number now, nothing is known."""
        if release is None:
            nothing = np.full((self._whole.replicas, self._whole.size), np.nan)
            unknown = LevelValues(nothing, np.full_like(nothing, np.inf), np.zeros(len(nothing), np.bool_))
            return dict.fromkeys(statistic.names, unknown)
        return {
            name: LevelValues(found.values, found.scale, release.fresh, found.low, found.high)
            for name, found in statistic.tell(self._found(release, statistic)).items()
        }

    def _found(self, release: Release, statistic: Statistic) -> Told:
        numbers = (release.values, release.scale, release.low, release.high)
        return Told(*(None if each is None else self._of_bins(each, statistic) for each in numbers))  # type: ignore[arg-type]

    def _of_bins(self, numbers: Floats, statistic: Statistic) -> Floats:
        return numbers.reshape(self._whole.replicas, self._whole.size, statistic.columns)


def _shares(whole: Several) -> list[int]:
    """What of epsilon each statistic gets, in nano-epsilon, by its weight: rounded down."""
    weights = [Fraction(str(each.get("part", 1))) for each in whole.statistics]
    if min(weights) <= 0:
        raise InputError("each statistic needs a part of epsilon above 0; give it more, or leave it out")
    parts = [int(whole.nano_epsilon * weight / sum(weights)) for weight in weights]
    if min(parts) < SMALLEST:
        raise InputError("a statistic would get less than 0.000001 of epsilon; give it more, or leave it out")
    return parts


def _meter(part: Mechanism) -> PartMeter:
    assert isinstance(part.meter, PartMeter)
    return part.meter


def _ask_the_parts() -> NoReturn:
    raise StateError("each of several statistics is measured by a mechanism of its own")
