"""The demo's picture: one HTML page with everything inside, which loads nothing from anywhere.

It shows true counts beside private ones and is therefore for synthetic cities only; the page says so. The charts are
drawn by plotly's own script, put into the page, from the data that stands next to it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from eventide.arrays import Floats
from eventide.cli.demo_run import Published
from eventide.display.pages import embedded, filled
from eventide.streams.city import City

MONDAY = np.datetime64("2001-01-01T00:00")
BUSIEST = 12


def build_page(town: City, published: Sequence[Published], epsilon: float, window: int) -> str:
    """Fill the template with the city, its publications and plotly's script."""
    steps, size = town.counts.shape
    parts = {
        "summary": f"{size} places of a small city, counted at {steps} steps of {_minutes(town)} minutes each.",
        "guarantee": html.escape(published[0].guarantee),
        "rows": "".join(_row(one, steps) for one in published),
        "data": embedded(_data(town, published, epsilon, window)),
    }
    return filled("eventide.cli", "demo_page.html", parts)


def _minutes(town: City) -> int:
    return 24 * 60 // town.steps_per_day


def _row(one: Published, steps: int) -> str:
    return (
        f"<tr><td>{one.title}<small>{one.idea}</small></td><td>{one.error_per_place:,.1f}</td>"
        f"<td>{one.error_of_total:,.0f}</td><td>{one.looks} of {steps}</td><td>{one.worst_window:.3f}</td></tr>"
    )


def _whole(counts: Floats | None) -> list[list[int]] | None:
    """Whole numbers for the page, of what there is."""
    return None if counts is None else np.rint(counts).astype(np.int64).tolist()


def _data(town: City, published: Sequence[Published], epsilon: float, window: int) -> dict[str, Any]:
    times = MONDAY + np.arange(len(town.counts)) * np.timedelta64(_minutes(town), "m")
    sizes = {kind: len(list(members)) for kind, members in groupby(town.kinds)}
    ends = np.cumsum(list(sizes.values()))
    return {
        "epsilon": epsilon,
        "window": window,
        "times": np.datetime_as_string(times).tolist(),
        "bins": town.bins,
        "kind_names": list(sizes),
        "kind_rows": (ends - np.array(list(sizes.values())) / 2).tolist(),
        "busiest": np.argsort(-town.counts.max(axis=0))[:BUSIEST].tolist(),
        "heat_limit": float(np.percentile(town.counts, 99)),
        "counts": town.counts.tolist(),
        "mechanisms": [
            {
                "title": one.title,
                "idea": one.idea,
                "values": _whole(one.values),
                "low": _whole(one.low),
                "high": _whole(one.high),
                "spent_in_window": np.round(one.spent_in_window, 9).tolist(),
            }
            for one in published
        ],
    }
