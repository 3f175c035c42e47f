"""What one can do where nothing is worth publishing: more epsilon, a smaller window, longer steps, fewer bins, or both.

Each remedy changes a plan by a factor and says how; None where it cannot go so far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.bench.choose.trials import Plan
from eventide.privacy.amounts import LARGEST, NANO


class Changed(NamedTuple):
    """A plan after a change, and the change in words."""

    words: str
    plan: Plan


def more_epsilon(plan: Plan, factor: int) -> Changed | None:
    """A larger budget: weaker privacy for less noise."""
    epsilon = plan.epsilon * factor
    if epsilon > LARGEST / NANO:
        return None
    return Changed(f"epsilon {epsilon:g} instead of {plan.epsilon:g}", plan._replace(epsilon=epsilon))


def smaller_window(plan: Plan, factor: int) -> Changed | None:
    """Shorter sequences of events protected."""
    if factor > plan.window:
        return None
    window = plan.window // factor
    return Changed(f"window {window} instead of {plan.window}", plan._replace(window=window))


def longer_steps(plan: Plan, factor: int) -> Changed | None:
    """Several steps summed into one. A sequence of short steps can begin inside a long one, so it touches one more."""
    window = -(-(plan.window - 1) // factor) + 1
    counts = _summed(plan.counts[: len(plan.counts) // factor * factor], factor)
    if len(counts) < window:
        return None
    return Changed(
        f"steps {factor} times as long, with a window of {window}", plan._replace(counts=counts, window=window)
    )


def fewer_bins(plan: Plan, factor: int) -> Changed | None:
    """Neighbouring bins summed into one."""
    if factor > plan.counts.shape[1]:
        return None
    return Changed(f"{factor} bins summed into one", plan._replace(counts=_summed(plan.counts.T, factor).T))


def coarser(plan: Plan, factor: int) -> Changed | None:
    """Longer steps and fewer bins."""
    longer = longer_steps(plan, factor)
    if longer is None:
        return None
    fewer = fewer_bins(longer.plan, factor)
    return fewer and Changed(f"{longer.words}, and {fewer.words}", fewer.plan)


REMEDIES: tuple[Callable[[Plan, int], Changed | None], ...] = (
    more_epsilon,
    smaller_window,
    longer_steps,
    fewer_bins,
    coarser,
)


def _summed(rows: Ints, factor: int) -> Ints:
    """The sums of so many consecutive rows each, the last of what is left."""
    return np.add.reduceat(rows, np.arange(0, len(rows), factor))
