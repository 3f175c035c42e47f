"""Paints drawings with matplotlib, which is imported when something is drawn; without it, says what to install.

Names are shown as they are: a dollar sign begins no formula.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from eventide.display.drawings import Chart, Curve, HeatMap, Panel
from eventide.display.replacing import IN_IMAGES, IN_OLDER_IMAGES, refuse_foreign
from eventide.errors import missing_extra

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
    "line-ns": "|",
}
MADE: dict[str, dict[str, str | None]] = {  # without a date, so that equal figures are equal files
    ".pdf": {"Creator": IN_IMAGES.decode(), "CreationDate": None},
    ".svg": {"Creator": IN_IMAGES.decode(), "Date": None},
    ".png": {"Software": IN_IMAGES.decode()},
}
MOST_COLUMNS = 3
PANEL_HEIGHT = 3.6  # inches


def require_matplotlib() -> None:
    """Complain now, before any work, if nothing can be drawn."""
    try:
        importlib.import_module("matplotlib.figure")
    except ImportError:
        raise missing_extra("pictures need matplotlib", "plots") from None


def new_picture(width: float, height: float) -> Any:
    """An empty matplotlib figure, of so many inches."""
    require_matplotlib()
    from eventide.display.picture import Picture

    return Picture(figsize=(width, height), layout="constrained")


def check_image(path: Path) -> None:
    """Refuse to replace an image that is surely not ours; only of these kinds can be said who made them."""
    if path.suffix.lower() in MADE:
        refuse_foreign(path, IN_IMAGES, IN_OLDER_IMAGES)


def save(picture: Any, *paths: Path) -> None:
    """Write a picture to files, and into each that we made it."""
    for path in paths:
        picture.savefig(path, dpi=150, metadata=MADE.get(path.suffix.lower()))


def draw(title: str, charts: Sequence[Chart], across: int = MOST_COLUMNS, height: float = PANEL_HEIGHT) -> Any:
    """A matplotlib figure: charts in rows of at most `across`, a legend or a bar of colours beside them.

    height: of a panel, in inches; that of a heat map follows from its rows.
    """
    across = min(len(charts), across)
    down = math.ceil(len(charts) / across)
    first = charts[0]
    if isinstance(first, HeatMap):
        height = 1.6 + 0.2 * len(first.rows)
    image = new_picture(max(5.2 * across, 8), height * down + 0.5)
    grid = image.subplots(down, across, squeeze=False).ravel()
    painted = [paint(axes, chart) for axes, chart in zip(grid, charts, strict=False)]
    for axes in grid[len(charts) :]:
        axes.set_axis_off()
    if isinstance(first, HeatMap):
        bar = image.colorbar(painted[0], ax=grid.tolist(), label=first.scale.meaning)
        bar.set_ticks(
            [first.scale.place(tick) for tick in first.scale.ticks], labels=[f"{t:g}" for t in first.scale.ticks]
        )
    else:
        found = {label: line for axes in grid for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        curves = [curve for chart in charts if isinstance(chart, Panel) for curve in chart.curves]
        names = dict.fromkeys(plain(name) for curve in curves for name in (curve.name, curve.band) if name)
        image.legend([found[name] for name in names], list(names), loc="outside right center", fontsize=8)
    image.suptitle(plain(title), fontsize=11)
    return image


def plain(text: str) -> str:
    """A text that matplotlib shows letter by letter."""
    return text.replace("$", r"\$")


def paint(axes: Any, chart: Chart) -> Any:
    """Paint one chart into axes; a heat map gives what a bar of colours is made from."""
    axes.set_title(plain(chart.title), fontsize=9)
    axes.set(xlabel=chart.x_title, ylabel=chart.y_title)
    if isinstance(chart, HeatMap):
        return _heat_map(axes, chart)
    for curve in chart.curves:
        _curve(axes, curve)
    if chart.y_log:
        from eventide.display.picture import PlainLogTicks

        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(PlainLogTicks())
        axes.yaxis.set_minor_formatter(PlainLogTicks())
    axes.tick_params(labelsize=8, which="both")
    axes.grid(alpha=0.3)
    if any(isinstance(curve.x[0], datetime) for curve in chart.curves if curve.x):
        dates, locator = importlib.import_module("matplotlib.dates"), axes.xaxis.get_major_locator()
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator, tz=locator.tz))
    return None


def _curve(axes: Any, curve: Curve) -> None:
    style = curve.style
    x = [plain(place) if isinstance(place, str) else place for place in curve.x]
    look = {
        "color": style.colour,
        "marker": MARKS[style.marker] if style.marker else None,
        "markerfacecolor": "none" if style.marker == "circle-open" else style.colour,
        "linestyle": "none" if not style.line else ":" if style.dash else "-",
        "linewidth": 1.4 if style.marker else 0.9,
        "markersize": 5,
        "label": plain(curve.name),
    }
    if curve.low is None or curve.high is None:
        axes.plot(x, curve.y, **look)
    elif style.marker is None:
        axes.plot(x, curve.y, **look)
        label = plain(curve.band) or None
        axes.fill_between(x, curve.low, curve.high, color=style.colour, alpha=0.2, linewidth=0, label=label)
    else:
        reach = np.abs(np.array([curve.low, curve.high]) - np.array(curve.y))
        axes.errorbar(x, curve.y, yerr=np.nan_to_num(reach), capsize=2, elinewidth=0.9, **look)


def _heat_map(axes: Any, heat: HeatMap) -> Any:
    colors = importlib.import_module("matplotlib.colors")
    places = np.array([[math.nan if math.isnan(r) else heat.scale.place(r) for r in row] for row in heat.ratios])
    ramp = colors.LinearSegmentedColormap.from_list("scale", heat.scale.colours)
    image = axes.imshow(places, cmap=ramp, vmin=0, vmax=1, aspect="auto")
    axes.set_xticks(range(len(heat.columns)), map(plain, heat.columns), rotation=60, fontsize=7)
    axes.set_yticks(range(len(heat.rows)), map(plain, heat.rows), fontsize=7)
    for row, texts in enumerate(heat.texts):
        for column, text in enumerate(texts):
            if text:
                red, green, blue, _ = ramp(places[row, column])
                ink = "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"
                axes.text(column, row, text, ha="center", va="center", fontsize=6, color=ink)
    return image
