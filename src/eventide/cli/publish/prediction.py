"""The part of `eventide publish --dry-run` that says how large errors will be, in a sentence and as a small picture."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eventide.cli.progress import naming
from eventide.cli.publish import Options
from eventide.events.durations import UNITS
from eventide.events.statistics import SLOTS
from eventide.live.publisher.publisher import Publisher
from eventide.mechanisms.expected_error import COUNTS, ExpectedError, Prediction, predict

WIDTH = 24  # of a bar that stands for 100 %, in characters
EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_SHOWN = 6  # pictures
IN_UNIT = "in the unit of its column"
LEFT_OUT = (
    "Events that the limit per person (--max-per-step, --cap) leaves out are not included; `eventide choose HISTORY "
    "--user COLUMN` measures that for caps, on old or public events."
)


def expected(options: Options, publisher: Publisher) -> Prediction:
    """The errors to expect of what a publisher would release."""
    length = publisher.feed.describe().get("length")
    a_day = UNITS["d"] // length if length and length < UNITS["d"] else None
    with naming("predicting the error"):
        return predict(publisher.mechanism, options.spec.made_statistic(), a_day)


def document(found: Prediction) -> dict[str, Any]:
    """The same for a program."""
    of = [
        {name: [_finite(number) for number in told] if isinstance(told, tuple) else told for name, told in each.items()}
        for each in (error._asdict() for error in found.errors)
    ]
    return {"expected_error": {"simulated_steps": found.simulated or None, "counts": list(COUNTS), "of": of}}


def sentences(found: Prediction, *, limited: bool = False) -> list[str]:
    """What to expect, how that is known and what is not in it, and a picture of it."""
    first = found.errors[0]
    errors = (*first.steady, *first.changing)
    *smaller, largest = (f"{count:,}" for count in COUNTS)
    if first.usual is None:
        what, at = first.what, f", {IN_UNIT}, with {smaller[0]} to {largest} events in a bin and step"
    else:
        percents = ", ".join(_percent(*_shares(first.usual, first, place)) for place in range(len(COUNTS)))
        what, at = "a count", f"; at counts of {', '.join(smaller)} and {largest} that is {percents}"
    known = (
        "Simulated: a copy of the mechanism published made-up streams, not your data. The smaller figure is mostly for "
        f"counts that stay about the same, the larger one for counts that rise and fall in {found.period:,} steps."
        if found.simulated
        else "Known from a formula: every step is measured with the same noise, whatever the data."
    )
    return [
        f"With this setting the expected error of {what} is "
        f"{f'about {_between(min(errors), max(errors))}{at}' if math.isfinite(max(errors)) else 'not known'}.",
        known,
        *([LEFT_OUT] if limited else []),
        *("\n".join(_picture(each)) for each in found.errors[:MOST_SHOWN]),
    ]


def _finite(number: float) -> float | None:
    """The number, None where nothing can be said."""
    return number if math.isfinite(number) else None


def _picture(of: ExpectedError) -> list[str]:
    """The errors at each count; of counts also in percent, with a bar: full to the smaller error, light to the larger.

    How large a sum, a mean or a quantile will be nobody knows without the data, so it has no percent.
    """
    rows = []
    for place, count in enumerate(COUNTS):
        row = [f"{count:,}", _between(*sorted((of.steady[place], of.changing[place])))]
        if of.usual is not None:
            parts = _shares(of.usual, of, place)
            row += [_percent(*parts), _bar(*parts)]
        rows.append(row)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    where = "people in a bin and slot" if of.what.startswith(SLOTS) else "events in a bin and step"
    lines = [f"  {where}: error of {of.what}, {IN_UNIT if of.usual is None else 'and in percent of it'}"]
    for row in rows:
        number, *errors = (f"{cell:>{width}}" for cell, width in zip(row[:3], widths, strict=False))
        lines.append(f"  {number}: {'  '.join([*errors, *row[3:]])}".rstrip())
    return lines


def _shares(usual: Sequence[float], error: ExpectedError, place: int) -> tuple[float, float]:
    """The smaller and the larger error, as parts of what is published."""
    low, high = sorted((error.steady[place], error.changing[place]))
    return low / usual[place], high / usual[place]


def _between(low: float, high: float) -> str:
    if math.isinf(high):
        return "not known"
    smaller, larger = (f"{each:,.2g}" if each < 100 else f"{each:,.0f}" for each in (low, high))
    return smaller if smaller == larger else f"{smaller} to {larger}"


def _percent(low: float, high: float) -> str:
    return f"{_between(100 * low, 100 * high)} %" if math.isfinite(high) else "-"


def _bar(low: float, high: float) -> str:
    """
    >>> _bar(0.25, 0.5), _bar(2, 3)
    ('██████░░░░░░', '████████████████████████▶')
    """
    if not math.isfinite(high):
        return ""
    if low > 1:
        return "█" * WIDTH + "▶"
    eighths = max(round(low * WIDTH * 8), 1)
    full = "█" * (eighths // 8) + EIGHTHS[eighths % 8].strip()
    light = min(round(high * WIDTH), WIDTH) - len(full)
    return full + "░" * light + ("▶" if high > 1 else "")
