"""Which parameter decides which mechanism is good? Plain numbers, no drawing.

A parameter of streams or settings *decides* if a change of it alone changes a mechanism's distance from the best by a
factor of DECISIVE or more (geometric mean over mechanisms and pairs of cells), and does not if by less than HARMLESS.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from eventide.bench.report.field import Field

DECISIVE, HARMLESS = 2.0, 1.5


class Weight(Enum):
    """What a parameter has to say about which mechanism is good."""

    DECIDES = "decides"
    MATTERS = "matters less"
    DOES_NOT = "does not decide"


class Influence(NamedTuple):
    """What a change of one parameter alone does: pairs of cells, factor on distances, part with the same winner."""

    parameter: str
    pairs: int
    factor: float
    same_winner: float

    @property
    def weight(self) -> Weight:
        """By the factor."""
        if self.factor >= DECISIVE:
            return Weight.DECIDES
        return Weight.MATTERS if self.factor >= HARMLESS else Weight.DOES_NOT


def influences(field: Field) -> list[Influence]:
    """Every numeric parameter that some pair of cells differs in and nothing else, the strongest first."""
    described = [field.described(contest) for contest in field.contests]
    keys = dict.fromkeys(key for each in described for key, value in each.items() if isinstance(value, int | float))
    found = []
    for key in keys:
        alike: dict[object, list[int]] = {}
        for place, each in enumerate(described):
            rest = tuple((name, str(value)) for name, value in each.items() if name != key)
            alike.setdefault(rest, []).append(place)
        pairs = [pair for places in alike.values() for pair in combinations(places, 2)]
        changes = [np.abs(field.logs[one] - field.logs[other]) for one, other in pairs]
        if changes and not np.isnan(changes).all():
            same = np.mean([field.winners[one] == field.winners[other] for one, other in pairs])
            found.append(Influence(key, len(pairs), float(np.exp(np.nanmean(changes))), float(same)))
    return sorted(found, key=lambda influence: -influence.factor)


def best_by(field: Field, parameter: str) -> dict[Any, Counter[str]]:
    """How often each mechanism is best, by the value of a parameter."""
    found: dict[Any, Counter[str]] = {}
    for contest, winner in zip(field.contests, field.winners, strict=True):
        value = field.described(contest).get(parameter)
        if value is not None:
            found.setdefault(value, Counter())[field.mechanisms[winner]] += 1
    return dict(sorted(found.items()))
