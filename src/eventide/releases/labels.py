"""What is written at the axis of a statistic: its name in words."""

from __future__ import annotations

from eventide.events.durations import in_words, milliseconds

_ONE = {"1 hour": "an hour", "1 day": "a day"}
_WINDOW = "window:"


def label(statistic: str) -> str:
    """The name of a statistic, as releases have it, in words.

    >>> label("people/1d"), label("mean:fare"), label("quantile:fare:0.5"), label("window:events")
    ('people of a day', 'mean of fare', 'median of fare', 'events of the last steps')
    """
    if statistic.startswith(_WINDOW):
        return f"{label(statistic.removeprefix(_WINDOW))} of the last steps"
    kind, slash, slot = statistic.partition("/")
    if slash and kind == "people":
        length = in_words(milliseconds(slot.partition("/")[0]))
        return f"people of {_ONE.get(length, length)}"
    kind, colon, column = statistic.partition(":")
    if kind == "quantile":
        column, _, part = column.rpartition(":")
        kind = "median" if part == "0.5" else f"quantile {part}"
    return f"{kind} of {column}" if colon else statistic
