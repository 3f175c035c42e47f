"""A mechanism with levels: the same mechanism for the bins, for each level of groups and for the total, as one.

Somebody in a bin is in one group of each level, so the charges of all levels at a step add up, in one ledger. Each
level has a share of epsilon, fixed beforehand from public facts, and decides for itself when to measure. What the
levels say is then made to add up (`eventide.filters.adding_up`), which is free.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from eventide.arrays import Bools, Floats, Ints
from eventide.errors import InputError
from eventide.events.levels import BIN, Levels
from eventide.filters.adding_up import AddingUp, Estimate, Runs
from eventide.filters.base import Filter, Repeat
from eventide.filters.truncate import Truncate, truncated_interval
from eventide.mechanisms.release import Release
from eventide.privacy.amounts import NANO, SMALLEST, nano
from eventide.privacy.level_meter import LevelMeter
from eventide.privacy.measured import Measured, together
from eventide.privacy.partition import Partition
from eventide.privacy.sealed import SealedStep
from eventide.privacy.state import Stateful
from eventide.releases.level_values import LevelValues

if TYPE_CHECKING:
    from eventide.mechanisms.base import Mechanism

LEAST_ABOVE, MOST_ABOVE = Fraction(1, 20), Fraction(1, 5)  # what levels take where each lies inside the next
MANY_BINS = 250  # so many, or more, leave them the most
OF_CROSSING = Fraction(2, 5)  # what a level above takes of what the bins keep, on average, where levels cross
COMMON = 0.5  # of filtered estimates: how much bins of a group err together, next to the variance of each
GIVES_WAY = 0.1  # of filtered estimates: the variance of a level counts so much less than that of one it has heard
NINE_IN_TEN = 1.645  # deviations to either side of a normal mean hold so much


def checked_levels(mechanism: Mechanism, levels: Any) -> Levels | None:
    """The levels that were given, None where there are none, or a refusal."""
    if levels is None:
        if mechanism.level_split is not None:
            raise InputError("level_split says how levels share epsilon; give levels as well")
        return None
    if reason := _reason_against(mechanism):
        raise InputError(f"{type(mechanism).__name__} cannot have levels: {reason}")
    return Levels.of(levels, mechanism.bins)


def _reason_against(mechanism: Mechanism) -> str | None:
    if not mechanism.takes_levels:
        return "it was not made for them; choose tide, ba, uniform, sample or hybrid"
    if mechanism.accounts_per_bin:
        return "accounting='fixed-bin' gives every bin a budget of its own, and levels share one; leave it out"
    if getattr(mechanism, "pan_private", None) is not None:
        return "pan_private covers a single list of bins only; leave it out"
    if getattr(mechanism, "groups", None) not in (None, 1, "auto"):
        return "groups divides the bins of every level, and the total is a single one; leave groups out"
    return None


def shares(levels: Levels, budget: int, given: Mapping[str, Any] | None = None) -> dict[str, int]:
    """What of a budget each level gets, in nano-epsilon: by `given` weights, else by the rule of `default_split`."""
    split = default_split(levels) if given is None else _checked_split(given, levels)
    whole = sum(split.values())
    parts = {name: int(budget * weight / whole) for name, weight in split.items()}  # rounded down
    if (least := min(parts, key=parts.__getitem__)) and parts[least] < SMALLEST:
        raise InputError(f"level {least!r} would get less than 0.000001 of epsilon; give it more, or leave it out")
    return parts


def _checked_split(given: Mapping[str, Any], levels: Levels) -> dict[str, Fraction]:
    wanted = (BIN, *levels.names)
    if set(given) != set(wanted):
        raise InputError(f"level_split must give a share to each of {', '.join(wanted)}, and to nothing else")
    try:
        return {name: Fraction(nano(given[name]), NANO) for name in wanted}
    except (InputError, TypeError, ValueError):
        raise InputError(
            "level_split gives every level a share above 0, such as 0.1, since each is measured; to do without one, "
            "leave it out of levels"
        ) from None


def default_split(levels: Levels) -> dict[str, Fraction]:
    """The part of epsilon for each level, the bins first: a rule from public facts alone.

    It is near the least sum, over all levels, of errors relative to those of sums over bins without levels. In a chain
    of levels, each inside the next, those above tell the bins little, and the sum over few bins is sharp anyway: they
    take a fifth beside 250 bins or more, less beside fewer, and share it so that the sum of sqrt(groups) / share, those
    errors where levels hear nothing from below, is smallest. Levels that cut across each other tell the bins much, and
    take 0.4 times what the bins keep, on average, the more groups the more. `benchmarks/levels.py` searches for better
    ones.
    """
    labels = list(levels.labels.values())
    chain = all(_inside(small, large) for small, large in pairwise(labels))
    above = min(max(MOST_ABOVE * len(levels.bins) / MANY_BINS, LEAST_ABOVE), MOST_ABOVE)
    bins, power = (1 - above, 0.25) if chain else (1 / (1 + OF_CROSSING * len(labels)), 0.75)
    weights = {level: Fraction(round(1000 * len(groups) ** power)) for level, groups in levels.groups.items()}
    return {BIN: bins} | {level: (1 - bins) * weight / sum(weights.values()) for level, weight in weights.items()}


class LevelParts(Stateful):
    """The mechanisms of the levels of `whole`, and how their releases become one.

    Where filters remember, each level also hears what the levels below it have measured: sums of measurements are
    measurements of sums, and free. Estimates of a level above then hold all that is known below, so those below give
    way. Without memory the measurements of a step are put together in one fit.
    """

    state = ("_parts",)

    def __init__(self, whole: Mechanism, levels: Levels) -> None:
        self._whole, self._levels = whole, levels
        self._natural = isinstance(whole.filter, Truncate)
        self._adding_up = AddingUp(list(levels.labels.values()))
        names = {BIN: levels.bins, **levels.groups}
        labels = {BIN: np.arange(len(levels.bins)), **levels.labels}
        self.shares = shares(levels, whole.nano_epsilon, whole.level_split)
        self._parts = {level: self._part(share, names[level], labels[level]) for level, share in self.shares.items()}
        self._remembers = not isinstance(self._parts[BIN]._filter, Repeat)
        self._below = {
            level: [(below, runs) for below in list(labels)[:place] if (runs := _inside(labels[below], labels[level]))]
            for place, level in enumerate(labels)
            if self._remembers
        }

    def _part(self, share: int, names: Sequence[str], labels: Ints) -> Mechanism:
        """The mechanism of one level, whose meter charges the ledger of the whole as well."""
        whole = self._whole
        own: dict[str, Any] = {"levels": None, "level_split": None, "filter": without_truncation(whole.filter)}
        own |= {"epsilon": Fraction(share, NANO), "bins": names, "noise": whole.source}
        part = type(whole)(**whole.parameters() | own)
        part.meter = LevelMeter(whole.meter, part.ledger, Partition(labels, len(names)))
        return part

    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise scale that a look at any level can have."""
        low, high = zip(*(part.noise_range() for part in self._parts.values()), strict=True)
        return min(low), max(high)

    def release(self, step: SealedStep) -> Release:
        """Let every level answer, and make their answers add up."""
        try:
            return self._together(step.index, [self._answer(level, step) for level in self._parts])
        finally:  # also where a level failed, the step is over for all of them
            for part in self._parts.values():
                if part.step == step.index:
                    part.end_step()

    def _answer(self, level: str, step: SealedStep) -> Release:
        part = self._parts[level]
        part.heard = functools.reduce(together, self._heard(level), None)
        return part.take(_meter(part).seal_sums(step))

    def _heard(self, level: str) -> Iterator[Measured]:
        for below, runs in self._below.get(level, ()):
            meter = _meter(self._parts[below])
            if meter.measured is not None:
                yield _summed(meter.measured, runs, meter.shape)

    def _together(self, index: int, released: list[Release]) -> Release:
        bins, *groups = [
            Estimate(each.values, _variance(each) * (GIVES_WAY ** max(place - 1, 0) if self._remembers else 1))
            for place, each in enumerate(released)
        ]
        common = COMMON if self._remembers else 0.0
        idle = self._whole.idle
        fitted = self._adding_up.fit(bins, groups, common=common, natural=self._natural, idle=idle)
        values = self._adding_up.rounded(fitted, whole=self._natural, idle=idle)
        told = [
            self._told(each, sums) for each, sums in zip(released, [values, *self._adding_up.sums(values)], strict=True)
        ]
        charged = np.asarray(self._whole.ledger.charged()).reshape(self._whole.replicas, -1)
        release = Release(
            step=index,
            values=values,
            fresh=np.any([each.fresh for each in released], axis=0),
            fresh_bins=released[0].fresh_bins,
            scale=released[0].scale,
            spent=charged.max(axis=1),
            low=told[0].low,
            high=told[0].high,
            levels=dict(zip(self._levels.names, told[1:], strict=True)),
        )
        return release if idle is None else release.without(idle)

    def _told(self, own: Release, values: Floats) -> LevelValues:
        """What a level releases; its interval moves with its values, and is rounded as they are."""
        if own.low is None or own.high is None:
            return LevelValues(values, own.scale, own.fresh)
        low, high = values + np.minimum(own.low - own.values, 0), values + np.maximum(own.high - own.values, 0)
        return LevelValues(
            values, own.scale, own.fresh, *(truncated_interval(low, high) if self._natural else (low, high))
        )


