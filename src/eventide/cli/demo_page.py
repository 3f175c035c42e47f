"""The demo's work and its picture: the same city published by four mechanisms, and one HTML page about it.

The page shows true counts, and errors against them, beside private ones; it is therefore for synthetic cities only, and
says so. It loads nothing from anywhere. The noise is secure, never seeded: what the demo shows is what would leave the
house.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

import eventide as ev
from eventide.arrays import Floats
from eventide.display.pages import embedded, filled
from eventide.streams.city import City

IDEAS = {
    "tide": (
        "Tide",
        "measures when it pays, and estimates each count at every step, with an interval around it",
    ),
    "ba": (
        "Budget absorption",
        "measures when the city has changed enough, with the budget that calm steps have saved",
    ),
    "uniform": ("Uniform", "measures every step with an equal, small share of the budget"),
    "sample": ("Sample", "measures once per window with all of the budget, and repeats that in between"),
}
MONDAY = np.datetime64("2001-01-01T00:00")
BUSIEST = 12


@dataclass(frozen=True)
class Published:
    """What one mechanism made of the city, what it spent, and how far off it is on average."""

    name: str
    guarantee: str
    values: Floats
    low: Floats | None
    high: Floats | None
    looks: int
    spent_in_window: Floats
    worst_window: float
    error_per_place: float
    error_of_total: float

    @property
    def title(self) -> str:
        """The mechanism's name in words."""
        return IDEAS[self.name][0]

    @property
    def idea(self) -> str:
        """What the mechanism does, to be read after its title."""
        return IDEAS[self.name][1]


def publish_city(town: City, name: str, epsilon: float, window: int) -> Published:
    """Publish every step of the city with the mechanism of that name."""
    mechanism = ev.mechanism(name, epsilon=epsilon, window=window, bins=town.bins)
    run = ev.run(mechanism, town.counts)
    error = run.values - town.counts
    return Published(
        name=name,
        guarantee=str(mechanism.guarantee),
        values=run.values,
        low=run.low,
        high=run.high,
        looks=int(run.fresh.sum()),
        spent_in_window=np.convolve(run.spent, np.ones(window))[: len(run.spent)],
        worst_window=float(mechanism.ledger.worst_window()),
        error_per_place=float(np.abs(error).mean()),
        error_of_total=float(np.abs(error.sum(axis=1)).mean()),
    )


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
