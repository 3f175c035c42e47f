"""The parts of a report's page as HTML: tables, figures, legends. Whatever is given is text, and is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

from eventide.bench.report.plotly_figures import paint
from eventide.display.drawings import Figure, HeatMap, Panel, Scale, TextTable

MARKS = {
    "circle-open": "○",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "triangle-down": "▼",
    "cross": "✚",
    "x": "✖",
    "star": "★",
    "pentagon": "⬟",
}


class Page:
    """Collects the parts of a page and the charts that its script draws."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.charts: dict[str, dict[str, Any]] = {}
        self.figures: list[Figure] = []

    def section(self, title: str, *parts: str, kind: str = "") -> None:
        """A part of the page with a heading; one without anything in it is left out."""
        if any(parts):
            self.parts.append(f'<section class="{kind}"><h2>{html.escape(title)}</h2>{"".join(parts)}</section>')

    def figure(self, figure: Figure, titled: bool = True, open_table: bool = False) -> str:
        """Charts, their legend and caption, and the values as a table."""
        self.figures.append(figure)
        divs = []
        for number, chart in enumerate(figure.charts, start=1):
            key = f"{figure.name}-chart-{number}"
            self.charts[key] = painted = paint(chart)
            words = html.escape(f"{figure.title} {chart.title}. {figure.caption} The values are in the table below.")
            divs.append(
                f'<div class="chart" id="{key}" role="img" aria-label="{words}" style="height: {painted["height"]}px">'
                "</div>"
            )
        heading = f"<h3>{html.escape(figure.title)}</h3>" if titled else ""
        wide = " single" if len(divs) == 1 else ""
        return (
            f'<figure id="{figure.name}">{heading}<figcaption>{html.escape(figure.caption)}</figcaption>'
            f'{_legend(figure)}<div class="charts{wide}">{"".join(divs)}</div>'
            f"{table(figure.table, None if open_table else 'The values')}</figure>"
        )

    def choice(self, what: str, figures: Sequence[Figure]) -> str:
        """Several figures of which one is shown at a time."""
        if not figures:
            return ""
        options = "".join(f'<option value="{figure.name}">{html.escape(figure.title)}</option>' for figure in figures)
        shown = "".join(self.figure(figure) for figure in figures)
        return f'<div class="choice"><label>{html.escape(what)} <select>{options}</select></label>{shown}</div>'


def sentences(texts: Iterable[str]) -> str:
    """A paragraph for each."""
    return "".join(f"<p>{html.escape(text)}</p>" for text in texts)


def table(values: TextTable, folded: str | None = None, words: bool = False) -> str:
    """A table that scrolls by itself where it is too wide; if `folded`, below a line that opens it.

    words: it holds sentences, not numbers.
    """
    head = "".join(f'<th scope="col">{html.escape(heading)}</th>' for heading in values.headings)
    body = "".join(f"<tr>{_cells(values.headings, row)}</tr>" for row in values.rows)
    kind = "scroll words" if words else "scroll"
    drawn = f'<div class="{kind}"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    return drawn if folded is None else f"<details><summary>{html.escape(folded)}</summary>{drawn}</details>"


def _cells(headings: list[str], row: list[str]) -> str:
    """Cells that know their heading, which a narrow screen shows beside them."""
    pairs = zip(headings, row, strict=True)
    return "".join(f'<td data-heading="{html.escape(heading)}">{html.escape(cell)}</td>' for heading, cell in pairs)


def _legend(figure: Figure) -> str:
    """Names of curves with their marks, or colours with their ratios."""
    first = figure.charts[0] if figure.charts else None
    if isinstance(first, HeatMap):
        return _colour_bar(first.scale)
    curves = [curve for chart in figure.charts if isinstance(chart, Panel) for curve in chart.curves]
    looks = {curve.name: curve.style for curve in curves if curve.x != [curve.name]}  # else the axis says it
    entries = [
        f'<span><b style="color: {style.colour}" aria-hidden="true">'
        f"{MARKS[style.marker] if style.marker else '┄' if style.dash else '━'}</b> {html.escape(name)}</span>"
        for name, style in looks.items()
    ]
    return f'<p class="legend">{"".join(entries)}</p>' if entries else ""


def _colour_bar(scale: Scale) -> str:
    ticks = "".join(
        f'<span style="left: {100 * scale.place(tick):.1f}%">{tick:g}{"+" if tick == scale.high else ""}</span>'
        for tick in scale.ticks
    )
    gradient = ", ".join(scale.colours)
    return (
        f'<div class="colours"><small>{html.escape(scale.meaning)}</small>'
        f'<i style="background: linear-gradient(to right, {gradient})"></i><div>{ticks}</div></div>'
    )
