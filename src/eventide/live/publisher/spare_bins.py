"""A stream whose list of bins has grown since its store was made: the new ones take spare bins, and nothing stops.

Only what is public is looked at: the lists of bins, now and then, and the groups that each is in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eventide.errors import InputError
from eventide.events.bin_names import NO_SPARE, BinNames
from eventide.events.bins import is_spare
from eventide.events.levels import TOTAL, Levels
from eventide.live.stores.base import StoreSetting
from eventide.live.stores.stored_releases import levels_of
from eventide.mechanisms.base import Mechanism


class Placed(NamedTuple):
    """A mechanism over the places of a store, and the bins that are to be named, each with its place."""

    mechanism: Mechanism
    new: tuple[tuple[str, int], ...] = ()


def over_places(mechanism: Mechanism, last: StoreSetting | None) -> Placed:
    """The mechanism as the store has its bins, where those that are new can take spare ones; else as it is."""
    names = None if last is None else last.bin_names
    if last is None or names is None or names.names == mechanism.bins:
        return Placed(mechanism)
    spares = [name for name in mechanism.bins if is_spare(name)]
    if spares != [name for name in names.places if is_spare(name)]:
        return Placed(mechanism)
    own = [name for name in mechanism.bins if not is_spare(name)]
    ended = {each.name for each in names.said if each.end is not None}
    if any(name not in own and name not in ended for name in names.places if not is_spare(name)):
        return Placed(mechanism)  # one is gone that was never closed
    levels = levels_of(last)
    if (levels is None) != (mechanism.levels is None):
        return Placed(mechanism)
    groups = {name: groups_of(mechanism.levels, name) for name in own}
    known = names.known()
    if any(groups[name] != groups_of(levels, names.places[known[name]]) for name in own if name in known):
        return Placed(mechanism)  # one is in another group than before
    new = []
    for name in own:
        if name not in known:
            place = free_place(names, levels, groups[name], name)
            names = names.given(name, 0, place)
            new.append((name, place))
    over = {"bins": last.bins} | ({} if levels is None else {"levels": levels})
    return Placed(type(mechanism)(**mechanism.parameters() | over), tuple(new))


def free_place(
    names: BinNames, levels: Levels | None, groups: Sequence[str] | None = None, name: str | None = None
) -> int:
    """The first spare bin that waits for a name, in these groups of the levels; where none are said, in any.

    `name` is the one that it is to get.
    """
    free = names.free()
    found = [place for place in free if groups is None or groups_of(levels, names.places[place]) == tuple(groups)]
    if free and not found:
        raise InputError(
            f"no spare bin is left in {', '.join(groups or ())}: spare bins are in the groups that the file of levels "
            "gave them when the store was made; choose other groups, or begin anew with --new-epoch"
        )
    if not any(map(is_spare, names.places)):
        raise InputError("this store has no spare bins; one with some needs --spare-bins and --new-epoch")
    if not found:
        raise InputError(NO_SPARE.format(f" for {name!r}" if name else ""))
    return found[0]


def groups_of(levels: Levels | None, name: str) -> tuple[str, ...]:
    """The group of a bin at each level but the total."""
    if levels is None:
        return ()
    place = levels.bins.index(name)
    return tuple(levels.groups[level][levels.labels[level][place]] for level in sorted(levels.names) if level != TOTAL)
