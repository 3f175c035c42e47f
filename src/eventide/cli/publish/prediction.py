"""The part of `eventide publish --dry-run` that says how large errors will be, in a sentence and as a small picture."""

from __future__ import annotations

import math
from typing import Any

from eventide.cli.progress import naming
from eventide.cli.publish import Options
from eventide.events.durations import UNITS
from eventide.live.publisher.publisher import Publisher
from eventide.mechanisms.expected_error import COUNTS, ExpectedError, Prediction, predict

WIDTH = 24  # of a bar that stands for 100 %, in characters
EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_SHOWN = 6  # pictures
SMALLEST_SHARE = 1e-6  # of an error: what is published is 0 on average below it, so there are no percent


def expected(options: Options, publisher: Publisher) -> Prediction:
    """The errors to expect of what a publisher would release."""
    length = publisher.feed.describe().get("length")
    a_day = UNITS["d"] // length if length and length < UNITS["d"] else None
    with naming("predicting the error"):
        return predict(publisher.mechanism, options.spec.made_statistic(), a_day)


def document(found: Prediction) -> dict[str, Any]:
    """The same for a program."""
    of = [
        {name: told if isinstance(told, str) else [_finite(number) for number in told] for name, told in each.items()}
        for each in (error._asdict() for error in found.errors)
    ]
    return {"expected_error": {"simulated_steps": found.simulated or None, "counts": list(COUNTS), "of": of}}


def sentences(found: Prediction) -> list[str]:
    """What to expect and how that is known, and a picture of it."""
    first = found.errors[0]
    errors = (*first.steady, *first.changing)
    counts = f"{COUNTS[0]:,}, {COUNTS[1]:,} and {COUNTS[2]:,}"
    percents = [_percent(*_shares(first, place)) for place in range(len(COUNTS))]
    count = first.what in ("events", "people")
    at = f"; {'at counts of' if count else 'with'} {counts}{'' if count else ' events in a bin and step'} that is "
    known = (
        "Simulated: a copy of the mechanism published made-up streams, not your data. The smaller figure is mostly for "
        f"counts that stay about the same, the larger one for counts that rise and fall in {found.period:,} steps."
        if found.simulated
        else "Known from a formula: every step is measured with the same noise, whatever the data."
    )
    return [
        f"With this setting the expected error of {'a count' if count else first.what} is about "
        f"{_between(min(errors), max(errors))}{'' if '-' in percents else at + ', '.join(percents)}.",
        known,
        *("\n".join(_picture(each)) for each in found.errors[:MOST_SHOWN]),
    ]


def _finite(number: float) -> float | None:
    """The number, None where nothing can be said."""
    return number if math.isfinite(number) else None


def _picture(of: ExpectedError) -> list[str]:
    """A bar for each count: full as far as the smaller error, light as far as the larger one."""
    rows = []
    for place, count in enumerate(COUNTS):
        errors, parts = sorted((of.steady[place], of.changing[place])), _shares(of, place)
        rows.append((f"{count:,}", _between(*errors), _percent(*parts), _bar(*parts)))
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))[:3]]
    head = f"  events in a bin and step: error of {of.what}, and in percent of it"
    lines = [[f"{cell:>{width}}" for cell, width in zip(row, widths, strict=False)] + [row[3]] for row in rows]
    return [head, *(f"  {count}: {error}  {percent}  {bar}".rstrip() for count, error, percent, bar in lines)]


def _shares(error: ExpectedError, place: int) -> tuple[float, float]:
    """The smaller and the larger error, as parts of what is published; NaN where that is mostly 0."""
    usual = error.usual[place] if error.usual[place] > SMALLEST_SHARE * error.steady[place] else math.nan
    low, high = sorted((error.steady[place], error.changing[place]))
    return low / usual, high / usual


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
