"""The mechanism that the description of a stream asks for: one, or one for each of several statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.events.several_statistics import SeveralStatistics
from eventide.events.slots import SlotsBesideSteps
from eventide.events.statistics import Statistic
from eventide.events.timeline import Timeline
from eventide.filters.seasons import automatic_periods
from eventide.live import setting_readers as readers
from eventide.live.setting_readers import defaults_of
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import build_mechanism, find_mechanism
from eventide.mechanisms.several import Several
from eventide.parameters import parameter_defaults

if TYPE_CHECKING:
    from eventide.live.stream_spec import StreamSpec


def mechanism_of(spec: StreamSpec) -> Mechanism:
    """The stream's mechanism, new; of epsilon it has what window queries leave."""
    own = {
        "epsilon": spec.epsilon - spec.queries_epsilon,
        "window": spec.window,
        "bins": spec.bins,
        "sensitivity": max(spec.made_statistic().sensitivity(spec.max_per_step), spec.sensitivity),
        "window_sensitivity": _window_sensitivity(spec),
        "filter": None if spec.filter == "none" else spec.filter,
    }
    if spec.levels is not None:
        own["levels"] = spec.levels
    if (statistic := spec.made_statistic()).direct:
        _refuse_seasons(spec, [spec.mechanism])
        return build_mechanism(spec.mechanism, own | _seasons(spec, spec.mechanism, spec.step) | spec.parameters)
    return _several(spec, statistic, own)


def _several(spec: StreamSpec, statistic: Statistic, own: dict[str, Any]) -> Mechanism:
    """The mechanism of several statistics, or of one whose numbers are not what is published."""
    parts = statistic.parts if isinstance(statistic, SeveralStatistics) else (statistic,)
    _refuse_seasons(spec, [_measuring(spec, part) for part in parts])
    noise = {name: value for name, value in spec.parameters.items() if name == "noise"}
    if readers.of_each(spec.filter):
        own["filter"] = None
    statistics = [told_of_part(spec, part) for part in parts]
    return Several(**own, statistics=statistics, most=spec.max_per_step, **noise)


def told_of_part(spec: StreamSpec, part: Statistic) -> dict[str, Any]:
    """What the mechanism of several statistics is told of one of them."""
    name = _measuring(spec, part)
    told: dict[str, Any] = {"statistic": part.name} | part.described()
    if part.name in spec.split:
        told["part"] = str(spec.split[part.name])
    if isinstance(part, SlotsBesideSteps):
        timeline = spec.timeline() if spec.start else Timeline("2000-01-01", spec.step, spec.zone)
        told["slots"] = part.times(timeline).met(spec.window)
    measured = _seasons(spec, name, *part.slots, spec.step) | _parameters_of(spec, name)
    if (seasons := measured.get("seasons")) is not None:
        measured["seasons"] = list(seasons)
    told |= {"mechanism": name, "parameters": {n: v for n, v in measured.items() if v is not None}}
    if each := readers.of_each(spec.filter):
        told["filter"] = each.get(part.name, defaults_of(type(spec))["filter"])
    return told


def _measuring(spec: StreamSpec, part: Statistic) -> str:
    """The name of the mechanism of a statistic."""
    each = readers.of_each(spec.mechanism)
    return each.get(part.name, defaults_of(type(spec))["mechanism"]) if each else spec.mechanism


def _parameters_of(spec: StreamSpec, mechanism: str) -> dict[str, Any]:
    """Of several mechanisms each gets the parameters that it takes; what none of them takes is refused by all."""
    own = {name: value for name, value in spec.parameters.items() if name != "noise"}
    chosen = {*readers.of_each(spec.mechanism).values()} or {mechanism}
    taken = {name: parameter_defaults(find_mechanism(name)) for name in {*chosen, mechanism}}
    return {
        name: value
        for name, value in own.items()
        if name in taken[mechanism] or not any(name in each for each in taken.values())
    }


def _refuse_seasons(spec: StreamSpec, mechanisms: Sequence[str]) -> None:
    """Refuse seasons that somebody chose for mechanisms that take none."""
    if isinstance(spec.seasons, tuple) and not any(map(_takes_seasons, mechanisms)):
        raise InputError(f"mechanism {mechanisms[0]!r} takes no seasons; leave them out, or choose tide")


def _seasons(spec: StreamSpec, mechanism: str, length: str, *steps: str) -> dict[str, Any]:
    """The periods for a mechanism that takes some, of numbers of such a length; those somebody chose are of steps.

    `steps` is the length of a step where that is another one: then periods of a few steps are left out.
    """
    if not _takes_seasons(mechanism):
        return {}
    chosen = spec.seasons or ("auto" if spec.cap else "none")
    if chosen == "auto":
        return {"seasons": automatic_periods(milliseconds(length), len(spec.bins)) if length else None}
    if not steps or not isinstance(chosen, tuple):
        return {"seasons": None if chosen == "none" else chosen}
    longer = milliseconds(length) / milliseconds(steps[0])
    return {"seasons": tuple(period / longer for period in chosen if period >= 2 * longer) or None}


def _window_sensitivity(spec: StreamSpec) -> int | None:
    """What is told of ready-made counts, or what a cap on events is worth."""
    if (cap := spec.cap_in_steps()) is None:
        return spec.window_sensitivity or None
    return spec.made_statistic().window_sensitivity(cap, spec.window, spec.max_per_step)


def _takes_seasons(mechanism: str) -> bool:
    return "seasons" in parameter_defaults(find_mechanism(mechanism))
