"""What a dry run says: how large errors will be, in sentences, as a small picture in text, and for a program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eventide.events.statistics import SLOTS
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.expected_error import COUNTS, ExpectedError, Prediction
from eventide.mechanisms.several import Several
from eventide.windows.answering.answers import Answers

WIDTH = 24  # of a bar that stands for 100 %, in characters
EIGHTHS = " ▏▎▍▌▋▊▉█"
MOST_SHOWN = 6  # pictures
IN_UNIT = "in the unit of its column"
LEFT_OUT = (
    "Events that the limit per person (--max-per-step, --cap) leaves out are not included; `eventide choose HISTORY "
    "--user COLUMN` measures that for caps, on old or public events."
)


def errors_of_looks(mechanism: Mechanism, unit: float, answers: Answers | None = None) -> dict[str, Any]:
    """What is known before anything is spent: errors of looks, and of the answers to window queries.

    `unit` is what 1 in the counts is worth in what is published.
    """
    smallest, largest = (unit * scale for scale in mechanism.noise_range())
    return {
        "smallest_error_of_a_look": smallest,
        "largest_error_of_a_look": largest if math.isfinite(largest) else None,
        **_of_histograms(mechanism, unit),
        **({"errors_are_in": "events"} if isinstance(mechanism, Several) else {}),
    } | ({} if answers is None else {"standard_errors": standard_errors(answers)})


def _of_histograms(mechanism: Mechanism, unit: float) -> dict[str, Any]:
    """The noise of histograms of sliding windows, where there are any."""
    if (known := mechanism.window_noise_range()) is None:
        return {}
    smallest, largest = (unit * scale for scale in known)
    span = getattr(mechanism, "span", None)
    return {"span": span, "smallest_scale_of_a_histogram": smallest, "largest_scale_of_a_histogram": largest}


def standard_errors(answers: Answers) -> list[dict[str, Any]]:
    """The error of every query's answers, known beforehand; none for a query that no window of the stream answers."""
    errors = answers.plan.errors(answers.ledger.window, answers.sensitivity)
    return [
        {"query": str(query), "standard_error": None if math.isnan(error) else math.sqrt(error)}
        for query, error in zip(answers.plan.queries, errors.tolist(), strict=True)
    ]


def answers_told(report: dict[str, Any]) -> list[str]:
    """The error of every query that is answered beside the releases."""
    errors = report.get("standard_errors", [])
    told = [f"{each['query']}: {each['standard_error']:,.3g}" for each in errors if each["standard_error"] is not None]
    return [f"Expected standard error of the answers to window queries: {'; '.join(told)}."] if told else []


def checked(report: dict[str, Any]) -> str:
    """What was looked at, and what one measurement and a window would cost: one paragraph.

    `report` holds what `errors_of_looks` gave, the bins, epsilon, window and window sensitivity, and the number of
    steps where it is known.
    """
    bins = of_bins(report)
    looked_at = bins if report.get("steps") is None else f"{report['steps']:,} steps of {bins}"
    smallest, largest = report["smallest_error_of_a_look"], report["largest_error_of_a_look"]
    if smallest == largest:
        range_of_errors = ""
    else:
        upto = " or more" if largest is None else f" to {_plainly(largest)}"
        range_of_errors = f"{upto}, depending on how much budget it gets"
    steps, capped = of_window(report), report["window_sensitivity"] is not None
    return (
        f"Checked {looked_at}; nothing was published or charged. Expected error of one measurement"
        f"{' in events' if 'errors_are_in' in report else ''}: {_plainly(smallest)}{range_of_errors}. "
        f"{f'One person would lose in {steps}' if capped else f'{steps.capitalize()} would spend'} at most "
        f"{report['epsilon']:g} of epsilon.{_histograms(report)}"
    )


def _plainly(error: float) -> str:
    """An error to three figures, of which large ones are written out.

    >>> _plainly(20249.0), _plainly(2.345)
    ('20,200', '2.35')
    """
    return f"{float(f'{error:.3g}'):,.0f}" if error >= 1000 else f"{error:.3g}"


def of_bins(report: dict[str, Any]) -> str:
    """How many bins there are, in words."""
    return f"{report['bins']:,} {'bin' if report['bins'] == 1 else 'bins'}"


def of_window(report: dict[str, Any]) -> str:
    """Which steps share a budget, in words."""
    return "any single step" if report["window"] == 1 else f"any {report['window']} steps"


def _histograms(report: dict[str, Any]) -> str:
    if "span" not in report:
        return ""
    smallest, largest = report["smallest_scale_of_a_histogram"], report["largest_scale_of_a_histogram"]
    scales = f"{smallest:,.3g}" + (f" to {largest:,.3g}" if largest > smallest else "")
    return f" Expected noise scale of a histogram of the last {report['span']} steps: {scales}."


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
