"""Paints drawings for the page, as what plotly's script takes: data and layout in plain lists and dictionaries.

Colours of texts and lines that follow the page's light or dark scheme are left to the page. Plotly reads some HTML in
texts, so names that come from results are escaped.
"""

from __future__ import annotations

import html
import math
import textwrap
from typing import Any

from eventide.display.drawings import Chart, Curve, HeatMap, Panel, Scale, shown

ROW_HEIGHT = 17  # of a heat map, in pixels
LINE_HEIGHT = 12  # of every further line of a row's label
LABEL_WIDTH = 32  # letters; longer labels are broken, to leave room for cells on a phone
LEAST_HEIGHT = 110  # of all its rows
PANEL_HEIGHT = 320
SEE_THROUGH = "33"  # a fifth, behind a colour


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
                "tickformat": "~s",
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
        "hovertemplate": "%{fullData.name}<br>%{x}: <b>%{y:.4s}</b><extra></extra>",
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
    """Cells are placed by number, so that labels may repeat; `customdata` holds the ratios, `z` their colours."""
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
        "customdata": [[_number(ratio) for ratio in row] for row in heat.ratios.tolist()],
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
            "xaxis": _labels(heat.columns) | {"tickangle": -60, "side": "bottom"},
            "yaxis": _labels(heat.rows) | {"autorange": "reversed"},
            "margin": {"t": 30 if heat.title else 6, "r": 6, "b": 10, "l": 10},
        },
        "height": 80 + max(_row_height(heat.rows) * len(heat.rows), LEAST_HEIGHT) + (24 if heat.title else 0),
    }


def _row_height(labels: list[str]) -> int:
    return ROW_HEIGHT + LINE_HEIGHT * (max(len(_lines(label)) for label in labels) - 1)


def _lines(label: str) -> list[str]:
    return textwrap.wrap(label, LABEL_WIDTH) or [""]


def _labels(texts: list[str]) -> dict[str, Any]:
    return {
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
    """JSON knows no NaN."""
    return value if math.isfinite(value) else None
