"""Paints drawings into files, SVG and PNG, with matplotlib, which is imported when a file is written.

Imports numpy, `errors` and the drawings.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eventide.bench.report_drawings import Curve, Figure, HeatMap, Panel
from eventide.errors import InputError

MARKS = {
    "circle-open": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "x": "X",
    "star": "*",
    "pentagon": "p",
}
MOST_COLUMNS = 3
KINDS = ("svg", "png")


def require_matplotlib() -> None:
    """Complain now, before any work, if images cannot be drawn."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        raise InputError("images need matplotlib; install it with: pip install 'eventide[plots]'") from None


def write_images(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into a folder, which is made if it is not there."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            drawn = draw(figure)
            for kind in KINDS:
                path = folder / f"{figure.name}.{kind}"
                drawn.savefig(path, dpi=150, metadata={"Date": None} if kind == "svg" else None)
                written.append(path)
    except OSError as problem:
        raise InputError(f"cannot write to {folder}: {problem.strerror}; choose another --figures") from None
    return written


def draw(figure: Figure) -> Any:
    """A matplotlib figure: its charts side by side, a legend or a bar of colours beside them."""
    require_matplotlib()
    across = min(len(figure.charts), MOST_COLUMNS)
    down = math.ceil(len(figure.charts) / across)
    first = figure.charts[0]
    height = 1.6 + 0.2 * len(first.rows) if isinstance(first, HeatMap) else 3.6
    image = importlib.import_module("matplotlib.figure").Figure(
        figsize=(max(5.2 * across, 8), height * down + 0.5), layout="constrained"
    )
    grid = image.subplots(down, across, squeeze=False).ravel()
    painted = [_paint(axes, chart) for axes, chart in zip(grid, figure.charts, strict=False)]
    for axes in grid[len(figure.charts) :]:
        axes.set_axis_off()
    if isinstance(first, HeatMap):
        bar = image.colorbar(painted[0], ax=grid.tolist(), label=first.scale.meaning)
        bar.set_ticks(
            [first.scale.place(tick) for tick in first.scale.ticks], labels=[f"{t:g}" for t in first.scale.ticks]
        )
    else:
        found = {label: line for axes in grid for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        names = dict.fromkeys(
            curve.name for chart in figure.charts if isinstance(chart, Panel) for curve in chart.curves
        )
        image.legend([found[name] for name in names], list(names), loc="outside right upper", fontsize=8)
    image.suptitle(figure.title, fontsize=11)
    return image


def _paint(axes: Any, chart: Panel | HeatMap) -> Any:
    axes.set_title(chart.title, fontsize=9)
    if isinstance(chart, HeatMap):
        return _heat_map(axes, chart)
    for curve in chart.curves:
        _curve(axes, curve)
    axes.set(xlabel=chart.x_title, ylabel=chart.y_title, yscale="log" if chart.y_log else "linear")
    axes.tick_params(labelsize=8)
    axes.grid(alpha=0.3)
    return None


def _curve(axes: Any, curve: Curve) -> None:
    style = curve.style
    look = {
        "color": style.colour,
        "marker": MARKS[style.marker] if style.marker else None,
        "markerfacecolor": "none" if style.marker == "circle-open" else style.colour,
        "linestyle": "none" if not style.line else ":" if style.dash else "-",
        "linewidth": 1.4 if style.marker else 0.9,
        "markersize": 5,
        "label": curve.name,
    }
    if curve.low is None or curve.high is None:
        axes.plot(curve.x, curve.y, **look)
    else:
        reach = np.abs(np.array([curve.low, curve.high]) - np.array(curve.y))
        axes.errorbar(curve.x, curve.y, yerr=np.nan_to_num(reach), capsize=2, elinewidth=0.9, **look)


def _heat_map(axes: Any, heat: HeatMap) -> Any:
    colors = importlib.import_module("matplotlib.colors")
    places = np.array([[math.nan if math.isnan(r) else heat.scale.place(r) for r in row] for row in heat.ratios])
    ramp = colors.LinearSegmentedColormap.from_list("scale", heat.scale.colours)
    image = axes.imshow(places, cmap=ramp, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(heat.columns)), heat.columns, rotation=60, fontsize=7)
    axes.set_yticks(range(len(heat.rows)), heat.rows, fontsize=7)
    for row, texts in enumerate(heat.texts):
        for column, text in enumerate(texts):
            if text:
                red, green, blue, _ = ramp(places[row, column])
                ink = "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"
                axes.text(column, row, text, ha="center", va="center", fontsize=6, color=ink)
    return image
