"""Counts that come with names (a dict, a row or a table of any data frame library), brought into the order of the bins.

Whoever names counts gets them published under these names, or an error that lists what does not fit. Frames are known
by their attributes, so none of their libraries is imported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from eventide.errors import InputError

MOST_LISTED = 5  # names in an error


def in_order(counts: Any, bins: tuple[str, ...] | None, size: int) -> Any:
    """`counts` with the bins in the order of `bins`, if they come with names; as they are if not.

    `bins` is None where there are `size` bins without names of their own. A table or row whose names are not their
    numbers is then taken as it stands; a dict has no order, so it is refused.

    >>> in_order({"south": 5, "north": 3}, ("north", "south"), 2).tolist()
    [3, 5]
    """
    if isinstance(counts, list | tuple):
        one_of_each_kind = {type(each): each for each in counts}.values()
        named_inside = any(isinstance(each, list | tuple) or _labels(each) is not None for each in one_of_each_kind)
        return [in_order(each, bins, size) for each in counts] if named_inside else counts
    labels = _labels(counts)
    if labels is None or _given_by_itself(labels):
        return counts
    names = [str(label) for label in labels]
    wanted = tuple(map(str, range(size))) if bins is None else bins
    if Counter(names) != Counter(wanted):
        if bins is None and not isinstance(counts, Mapping):
            return counts
        raise InputError(_misfit(names, wanted))
    place = {name: index for index, name in enumerate(names)}
    return _values(counts)[..., [place[name] for name in wanted]]


def _labels(counts: Any) -> Collection[Any] | None:
    """What counts call their bins; None for plain numbers and arrays."""
    if isinstance(counts, Mapping):
        return counts
    for attribute in ("column_names", "columns", "index"):  # of Arrow; of pandas and polars; of a row of pandas
        found = getattr(counts, attribute, None)
        if isinstance(found, Collection):
            return found
    return None


def _given_by_itself(labels: Collection[Any]) -> bool:
    """Whether these are only the places that pandas gives to columns without names."""
    return type(labels).__name__ == "RangeIndex" and list(labels) == list(range(len(labels)))


def _values(counts: Any) -> Any:
    """An array whose last axis is the bins, in the order in which they were given."""
    if not isinstance(counts, Mapping):
        return np.asarray(counts)
    try:
        return np.stack([np.asarray(column) for column in counts.values()], axis=-1)
    except ValueError:
        raise InputError("the bins have different numbers of counts; give each bin one for every step") from None


def _misfit(names: list[str], wanted: tuple[str, ...]) -> str:
    missing, unknown = Counter(wanted) - Counter(names), Counter(names) - Counter(wanted)
    twice = [name for name in unknown if name in wanted]
    parts = {"missing": list(missing), "unknown": [name for name in unknown if name not in wanted], "twice": twice}
    found = "; ".join(f"{kind}: {_listed(these)}" for kind, these in parts.items() if these)
    return (
        f"the names of the counts do not fit the bins ({found}); give each bin once under its name, or give counts "
        "without names, in the order of the bins"
    )


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(map(repr, names[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")
