"""What a store has released, over one list of names, also where epochs had other bins or asked other window queries.

Answers to window queries stand in the releases of the steps at whose ends they were due. What an epoch did not have has
no value there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.events.levels import Levels
from eventide.events.statistic_names import statistic_of
from eventide.live.stores.base import Epoch, Store, StoreSetting, with_ends
from eventide.releases.level_values import EVENTS, WINDOW, Groups, LevelValues, statistics_of
from eventide.releases.lines import ReleaseLine, read_line

Answer = dict[str, Any]


def all_bins(store: Store) -> tuple[str, ...]:
    """The bins of all epochs, those of the last one first; spare bins that wait for a name are left out."""
    settings = [epoch.setting for epoch in reversed(store.epochs())]
    listed = (one.bins if (names := one.bin_names) is None else names.known() for one in settings)
    return tuple(dict.fromkeys(name for each in listed for name in each))


def levels_of(setting: StoreSetting) -> Levels | None:
    """The levels of an epoch, if it has any."""
    described = setting.mechanism.get("parameters", {}).get("levels")
    return None if described is None else Levels.of(described, setting.bins)


def all_groups(store: Store) -> Groups:
    """The groups of each level of all epochs, those of the last one first; empty where none has levels."""
    found: dict[str, dict[str, None]] = {}
    for levels in filter(None, (levels_of(epoch.setting) for epoch in reversed(store.epochs()))):
        for level, groups in levels.groups.items():
            found.setdefault(level, {}).update(dict.fromkeys(groups))
    return {level: tuple(groups) for level, groups in found.items()}


def all_statistics(store: Store) -> tuple[str, ...]:
    """What any epoch has published of every bin: a statistic of each step, and perhaps its sum over a sliding window.

    The last release of an epoch tells: older versions published no sliding windows, and may have begun it.
    """
    named, windows = EVENTS, False
    for epoch, end in _epochs(store):
        told = statistic_of(epoch.setting.steps).names
        if len(told) > 1:  # which are the same in all epochs
            return told
        named = epoch.setting.steps.get("statistic", EVENTS)
        windows |= any(
            b'"window_values": ' in line for _, line in store.releases(max(epoch.first_step, end - 1), end - 1)
        )
    return statistics_of(named, windows=windows)


def stored_releases(store: Store, bins: tuple[str, ...], groups: Groups | None = None) -> Iterator[ReleaseLine]:
    """All releases, over `bins` and the groups of each level; what was none at a step has no value there: NaN."""
    for epoch, end in _epochs(store):
        levels = levels_of(epoch.setting) if groups else None
        for _, line in store.releases(epoch.first_step, end - 1):
            release = over_bins(read_line(line), epoch.setting.names, bins, absent=np.nan)
            yield _over_groups(release, levels, groups) if groups else replace(release, levels=None)


def _over_groups(release: ReleaseLine, own: Levels | None, groups: Groups) -> ReleaseLine:
    """A release with all levels of a store, in their order."""
    told, found = release.levels or {}, {}
    for level, names in groups.items():
        place = {} if own is None or level not in told else {name: at for at, name in enumerate(own.groups[level])}
        source = np.array([place.get(name, -1) for name in names])
        found[level] = _moved(told.get(level), source)
    return replace(release, levels=found)


def _moved(told: LevelValues | None, source: Ints) -> LevelValues:
    unknown = np.full(source.shape, np.nan)
    if told is None:
        return LevelValues(unknown, unknown + np.inf)

    def moved(array: Floats) -> Floats:
        return np.where(source < 0, np.nan, array[source])

    low, high = (None if end is None else moved(end) for end in (told.low, told.high))
    return LevelValues(moved(told.values), moved(told.scale), told.fresh, low, high)


def over_bins(release: ReleaseLine, own: Sequence[str], bins: Sequence[str], *, absent: float) -> ReleaseLine:
    """A release of the bins `own` as one of `bins`, by name; one that it did not have has the value `absent`."""
    if tuple(own) == tuple(bins):
        return release
    place = {name: index for index, name in enumerate(own)}
    source = np.array([place.get(name, -1) for name in bins])

    def moved(array: Floats, absent: float) -> Floats:
        return np.where(source < 0, absent, array[source])

    unknown = dict.fromkeys(("low", "high", *WINDOW), np.nan) | {"window_scale": np.inf}
    known: dict[str, Any] = {name: array for name in unknown if (array := getattr(release, name)) is not None}
    values, scale = moved(release.values, absent), moved(release.scale, np.inf)
    further: dict[str, Any] = {name: moved(array, unknown[name]) for name, array in known.items()}
    if release.statistics is not None:
        further["statistics"] = {name: _moved(each, source) for name, each in release.statistics.items()}
    return replace(release, values=values, scale=scale, **further)


def answered_names(store: Store) -> tuple[str, ...]:
    """What any answer of a store is about, in the order of the last epoch first."""
    return tuple(dict.fromkeys(name for epoch in reversed(store.epochs()) for name in _names(epoch.setting)))


def stored_answers(store: Store, names: tuple[str, ...]) -> Iterator[tuple[int, list[Answer]]]:
    """All answers, with the step at whose end they were due; what an answer is not about has the value NaN."""
    for epoch, end in _epochs(store):
        own = _names(epoch.setting)
        for step, line in store.releases(epoch.first_step, end - 1) if own else ():
            if answers := answers_in(line):
                yield step, answers if own == names else [_spread(answer, own, names) for answer in answers]


def answers_in(line: bytes) -> list[Answer]:
    """The answers that a release holds; one without any is not even parsed."""
    return json.loads(line)["answers"] if b'"answers": ' in line else []


def _epochs(store: Store) -> Iterator[tuple[Epoch, int]]:
    """The epochs with their ends; the next step is asked first, so that an epoch begun meanwhile has no step here."""
    next_step = store.next_step()
    return with_ends(store.epochs(), next_step)


def _names(setting: StoreSetting) -> tuple[str, ...]:
    """What the values of an answer are about under a setting; nothing where no query was asked."""
    if setting.queries is None:
        return ()
    return setting.names if setting.queries["of"] == "bins" else ("total",)


def _spread(answer: Answer, own: tuple[str, ...], names: tuple[str, ...]) -> Answer:
    values = dict(zip(own, answer["values"], strict=True))
    return answer | {"values": [values.get(name, float("nan")) for name in names]}
