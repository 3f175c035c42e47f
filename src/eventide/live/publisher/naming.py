"""Bins that are named or closed while their stream goes on: from which step on, and which spare bin takes a name.

The step is public: somebody says it, or the clock does. Whoever writes to the store goes on meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eventide.errors import InputError, unknown
from eventide.events.bin_names import BinNames
from eventide.events.clock import Clock, SystemClock
from eventide.events.durations import written
from eventide.events.timeline import MILLISECOND, Timeline, parse_time
from eventide.live.publisher.spare_bins import free_place, groups_of
from eventide.live.stores.base import Store, StoreSetting
from eventide.live.stores.stored_releases import levels_of

SOON = 2_000 * MILLISECOND  # a publisher learns of a name before so much time has passed


def name_bin(
    store: Store, name: str, start: str | None = None, like: str | None = None, clock: Clock | None = None
) -> BinNames:
    """Give a spare bin a name, from a step on: a number, an ISO time, or where left out the next one.

    With levels it is one in the groups of the bin `like`, which may be left out where all spare bins are in the same.
    """
    setting = _last_setting(store)
    place = _place_like(setting, like)
    return name_bins(store, [(name, place)], start, clock)


def name_bins(
    store: Store, new: Sequence[tuple[str, int]], start: str | None = None, clock: Clock | None = None
) -> BinNames:
    """The same for several, each with its place."""
    setting = _last_setting(store)

    def given(names: BinNames, next_step: int) -> BinNames:
        first = _step(setting, start, next_step, clock)
        for name, place in new:
            names = names.given(name, first, place)
        return names

    return store.rename(given)


def close_bin(store: Store, name: str, start: str | None = None, clock: Clock | None = None) -> BinNames:
    """Take no more events of a bin from a step on; what was released of it stays."""
    setting = _last_setting(store)
    if name == setting.steps.get("other"):
        raise InputError(f"{name!r} is the bin for other events; it stays open")
    return store.rename(lambda names, next_step: names.closed(name, _step(setting, start, next_step, clock)))


def _last_setting(store: Store) -> StoreSetting:
    if not (epochs := store.epochs()):
        raise InputError("this store has no bins yet; publish first")
    parameters = epochs[-1].setting.mechanism["parameters"]
    if "statistics" in parameters or parameters.get("pan_private"):
        raise InputError(
            "means, quantiles, several statistics and pan_private cannot have bins that come and go; other bins need "
            "--new-epoch"
        )
    return epochs[-1].setting


def _place_like(setting: StoreSetting, like: str | None) -> int:
    """The spare bin to name."""
    names, levels = BinNames(setting.bins, setting.named or ()), levels_of(setting)
    if like is not None:
        found = {**names.known(), **{place: at for at, place in enumerate(names.places)}}
        if levels is None:
            raise InputError("the bins of this store are in no groups; leave --like out")
        if like not in found:
            raise InputError(unknown("bin", like, names.known()))
        return free_place(names, levels, groups_of(levels, names.places[found[like]]))
    free = {groups_of(levels, names.places[place]) for place in names.free()}
    if len(free) > 1:
        raise InputError("spare bins are in different groups; say which with --like BIN, a bin of the same groups")
    return free_place(names, levels)


def _step(setting: StoreSetting, start: str | None, next_step: int, clock: Clock | None) -> int:
    """The step that was meant, which is not released yet."""
    if start is None:
        return _next(setting, next_step, (clock or SystemClock()).now())
    if start.isdecimal():
        step = int(start)
    else:
        timeline = _timeline(setting)
        if timeline is None:
            raise InputError(f"the steps of this store have no times; give the number of a step instead of {start}")
        step = int(timeline.index(np.array([parse_time(start, timeline.zone) - 1]))[0]) + 1
    if step < 0:
        raise InputError(f"{start} lies before the first step; the next one is {next_step}")
    if step < next_step:
        raise InputError(f"step {step} is released already; the next one is {next_step}")
    return step


def _next(setting: StoreSetting, next_step: int, now: int) -> int:
    """The next step to begin, of a stream that is published as time goes by; of any other the next to be released."""
    timeline = _timeline(setting)
    if timeline is None:
        return next_step
    upcoming = int(timeline.index(np.array([now + SOON]))[0]) + 1
    is_live = next_step <= upcoming <= next_step + max(setting.window, 2) + SOON // timeline.length
    return upcoming if is_live else next_step


def _timeline(setting: StoreSetting) -> Timeline | None:
    steps = setting.steps
    return Timeline(steps["start"], written(steps["length"]), steps["zone"]) if "start" in steps else None
