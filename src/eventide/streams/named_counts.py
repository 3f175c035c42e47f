"""Counts that come with names (a dict, a Series, a frame of any library), brought into the order of the bins.

Whoever names counts gets them published under these names, or an error that lists what does not fit: names are never
dropped. Counts without names are taken in the order of the bins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eventide.arrays import Array
from eventide.errors import InputError

MOST_LISTED = 5  # names in an error
_WITHOUT_NAMES = (np.ndarray, np.generic, int, float, str, bytes, type(None))


def in_order(counts: Any, bins: Sequence[str], *, one_step: bool = False) -> Any:
    """`counts` with the bins in the order of `bins`, if they come with names; as they are if not.

    A Series is a column: the counts of the bin that it is named after. With `one_step` it is a row, whose index names
    the bins, and a frame has one row.

    >>> in_order({"south": 5, "north": 3}, ("north", "south")).tolist()
    [3, 5]
    """
    return _ordered(counts, bins, is_row=one_step, one_step=one_step)


def _ordered(counts: Any, bins: Sequence[str], *, is_row: bool, one_step: bool) -> Any:
    if isinstance(counts, list | tuple):
        one_of_each_kind = {type(each): each for each in counts}.values()
        all_plain = all(isinstance(each, _WITHOUT_NAMES) for each in one_of_each_kind)
        return counts if all_plain else [_ordered(each, bins, is_row=True, one_step=one_step) for each in counts]
    named = _named(counts, is_row)
    if named is None:
        return counts
    names, values = named
    if Counter(names) != Counter(bins):
        raise InputError(
            f"the names of the counts do not fit the bins ({misfit(names, bins)}); give each bin once under its name, "
            "or give counts without names, in the order of the bins"
        )
    place = {name: index for index, name in enumerate(names)}
    ordered = values[..., [place[name] for name in bins]]
    return ordered[0] if one_step and ordered.ndim == 2 and len(ordered) == 1 else ordered


def refuse_names(counts: Any) -> None:
    """Refuse a frame or a dict where there is one count without a name; a Series has its counts, whatever its name."""
    from eventide.streams.frames import as_frame

    if isinstance(counts, Mapping) or (_is_frame(counts) and np.ndim(counts) != 1 and as_frame(counts)):
        raise InputError("these counts have names, and there is one count without a name; name it with bins=[...]")


def misfit(names: Sequence[str], bins: Sequence[str]) -> str:
    """What is wrong with names that are not those of the bins.

    >>> misfit(["north", "harbor"], ["north", "harbour"])
    "missing: 'harbour'; unknown: 'harbor'"
    """
    missing, unknown = Counter(bins) - Counter(names), Counter(names) - Counter(bins)
    twice = [name for name in unknown if name in bins]
    parts = {"missing": list(missing), "unknown": [name for name in unknown if name not in bins], "twice": twice}
    return "; ".join(f"{kind}: {_listed(these)}" for kind, these in parts.items() if these)


def _is_frame(counts: Any) -> bool:
    return not isinstance(counts, (*_WITHOUT_NAMES, list, tuple))


def _named(counts: Any, is_row: bool) -> tuple[list[str], Array] | None:
    """The names of the bins, and an array whose last axis is the bins; None for plain numbers and arrays."""
    if isinstance(counts, _WITHOUT_NAMES):
        return None
    if isinstance(counts, Mapping):
        plain = counts.as_py() if hasattr(counts, "as_py") else counts  # a row of Arrow
        return [str(name) for name in plain], _stacked(plain)
    import narwhals as nw

    from eventide.streams.frames import as_frame, as_narwhals
    from eventide.streams.tables import whole_numbers

    found = as_narwhals(counts)
    if isinstance(found, nw.Series) and is_row:
        index = nw.maybe_get_index(found)
        return None if index is None or _given_by_itself(index) else ([str(name) for name in index], found.to_numpy())
    if isinstance(found, nw.DataFrame) and _given_by_itself(counts.columns):
        return None
    frame = as_frame(counts)
    if frame is None:
        return None
    parts = [
        whole_numbers(arrays, frame.columns, first_row, frame.name)
        for first_row, arrays in frame.batches(frame.columns)
    ]
    nothing = np.zeros((0, len(frame.columns)), np.int64)
    return list(frame.columns), np.concatenate([nothing, *parts])


def _given_by_itself(labels: Any) -> bool:
    """Whether these are only the places that pandas gives to what has no names."""
    return type(labels).__name__ == "RangeIndex" and list(labels) == list(range(len(labels)))


def _stacked(columns: Mapping[Any, Any]) -> Array:
    try:
        return np.stack([np.asarray(column) for column in columns.values()], axis=-1)
    except ValueError:
        raise InputError("the bins have different numbers of counts; give each bin one for every step") from None


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_LISTED
    return ", ".join(map(repr, names[:MOST_LISTED])) + (f" and {more:,} more" if more > 0 else "")
