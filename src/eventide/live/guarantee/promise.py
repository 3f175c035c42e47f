"""The promise in one sentence for people who do not compute with epsilon."""

from __future__ import annotations

import math


def plain_promise(
    people: str, span: str, epsilon: float, released: str = "everything that is published", *, events: bool = False
) -> str:
    """One sentence: how much more likely anything published becomes by somebody's being counted.

    Parameters
    ----------
    people, span
        Who is protected, and inside how long.
    epsilon
        The budget of that span.
    released
        What is meant by everything.
    events
        Each event is taken for a person of its own, so nothing more is promised than about one of them.

    >>> print(plain_promise("patients", "7 days", 1))
    Take out everything that one person among patients did inside any 7 days: each possible outcome of everything that
    is published becomes at most 2.72 times more or less likely (epsilon 1).
    """
    among = "" if people == "everybody" else f" among {people}"
    what = f"one event about {people}" if events else f"everything that one person{among} did inside any {span}"
    return (
        f"Take out {what}: each possible outcome of {released} becomes at most {_factor(epsilon)} times more or less "
        f"likely (epsilon {epsilon:g})."
    )


def no_promise(sentence: str) -> str | None:
    """What is said instead where a guarantee says that it is none; None where it is one.

    >>> no_promise("NOT PRIVATE (this store was made for tests): ...")
    'Nothing is promised: NOT PRIVATE (this store was made for tests).'
    """
    if not sentence.startswith(("NOT PRIVATE", "NOT PROVEN")):
        return None
    return f"Nothing is promised: {sentence.partition('):')[0]})."


def _factor(epsilon: float) -> str:
    return f"{math.exp(epsilon):.3g}" if epsilon < 300 else "any number"
