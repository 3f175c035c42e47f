"""The demo's work: the same city published by four mechanisms, each with its error against the truth.

Errors against true counts can be shown only because the city is synthetic. The noise is secure, never seeded: what the
demo shows is what would leave the house.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import eventide as ev
from eventide.arrays import Floats
from eventide.streams.city import City

IDEAS = {
    "tide": (
        "Tide",
        "looks when looking pays, and says at every step where each count should be, with a band",
    ),
    "ba": ("Budget absorption", "looks when the city has changed enough, and spends what calm steps have saved"),
    "uniform": ("Uniform", "looks at every step with an equal, thin share of the budget"),
    "sample": ("Sample", "looks once per window with all of the budget, and repeats itself in between"),
}


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