def _meter(part: Mechanism) -> LevelMeter:
    assert isinstance(part.meter, LevelMeter)
    return part.meter


def _inside(small: Ints, large: Ints) -> Runs | None:
    """How the groups of one level add up to those of another; None where they do not."""
    pairs = np.unique(np.stack([small, large]), axis=1)
    return Runs(pairs[1]) if len(pairs[0]) == int(small.max()) + 1 else None


def _summed(measured: Measured, runs: Runs, shape: tuple[int, int]) -> Measured:
    """What a measurement of small groups says of large ones; only where all of them were measured."""
    fresh: Bools = np.asarray(measured.fresh.all(axis=1, keepdims=True))
    scale = np.where(fresh, np.broadcast_to(measured.scale, shape), 0.0)
    return Measured(
        np.where(fresh, runs.sums(measured.values), 0.0),
        np.where(fresh, np.sqrt(runs.sums(np.square(scale))), np.inf),
        fresh,
    )


def without_truncation(chosen: Filter | None) -> Filter | None:
    """What each level filters with; whole numbers from 0 up are made at the end, of all levels together."""
    return chosen.inner if isinstance(chosen, Truncate) else chosen


def _variance(release: Release) -> Floats:
    """Of every value; an interval of nine in ten is taken for that of a normal distribution."""
    if release.low is None or release.high is None:
        return np.asarray(2 * np.square(release.scale))
    return np.asarray(np.square((release.high - release.low) / (2 * NINE_IN_TEN)))
