"""A line of steps under a limit, drawn as SVG: without a script, so it prints and shows anywhere."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

WIDTH, HEIGHT = 900, 240
LEFT, RIGHT, TOP, BOTTOM = 60, 12, 16, 34
MOST_POINTS = 2_000  # above it the largest value of each stretch is drawn


def step_picture(
    places: Sequence[float],
    values: Sequence[float],
    limit: float | Sequence[float],
    ends: tuple[str, str],
    what: str,
) -> str:
    """A picture of values that each hold from one place to the next, with a line at the limit.

    Parameters
    ----------
    places
        Where each value begins, from left to right.
    values
        As many values, 0 or more.
    limit
        Where the line is drawn: at the same height everywhere, or with a limit for each value.
    ends
        What stands below the first and the last place.
    what
        What is drawn, for those who cannot see it.

    >>> step_picture([0, 1], [1, 0], 1, ("a", "b"), "spent").count("<path")
    2
    """
    if not places:
        return ""
    limits: Sequence[float] = limit if isinstance(limit, Sequence) else [limit] * len(places)
    (places, values), (_, limits) = _thinned(places, values), _thinned(places, limits)
    top = max([*limits, *values]) * 1.08 or 1
    first, width = places[0], (places[-1] - places[0]) or 1

    def across(place: float) -> float:
        return LEFT + (place - first) / width * (WIDTH - LEFT - RIGHT)

    def up(value: float) -> float:
        return HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM)

    points = [f"M {across(places[0]):.1f} {up(values[0]):.1f}"]
    for (_, before), (place, value) in pairwise(zip(places, values, strict=True)):
        points.append(f"L {across(place):.1f} {up(before):.1f} L {across(place):.1f} {up(value):.1f}")
    points.append(f"L {WIDTH - RIGHT} {up(values[-1]):.1f}")
    line = " ".join(points)
    area = f"{line} L {WIDTH - RIGHT} {up(0):.1f} L {LEFT} {up(0):.1f} Z"
    lines = "".join(
        f'<line class="limit" x1="{x1:.1f}" x2="{x2:.1f}" y1="{up(height):.1f}" y2="{up(height):.1f}"/>'
        for x1, x2, height in _level(places, limits, across)
    )
    texts = [
        *((LEFT - 8, up(height) + 4, "end", f"{height:g}") for height in dict.fromkeys(limits)),
        (LEFT - 8, up(0) + 4, "end", "0"),
        (LEFT, HEIGHT - 10, "start", ends[0]),
        (WIDTH - RIGHT, HEIGHT - 10, "end", ends[1]),
    ]
    labels = "".join(
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(text)}</text>'
        for x, y, anchor, text in texts
    )
    return (
        f'<svg class="steps" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(what)}">'
        f'<path class="area" d="{area}"/><path class="line" d="{line}"/>'
        f'{lines}<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{up(0):.1f}" y2="{up(0):.1f}"/>{labels}</svg>'
    )


def _level(
    places: Sequence[float], heights: Sequence[float], across: Callable[[float], float]
) -> Iterator[tuple[float, float, float]]:
    """Pieces of a line: from where to where it is how high."""
    begin = 0
    for place in range(1, len(places) + 1):
        if place == len(places) or heights[place] != heights[begin]:
            end = WIDTH - RIGHT if place == len(places) else across(places[place])
            yield across(places[begin]), end, heights[begin]
            begin = place


def _thinned(places: Sequence[float], values: Sequence[float]) -> tuple[Sequence[float], Sequence[float]]:
    stretch = -(-len(places) // MOST_POINTS)
    if stretch == 1:
        return places, values
    begins = range(0, len(places), stretch)
    return [places[begin] for begin in begins], [max(values[begin : begin + stretch]) for begin in begins]
