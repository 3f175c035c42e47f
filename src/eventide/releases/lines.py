"""A release as one line of JSON, the form in which a store keeps it and every sink shows it; and back again.

The line holds step, start (where there is a clock), fresh, values and scale in the order of the bins, low and high
where known, the histogram of the sliding window where the mechanism gives one (window_values, window_scale), the values
of each level of groups where there are any, in the order of the groups, and the answers to window queries that were due
when the step ended. Where spare bins have got names, it holds those, as `bins`. Whole numbers are written without ".0";
a scale that is not known (no look yet) is null. The same release gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from eventide.arrays import Array, Floats
from eventide.releases.level_values import LevelValues

SMALL = 10_000  # whole numbers below it are written faster
_ARRAYS = ("values", "scale", "low", "high")
_OF_WINDOW = ("window_values", "window_scale")


@dataclass(frozen=True)
class ReleaseLine:
    """What a line says."""

    step: int
    fresh: bool
    values: Floats
    scale: Floats
    low: Floats | None = None
    high: Floats | None = None
    start: str | None = None
    answers: tuple[dict[str, Any], ...] = ()
    levels: dict[str, LevelValues] | None = None
    named: Mapping[str, str] = field(default_factory=dict)  # spare bins, by the names that the list of bins has
    window_values: Floats | None = None
    window_scale: Floats | None = None


def write_line(
    release: Any,
    start: str | None = None,
    step: int | None = None,
    answers: Sequence[dict[str, Any]] = (),
    named: Mapping[str, str] | None = None,
) -> bytes:
    """The line of a release, without a line break; `start` and what follows it are the publisher's to give.

    >>> write_line(ReleaseLine(0, True, np.array([3.0]), np.array([np.inf])))
    b'{"step": 0, "fresh": true, "values": [3], "scale": [null]}'
    """
    said = {"step": json.dumps(release.step if step is None else step)}
    if start is not None:
        said["start"] = json.dumps(start)
    if named:
        said["bins"] = json.dumps(dict(named))
    said |= _numbers_of(release) | _lists(release, _OF_WINDOW)
    if release.levels:
        said["levels"] = _object(
            {json.dumps(name)[1:-1]: _object(_numbers_of(each)) for name, each in release.levels.items()}
        )
    if answers:
        said["answers"] = json.dumps(list(answers), allow_nan=False)
    return _object(said).encode()


def read_line(line: bytes) -> ReleaseLine:
    """The release that a line holds.

    >>> read_line(b'{"step": 4, "fresh": false, "values": [3, 4], "scale": [null, 2]}').scale
    array([inf,  2.])
    """
    said = json.loads(line)
    arrays = {name: _numbers(said[name]) for name in _ARRAYS + _OF_WINDOW if name in said}
    answers = tuple(said.get("answers", ()))
    levels = {name: _level(each) for name, each in said["levels"].items()} if "levels" in said else None
    more: dict[str, Any] = {"start": said.get("start"), "answers": answers, "levels": levels, **arrays}
    return ReleaseLine(said["step"], said["fresh"], named=said.get("bins", {}), **more)


def _level(said: dict[str, Any]) -> LevelValues:
    return LevelValues(fresh=said["fresh"], **{name: _numbers(said[name]) for name in _ARRAYS if name in said})


def _object(said: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in said.items()) + "}"


def _numbers_of(release: Any) -> dict[str, str]:
    """Whether it is fresh, and its numbers, as JSON has them."""
    return {"fresh": json.dumps(bool(release.fresh))} | _lists(release, _ARRAYS)


def _lists(release: Any, names: Sequence[str]) -> dict[str, str]:
    return {name: _list(numbers) for name in names if (numbers := getattr(release, name)) is not None}


def _list(numbers: Array) -> str:
    """Numbers as a JSON list; those that are all alike, as scales mostly are, at the price of one."""
    if not numbers.size:
        return "[]"
    least, most = numbers.min(), numbers.max()
    if least == most:
        return _repeated(json.dumps(plain(numbers[:1])[0]), numbers.size)
    if least >= 0 and most < SMALL and np.array_equal(numbers, whole := numbers.astype(np.int64)):
        texts = _texts()[whole].tobytes().translate(None, b"\0")
        return f"[{texts[:-2].decode()}]"
    return json.dumps(plain(numbers), allow_nan=False)


@lru_cache(16)
def _repeated(text: str, times: int) -> str:
    return f"[{', '.join([text] * times)}]"


@cache
def _texts() -> Array:
    """The texts of small whole numbers, each with what stands between two of them; zeros fill up the shorter ones."""
    return np.array([b"%d, " % number for number in range(SMALL)])


def plain(numbers: Array) -> list[float | int | None]:
    """Numbers for JSON: whole ones as integers, those that are not finite as null."""
    finite = np.isfinite(numbers)
    whole = finite & (numbers == np.rint(numbers))
    if whole.all():
        return numbers.astype(np.int64).tolist()  # type: ignore[no-any-return]
    listed = numbers.astype(object)
    listed[whole] = numbers[whole].astype(np.int64)
    listed[~finite] = None
    return listed.tolist()  # type: ignore[no-any-return]


def _numbers(written: list[float | None]) -> Floats:
    numbers = np.array(written, dtype=np.float64)
    numbers[np.isnan(numbers)] = np.inf
    return numbers
