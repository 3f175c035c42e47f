"""A release as one line of JSON, the form in which a store keeps it and every sink shows it; and back again.

The line holds step, start (where there is a clock), fresh, values and scale in the order of the bins, low and high
where known, the histogram of the sliding window where the mechanism gives one (window_values, window_scale, window_low,
window_high), the values of each level of groups where there are any, in the order of the groups, and the answers to
window queries that were due when the step ended. Of several statistics, `statistic` names the first, whose numbers
these are, and `statistics` has the same of each other one. Where spare bins have got names, `bins` has these. Whole
numbers are written without ".0"; a value where there are no data, a scale that is not known (no look yet) and an end of
an interval that is not known are null. The same release gives the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import numpy as np

from eventide.arrays import Array, Floats
from eventide.releases.level_values import WINDOW, LevelValues

SMALL = 10_000  # whole numbers below it are written faster
_ARRAYS = ("values", "scale", "low", "high")


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
    window_low: Floats | None = None
    window_high: Floats | None = None
    statistic: str | None = None
    statistics: dict[str, LevelValues] | None = None


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
    said = {"step": str(int(release.step if step is None else step))}
    if start is not None:
        said["start"] = json.dumps(start)
    if named:
        said["bins"] = json.dumps(dict(named))
    if release.statistic is not None:
        said["statistic"] = json.dumps(release.statistic)
    said |= _numbers_of(release) | _lists(release, WINDOW)
    for kind in ("levels", "statistics"):
        if told := getattr(release, kind):
            parts = {json.dumps(name)[1:-1]: _object(_numbers_of(each)) for name, each in told.items()}
            said[kind] = _object(parts)
    if answers:
        said["answers"] = json.dumps(list(answers), allow_nan=False)
    return _object(said).encode()


def read_line(line: bytes) -> ReleaseLine:
    """The release that a line holds.

    >>> read_line(b'{"step": 4, "fresh": false, "values": [3, 4], "scale": [null, 2]}').scale
    array([inf,  2.])
    """
    said = json.loads(line)
    told: dict[str, Any] = {
        kind: {name: _level(each) for name, each in said[kind].items()}
        for kind in ("levels", "statistics")
        if kind in said
    }
    told |= {name: said[name] for name in ("start", "statistic") if name in said}
    told |= {"named": said.get("bins", {}), **_arrays(said, _ARRAYS + WINDOW)}
    return ReleaseLine(said["step"], said["fresh"], answers=tuple(said.get("answers", ())), **told)


def _level(said: dict[str, Any]) -> LevelValues:
    return LevelValues(fresh=said["fresh"], **_arrays(said, _ARRAYS))


def _arrays(said: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Its numbers; what is null is infinite of a scale, and else NaN."""
    found = {name: np.array(said[name], dtype=np.float64) for name in names if name in said}
    for name in found.keys() & {"scale", "window_scale"}:
        found[name][np.isnan(found[name])] = np.inf
    return found


def _object(said: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {value}' for name, value in said.items()) + "}"


def _numbers_of(release: Any) -> dict[str, str]:
    """Whether it is fresh, and its numbers, as JSON has them."""
    return {"fresh": "true" if release.fresh else "false"} | _lists(release, _ARRAYS)


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
