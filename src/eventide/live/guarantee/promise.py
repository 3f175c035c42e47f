"""The promise in one sentence for people who do not compute with epsilon."""

from __future__ import annotations

import math


def plain_promise(people: str, span: str, epsilon: float, released: str = "everything that is published") -> str:
    """One sentence: whoever sees all releases learns hardly more about anybody, and how much that is.

    >>> plain_promise("patients", "7 days", 1)[:75]
    'Whatever one of patients did or did not do inside any 7 days makes each pos'
    """
    return (
        f"Whatever one of {people} did or did not do inside any {span} makes each possible outcome of {released} at "
        f"most {_factor(epsilon)} times as likely as it would have been otherwise (epsilon {epsilon:g})."
    )


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 300 else "any number of"
