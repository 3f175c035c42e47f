"""The promise in two sentences for people who do not compute with epsilon, and with whom its budget is shared."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

OF_ALL_STREAMS = "everything that all streams about them release"
OF_ONE_ALONE = "everything that this publication alone releases"
EVERYBODY = "everybody"  # where nobody named a population
THE_PEOPLE = "the people in these data"
_SHARED = re.compile(r"with epsilon (\S+)\. .*Of this epsilon (\S+) is for this stream, and the rest for ")


class Share(NamedTuple):
    """What a stream has of the budget of its people, and the whole, which bounds what all their streams tell."""

    own: float
    total: float

    @property
    def told(self) -> str:
        """In words."""
        return f"with other streams about them: this one has epsilon {self.own:g} of {self.total:g}"


def part_of_stream(own: float, others: str) -> str:
    """The sentence of a guarantee that says what its stream has of epsilon."""
    return f"of this epsilon {own:g} is for this stream, and the rest for {others}"


def promised_to(people: str) -> str:
    """The title of a page; whoever said nothing of whose events these are does not promise anything to the public.

    >>> promised_to("patients"), promised_to("everybody")
    ('What is promised to patients', 'What is promised to the people in these data')
    """
    return f"What is promised to {THE_PEOPLE if people == EVERYBODY else people}"


def share_in(sentence: str) -> Share | None:
    """What a stored guarantee says of the share of its stream; None where it has all of epsilon.

    >>> share_in("... with epsilon 1. One person adds ... Of this epsilon 0.7 is for this stream, and the rest for b.")
    Share(own=0.7, total=1.0)
    """
    found = _SHARED.search(sentence)
    return None if found is None else Share(own=float(found[2]), total=float(found[1]))


def plain_promise(
    people: str, span: str, epsilon: float, released: str = "everything that is published", *, events: bool = False
) -> str:
    """Two sentences: how much more likely anything published becomes by somebody's being counted.

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
    Suppose everything that one person among patients did inside any 7 days had been left out. Then each possible result
    of everything that is published would be at most 2.72 times more likely or less likely (epsilon 1).
    """
    among = "" if people == EVERYBODY else f" among {people}"
    what = f"one event about {people}" if events else f"everything that one person{among} did inside any {span}"
    return (
        f"Suppose {what} had been left out. Then each possible result of {released} would be "
        f"{_factor(epsilon)} (epsilon {epsilon:g})."
    )


def no_promise(sentence: str) -> str | None:
    """What is said instead where a guarantee says that it is none; None where it is one.

    >>> no_promise("NOT PRIVATE (this store was made for tests): ...")
    'Nothing is promised: NOT PRIVATE (this store was made for tests).'
    """
    if not sentence.startswith(("NOT PRIVATE", "NOT PROVEN", "REFUTED")):
        return None
    return f"Nothing is promised: {sentence.partition('):')[0]})."


def _factor(epsilon: float) -> str:
    if epsilon < 300:
        return f"at most {math.exp(epsilon):.3g} times more likely or less likely"
    return "more likely or less likely, without any bound that means something"
