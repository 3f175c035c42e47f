"""What is drawn, before anybody draws it: panels of curves, heat maps, and figures made of them.

Image files, notebooks and pages are painted from the same drawings, so that all show the same values. A drawing holds
what may be seen and nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Floats

MARKERS = ("square", "diamond", "triangle-up", "cross", "x", "star", "triangle-down", "pentagon")
COLOURS = (
    "#3b82c4",
    "#d9534f",
    "#2a9d6f",
    "#b8860b",
    "#8e63c7",
    "#d9772b",
    "#1f9fb0",
    "#c2559a",
    "#7a8b2e",
    "#8a6d5a",
    "#6b7785",
    "#4f6bd6",
)
GREY = "#8a96a3"
LONGEST_NAME = 60


class TextTable(NamedTuple):
    """Headings and rows of text."""

    headings: list[str]
    rows: list[list[str]]


class Style(NamedTuple):
    """How a curve looks; without a marker it is a plain line, without a line mere points."""

    colour: str
    marker: str | None = None
    dash: bool = False
    line: bool = True


class Curve(NamedTuple):
    """Points, perhaps with an interval around each; the intervals of a plain line are a band, perhaps with a name."""

    name: str
    style: Style
    x: list[float] | list[str] | list[datetime]
    y: list[float]
    low: list[float] | None = None
    high: list[float] | None = None
    band: str = ""


class Panel(NamedTuple):
    """Curves over one pair of axes."""

    title: str
    x_title: str
    y_title: str
    curves: list[Curve]
    y_log: bool = True


class Scale(NamedTuple):
    """Colours of ratios, from `low` to `high` on a logarithmic scale; what lies beyond gets the colour of the end."""

    meaning: str
    low: float
    high: float
    ticks: tuple[float, ...]
    colours: tuple[str, ...]

    def place(self, ratio: float) -> float:
        """Where a ratio lies between the ends, from 0 to 1."""
        inside = min(max(ratio, self.low), self.high)
        return math.log(inside / self.low) / math.log(self.high / self.low)


DISTANCE = Scale(
    "times the best error",
    1.0,
    100.0,
    (1, 3, 10, 30, 100),
    ("#fde725", "#9fda3a", "#4ac16d", "#1fa187", "#277f8e", "#365c8d", "#46327e", "#440154"),
)
CHANGE = Scale(
    "times the error (blue is better)",
    0.25,
    4.0,
    (0.25, 0.5, 1, 2, 4),
    ("#2166ac", "#92c5de", "#f2f0eb", "#f4a582", "#b2182b"),
)


class HeatMap(NamedTuple):
    """Ratios by row and column, NaN where there is none; `texts` are written into the cells."""

    title: str
    rows: list[str]
    columns: list[str]
    ratios: Floats
    scale: Scale
    texts: list[list[str]]
    x_title: str
    y_title: str = "stream"


Chart = Panel | HeatMap


@dataclass(frozen=True)
class Figure:
    """Charts that belong together: a name for files, a caption that says what to see, the values as a table."""

    name: str
    title: str
    caption: str
    charts: tuple[Chart, ...]
    table: TextTable


def stepped(begin: int, values: Array) -> tuple[list[float], list[float]]:
    """A curve that stays level through each step, of which `begin` is the first.

    >>> stepped(7, np.array([1, 3]))
    ([6.5, 7.5, 7.5, 8.5], [1.0, 1.0, 3.0, 3.0])
    """
    return level_between((begin - 0.5 + np.arange(len(values) + 1)).tolist(), values)


def level_between(edges: Sequence[Any], values: Array) -> tuple[list[Any], list[float]]:
    """The same between any edges, one more than there are values: numbers or moments.

    >>> level_between([0, 10, 15], np.array([1, 3]))
    ([0, 10, 10, 15], [1.0, 1.0, 3.0, 3.0])
    """
    x = [edge for edge in edges for _ in range(2)][1:-1]
    return x, np.repeat(values, 2).astype(np.float64).tolist()


def largest(values: Array, most: int) -> list[int]:
    """The places of the largest values, largest first; of no more than `most` values, all in their order.

    >>> largest(np.array([3, 1, 2]), 3), largest(np.array([3, 1, 4]), 2)
    ([0, 1, 2], [2, 0])
    """
    if len(values) <= most:
        return list(range(len(values)))
    return [int(place) for place in np.argsort(-values, kind="stable")[:most]]


def style_of(column: int, baseline: bool) -> Style:
    """The look of the mechanism in that column of a field; baselines are circles."""
    return Style(
        COLOURS[column % len(COLOURS)],
        "circle-open" if baseline else MARKERS[column % len(MARKERS)],
        dash=column >= len(COLOURS),
    )


def shown(value: float) -> str:
    """A number for people, to three figures.

    >>> shown(0.012345), shown(12.345), shown(12345.6), shown(1e-8), shown(float("nan"))
    ('0.0123', '12.3', '12,346', '<0.001', '–')
    """
    if math.isnan(value):
        return "–"
    if 0 < value < 0.001:
        return "<0.001"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def shown_briefly(value: float) -> str:
    """A number that fits into a small cell.

    >>> shown_briefly(1.04), shown_briefly(12.3), shown_briefly(float("nan"))
    ('1.0', '12', '')
    """
    if math.isnan(value):
        return ""
    return f"{value:.1f}" if value < 9.95 else f"{value:.0f}"


def shortened(name: str) -> str:
    """A name on one line, cut where it is too long to be read at a glance.

    >>> shortened("two\\nlines"), shortened("a" * 100) == "a" * 59 + "…"
    ('two lines', True)
    """
    line = " ".join(name[: 4 * LONGEST_NAME].split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"


def percent(part: float) -> str:
    """A part of a whole.

    >>> percent(0.375), percent(0.0042), percent(0.0001), percent(0)
    ('38 %', '0.4 %', 'below 0.1 %', '0 %')
    """
    if 0 < part < 0.001:
        return "below 0.1 %"
    return f"{100 * part:.1f} %" if 0 < part < 0.01 else f"{100 * part:.0f} %"
