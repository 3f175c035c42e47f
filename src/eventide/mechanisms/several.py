"""Several statistics as one mechanism: each has a share of epsilon, a mechanism and a filter; all have one ledger.

Somebody's row of a step is in all statistics of it, so their charges at a step add up. Each statistic has a share of
epsilon, fixed beforehand, and decides for itself when to measure; what it measures is charged to its share and to the
common ledger, which the promise is about (`eventide.privacy.part_meter`). What is told of the measured numbers follows
from them alone, and is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NoReturn, Unpack

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import InputError, StateError
from eventide.events.several_statistics import SeveralStatistics
from eventide.events.statistics import Statistic, Told, statistic_of
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.mechanisms.levels import without_truncation
from eventide.mechanisms.registry import build_mechanism, mechanism_class
from eventide.mechanisms.release import Release
from eventide.mechanisms.saving import as_before
from eventide.privacy.amounts import NANO, SMALLEST, Amount
from eventide.privacy.part_meter import PartMeter
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
        count in a step, which is `most`. The filter is that of every statistic.
    statistics
        For each statistic: `statistic`, its name, and as text `between`, `edges` or `quantiles` as it needs them;
        `part`, its weight; `mechanism` and `parameters`.
    most
        How many events of a person count in a step.

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
        **common: Unpack[CommonParameters],
    ) -> None:
        self.statistics, self.most = [dict(each) for each in statistics], most
        self._told_of = [statistic_of(each) for each in self.statistics]
        if not self._told_of:
            raise InputError("there is no statistic to publish; name one")
        if common.get("levels") is not None:
            raise InputError("several statistics have no levels; leave one of them out")
        whole = self._told_of[0] if len(self._told_of) == 1 else SeveralStatistics(self._told_of)
        common.setdefault("sensitivity", whole.sensitivity(most))
        self._columns = whole.columns
        super().__init__(epsilon, window, bins, **common)

    @property
    def numbers(self) -> int:
        """How many numbers a step has: those of all statistics, one statistic behind another."""
        return self.size * self._columns

    @property
    def statistics_told(self) -> tuple[str, ...]:
        """The names of all statistics."""
        return tuple(name for statistic in self._told_of for name in statistic.names)

    def covered(self) -> tuple[str, ...]:
        """What the guarantee says about the statistics."""
        names = [statistic.name for statistic in self._told_of]
        return (f"that covers the releases of {', '.join(names)} together",) if len(names) > 1 else ()

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
        self._whole, self._statistics = whole, statistics
        shares = _shares(whole)
        slices = SeveralStatistics(statistics).slices(whole.size)
        self._parts = {
            statistic.name: self._part(statistic, share, described, places)
            for statistic, share, described, places in zip(statistics, shares, whole.statistics, slices, strict=True)
        }

    def _part(self, statistic: Statistic, share: int, described: Mapping[str, Any], places: slice) -> Mechanism:
        """The mechanism of one statistic, whose meter charges the ledger of the whole as well."""
        whole, sensitivity = self._whole, statistic.sensitivity(self._whole.most)
        own: dict[str, Any] = {
            "epsilon": Fraction(share, NANO),
            "window": whole.window,
            "bins": whole.size * statistic.columns,
            "sensitivity": sensitivity,
            "replicas": whole.replicas,
            "filter": whole.filter if statistic.direct else without_truncation(whole.filter),
            "noise": whole.source,
        }
        if whole.window_sensitivity is not None:
            own["window_sensitivity"] = whole.window_sensitivity * sensitivity // whole.sensitivity
        name = described.get("mechanism", "tide")
        if not mechanism_class(name).takes_levels:
            raise InputError(f"{name} cannot publish {statistic.name}; choose tide, ba, uniform, sample or hybrid")
        part = build_mechanism(name, as_before(mechanism_class(name)) | dict(described.get("parameters", {})) | own)
        part.meter = PartMeter(whole.meter, part.ledger, places, sensitivity)
        return part

    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise scale of any statistic, in parts of what one event adds to it."""
        ranges = [np.array(part.noise_range()) * self._whole.most / part.sensitivity for part in self._parts.values()]
        return float(min(low for low, _ in ranges)), float(max(high for _, high in ranges))

    def release(self, step: SealedStep) -> Release:
        """Let every statistic answer, and say what its answers mean."""
        try:
            released = [part.take(_meter(part).seal_part(step)) for part in self._parts.values()]
        finally:  # also where one failed, the step is over for all of them
            for part in self._parts.values():
                if part.step == step.index:
                    part.end_step()
        told = {
            name: LevelValues(found.values, found.scale, each.fresh, found.low, found.high)
            for statistic, each in zip(self._statistics, released, strict=True)
            for name, found in statistic.tell(self._found(each, statistic)).items()
        }
        first, *others = told
        charged = np.asarray(self._whole.ledger.charged()).reshape(self._whole.replicas, -1)
        fresh_bins = np.asarray(self._of_bins(released[0].fresh_bins, self._statistics[0]).any(axis=-1))
        return Release(
            step=step.index,
            values=told[first].values,
            fresh=np.any([each.fresh for each in released], axis=0),
            fresh_bins=fresh_bins,
            scale=told[first].scale,
            spent=charged.max(axis=1),
            low=told[first].low,
            high=told[first].high,
            statistic=first if others else None,
            statistics={name: told[name] for name in others} or None,
        )

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
