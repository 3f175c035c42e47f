"""The parts of a report's page: tables, legends and figures as HTML, and charts as what plotly's script takes.

Whatever is given is text, and is escaped, also for plotly, which reads some HTML in texts. A chart is data and layout
in plain lists and dictionaries; colours of texts and lines that follow the page's light or dark scheme are left to the
page.
"""

from __future__ import annotations

import html
import math
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from eventide.display.drawings import Chart, Curve, Figure, HeatMap, Panel, Scale, TextTable, shown

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
ROW_HEIGHT = 17  # of a heat map, in pixels
LINE_HEIGHT = 12  # of every further line of a row's label
LABEL_WIDTH = 32  # letters; longer labels are broken, to leave room for cells on a phone
LEAST_HEIGHT = 110  # of all its rows
PANEL_HEIGHT = 320
SEE_THROUGH = "33"  # a fifth, behind a colour


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
            words = html.escape(f"{figure.title} {chart.title}. The values are in the table below.")
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

    HTML needs no closing tags of cells and rows, which are a fifth of a large table.

    words: it holds sentences, not numbers.
    """
    head = "".join(f"<th>{html.escape(heading)}" for heading in values.headings)
    cells = _headed_cells if words else _cells
    body = "".join(f"<tr>{cells(values.headings, row)}" for row in values.rows)
    kind = "scroll words" if words else "scroll"
    drawn = f'<div class="{kind}"><table><thead><tr>{head}<tbody>{body}</table></div>'
    return drawn if folded is None else f"<details><summary>{html.escape(folded)}</summary>{drawn}</details>"


def _cells(headings: list[str], row: list[str]) -> str:
    return "".join(f"<td>{html.escape(cell)}" for _, cell in zip(headings, row, strict=True))


def _headed_cells(headings: list[str], row: list[str]) -> str:
    """Cells that know their heading, which a narrow screen shows beside them."""
    pairs = zip(headings, row, strict=True)
    return "".join(f'<td data-heading="{html.escape(heading)}">{html.escape(cell)}' for heading, cell in pairs)


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


def paint(chart: Chart) -> dict[str, Any]:
    """Data, layout and height in pixels."""
    return _heat_map(chart) if isinstance(chart, HeatMap) else _panel(chart)


def _panel(panel: Panel) -> dict[str, Any]:
    return {
        "data": [trace for curve in panel.curves for trace in (*_band(curve), _curve(curve))],
        "layout": {
            "title": {"text": html.escape(panel.title), "font": {"size": 13}},
            "xaxis": {"title": {"text": panel.x_title, "standoff": 6}, "automargin": True},
            "yaxis": {
                "title": {"text": panel.y_title, "standoff": 6},
                "automargin": True,
                "type": "log" if panel.y_log else "linear",
                "dtick": "D2" if panel.y_log else None,
                "tickformat": ",~r",
            },
            "margin": {"t": 34 if panel.title else 12, "r": 12, "b": 44, "l": 50},
            "hovermode": "closest",
        },
        "height": PANEL_HEIGHT,
    }


def _band(curve: Curve) -> list[dict[str, Any]]:
    """The intervals of a plain line: their lower ends, unseen, and the upper ones, filled down to these."""
    if curve.style.marker or curve.low is None or curve.high is None:
        return []
    unseen = {"type": "scatter", "mode": "lines", "x": curve.x, "line": {"width": 0}, "hoverinfo": "skip"}
    low, high = ([_number(value) for value in ends] for ends in (curve.low, curve.high))
    return [unseen | {"y": low}, unseen | {"y": high, "fill": "tonexty", "fillcolor": curve.style.colour + SEE_THROUGH}]


def _curve(curve: Curve) -> dict[str, Any]:
    style, colour = curve.style, curve.style.colour
    mode = "+".join(part for part, wanted in (("lines", style.line), ("markers", style.marker)) if wanted)
    trace: dict[str, Any] = {
        "type": "scatter",
        "name": html.escape(curve.name),
        "mode": mode,
        "x": curve.x,
        "y": [_number(value) for value in curve.y],
        "line": {"color": colour, "width": 2 if style.marker else 1.2, "dash": "dot" if style.dash else "solid"},
        "marker": {
            "color": style.colour,
            "symbol": style.marker,
            "size": 8,
            "line": {"width": 2, "color": style.colour},
        },
        "hovertemplate": "%{fullData.name}<br>%{x}: <b>%{y:,.4~r}</b><extra></extra>",
    }
    if style.marker and curve.low is not None and curve.high is not None:
        trace["error_y"] = {
            "type": "data",
            "symmetric": False,
            "array": [_number(high - value) for value, high in zip(curve.y, curve.high, strict=True)],
            "arrayminus": [_number(value - low) for value, low in zip(curve.y, curve.low, strict=True)],
            "thickness": 1.2,
            "width": 3,
        }
    return trace


def _heat_map(heat: HeatMap) -> dict[str, Any]:
    """Cells are placed by number, so that labels may repeat; `z` holds their colours."""
    places = [
        [None if math.isnan(ratio) else round(heat.scale.place(ratio), 4) for ratio in row] for row in heat.ratios
    ]
    rows, columns = list(map(html.escape, heat.rows)), list(map(html.escape, heat.columns))
    hover = [
        [f"{row}<br>{column}: <b>{shown(ratio)}</b>" for column, ratio in zip(columns, ratios, strict=True)]
        for row, ratios in zip(rows, heat.ratios.tolist(), strict=True)
    ]
    trace = {
        "type": "heatmap",
        "z": places,
        "text": heat.texts,
        "texttemplate": "%{text}",
        "textfont": {"size": 11},
        "hovertext": hover,
        "hoverinfo": "text",
        "zmin": 0,
        "zmax": 1,
        "colorscale": _colour_scale(heat.scale),
        "showscale": False,
        "xgap": 1,
        "ygap": 1,
    }
    return {
        "data": [trace],
        "layout": {
            "title": {"text": html.escape(heat.title), "font": {"size": 13}},
            "xaxis": _labels(heat.columns, heat.x_title) | {"tickangle": -60, "side": "bottom"},
            "yaxis": _labels(heat.rows, heat.y_title) | {"autorange": "reversed"},
            "margin": {"t": 30 if heat.title else 6, "r": 6, "b": 10, "l": 10},
        },
        "height": 100 + max(_row_height(heat.rows) * len(heat.rows), LEAST_HEIGHT) + (24 if heat.title else 0),
    }


def _row_height(labels: list[str]) -> int:
    return ROW_HEIGHT + LINE_HEIGHT * (max(len(_lines(label)) for label in labels) - 1)


def _lines(label: str) -> list[str]:
    return textwrap.wrap(label, LABEL_WIDTH) or [""]


def _labels(texts: list[str], title: str) -> dict[str, Any]:
    return {
        "title": {"text": title, "standoff": 6},
        "tickvals": list(range(len(texts))),
        "ticktext": ["<br>".join(map(html.escape, _lines(text))) for text in texts],
        "tickfont": {"size": 10},
        "automargin": True,
        "showgrid": False,
        "zeroline": False,
        "ticks": "",
    }


def _colour_scale(scale: Scale) -> list[list[Any]]:
    last = len(scale.colours) - 1
    return [[place / last, colour] for place, colour in enumerate(scale.colours)]


def _number(value: float) -> float | None:
    """To four figures, as a chart shows them; JSON knows no NaN."""
    return float(f"{value:.4g}") if math.isfinite(value) else None
