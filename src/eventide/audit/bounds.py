"""Exact confidence limits of a probability (Clopper and Pearson), and the bound on epsilon that one gives.

A bound is true with its stated confidence, however few runs there were.
"""

from __future__ import annotations

import math


def lower_limit(successes: int, trials: int, alpha: float) -> float:
    """The smallest probability under which `successes` or more of `trials` are not rarer than `alpha`.

    >>> round(lower_limit(8, 10, 0.025), 4)
    0.4439
    """
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    while (middle := (low + high) / 2) not in (low, high):
        low, high = (middle, high) if _at_least(successes, trials, middle) < alpha else (low, middle)
    return low


def epsilon_bound(hits: int, hits_neighbour: int, alpha: float) -> float:
    """With confidence 1 - `alpha`, epsilon is at least this, if an event came `hits` times against `hits_neighbour`.

    Each run must have been made on either stream with probability 1/2. Exact because: then each run in which the event
    came, of probability p on the one stream and p' on the other, was on the one with probability p / (p + p'),
    independently of the others; so a lower limit q of that probability gives p / p' >= q / (1 - q). The bound is 0
    where nothing can be said.
    """
    share = lower_limit(hits, hits + hits_neighbour, alpha)
    return math.log(share / (1 - share)) if share > 0.5 else 0.0


def _at_least(successes: int, trials: int, probability: float) -> float:
    """P(Binomial(trials, probability) >= successes), as an incomplete beta function."""
    a, b = successes, trials - successes + 1
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(probability) + b * math.log1p(-probability)
    )
    if probability < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, probability) / a
    return 1.0 - front * _fraction(b, a, 1.0 - probability) / b


def _fraction(a: int, b: int, x: float) -> float:
    """The continued fraction of the incomplete beta function, by the modified Lentz method."""
    tiny = 1e-300
    c, d = 1.0, 1.0 / _nonzero(1.0 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 100_000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _nonzero(1.0 + term * d, tiny)
            c = _nonzero(1.0 + term / c, tiny)
            result *= c * d
        if abs(c * d - 1.0) < 1e-15:
            break
    return result


def _nonzero(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny
