"""How people write statistics, such as `people` or `mean:fare`, and the statistic that each text means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eventide.errors import InputError
from eventide.events.means import ValueMean
from eventide.events.quantiles import ValueQuantiles
from eventide.events.several_statistics import SeveralStatistics
from eventide.events.slots import SlotPeople
from eventide.events.statistics import EVENTS, MEAN, QUANTILES, SLOTS, SUM, PeopleCount, Statistic, ValueSum
from eventide.events.value_edges import ValueEdges, parse_edges
from eventide.events.value_grid import ValueGrid, parse_between

WHICH_EDGES = (
    "choose them from what is public, such as tariffs or the limits of a form, never from these data; if nothing is, "
    "publish first with edges that double (0,1,2,4,8,16,...), which is charged, and take finer ones from its releases"
)
MEANT = {"median": QUANTILES, "quantile": QUANTILES, "average": MEAN, "avg": MEAN}  # what others call them
Written = str | Sequence[str]
STATISTICS: dict[str, Statistic] = {each.name: each for each in (EVENTS, PeopleCount())}


def parse_statistic(
    text: Written, between: Written = "", edges: Written = "", quantiles: Sequence[float] = ()
) -> Statistic:
    """The statistic of this name, or of these names; `between` and `edges` are of the columns it is about.

    >>> parse_statistic("people").sensitivity(2), parse_statistic("sum:fare", "fare=0,120,0.5").sensitivity(2)
    (2, 480)
    """
    names = list(_each(text))
    grids = [parse_between(each) for each in _each(between)]
    cuts = [parse_edges(each) for each in _each(edges)]
    if len(names) > 1 and all(name.startswith(SLOTS) for name in names):
        raise InputError(
            "all these statistics are of slots; name one that every step has as well, such as people, or publish one "
            "alone"
        )
    if len(set(names)) < len(names):
        raise InputError("a statistic is named twice; name each once")
    for name in names:
        _refuse_unknown(name)
    _refuse_unused(names, grids, cuts, quantiles)
    names.sort(key=lambda name: name.startswith(SLOTS))  # the first has a number at every step
    made = [_one(name, grids, cuts, quantiles) for name in names or [EVENTS.name]]
    return made[0] if len(made) == 1 else SeveralStatistics(made)


def with_step(written: Written, step: str) -> Written:
    """The same names, where those of slots beside other statistics say how long a step is.

    >>> with_step(["events", "people/1d"], "1h"), with_step("people/1d", "1h")
    (('events', 'people/1d/1h'), 'people/1d')
    """
    if isinstance(written, str):
        return written
    return tuple(f"{name}/{step}" if _lacks_step(name) else name for name in written)


def _lacks_step(name: str) -> bool:
    return name.startswith(SLOTS) and "/" not in name.removeprefix(SLOTS)


def statistic_of(described: Mapping[str, Any]) -> Statistic:
    """The statistic that a store describes in what may never change of it."""
    told = {name: described.get(name, "") for name in ("between", "edges")}
    quantiles = "".join(_each(described.get("quantiles", "")))
    parts = [float(each) for each in quantiles.split(",")] if quantiles else ()
    return parse_statistic(described.get("statistic", EVENTS.name), **told, quantiles=parts)


def _one(name: str, grids: list[ValueGrid], cuts: list[ValueEdges], quantiles: Sequence[float]) -> Statistic:
    kind, _, column = name.partition(":")
    if name.startswith(SLOTS):
        return _people_of_slots(name)
    if name in STATISTICS:
        return STATISTICS[name]
    if f"{kind}:" == QUANTILES:
        return ValueQuantiles(_of_column(name, column, cuts, "edges", f"{column}=0,5,10,20"), quantiles)
    grid = _of_column(name, column, grids, "between", f"{column}=0,100")
    return (ValueSum if f"{kind}:" == SUM else ValueMean)(grid)


def _refuse_unknown(name: str) -> None:
    kind, _, column = name.partition(":")
    if not (name in STATISTICS or name.startswith(SLOTS) or (f"{kind}:" in (SUM, MEAN, QUANTILES) and column)):
        known = f"{', '.join(STATISTICS)}, {SLOTS}DURATION, {SUM}COLUMN, {MEAN}COLUMN or {QUANTILES}COLUMN"
        meant = f"did you mean {MEANT[kind]}{column}?" if kind in MEANT and column else f"choose {known}"
        if "," in name:
            meant = "of several give each by itself, --statistic once for each (in Python a list)"
        raise InputError(f"{name!r} is no statistic; {meant}")


def _people_of_slots(text: str) -> Statistic:
    """People of a slot, as people/SLOT/STEP; a stream knows its step and writes it there."""
    slot, _, step = text.removeprefix(SLOTS).partition("/")
    if not step:
        raise InputError(
            f"{text} needs the length of a step and a window in such steps; publish it with ev.publish, or make feed "
            "and mechanism with a StreamSpec"
        )
    return SlotPeople(slot, step)


def _of_column(name: str, column: str, given: list[Any], setting: str, example: str) -> Any:
    found = [each for each in given if each.column == column]
    if not found and setting == "edges":
        told = f"{name} needs the buckets of {column}; give them with `edges`, such as {example}"
        raise InputError(f"{told}; {WHICH_EDGES}")
    if not found:
        raise InputError(f"{name} needs the range of {column}; give it with `{setting}`, such as {example}")
    if len(found) > 1:
        raise InputError(f"`{setting}` names {column} twice; give each column once")
    return found[0]


def _refuse_unused(
    names: list[str], grids: list[ValueGrid], cuts: list[ValueEdges], quantiles: Sequence[float]
) -> None:
    """Refuse a range or buckets that no statistic is about: surely something else was meant."""
    asked = {
        kind: {name.removeprefix(kind) for name in names if name.startswith(kind)} for kind in (SUM, MEAN, QUANTILES)
    }
    for each in grids:
        if each.column not in asked[SUM] | asked[MEAN]:
            if each.column in asked[QUANTILES]:
                raise InputError(
                    f"{QUANTILES}{each.column} takes no range (`between`) but buckets; give `edges`, such as "
                    f"{each.column}=0,5,10,20"
                )
            raise InputError(
                f"`between` is about {each.column}, and {', '.join(names) or EVENTS.name} is not; give the range of "
                "what is summed"
            )
    for cut in cuts:
        if cut.column not in asked[QUANTILES]:
            raise InputError(f"`edges` are about {cut.column}, and no quantiles of it are asked for; leave them out")
    if quantiles and not asked[QUANTILES]:
        raise InputError("`quantiles` says which ones of a column; name the column as well, as quantiles:COLUMN")


def _each(written: Written) -> Sequence[str]:
    """What was written once or several times."""
    return ([written] if written else []) if isinstance(written, str) else written
