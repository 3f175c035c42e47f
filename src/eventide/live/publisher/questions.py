"""Window queries that a publisher answers beside its releases, from a share of epsilon of their own.

Releases and answers are about the same people, so their shares add up: to the epsilon that the store keeps to, that its
guarantee names, and that is verified. Inside a window of w steps every step gets one part in w of the queries' share.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO, Amount, nano
from eventide.privacy.noise import named
from eventide.windows import plan
from eventide.windows.answering.answers import Answers
from eventide.windows.workload import Query

OF = ("bins", "total")


@dataclass(frozen=True)
class Questions:
    """Queries, and the epsilon that their answers may spend in every window.

    of: "bins" answers each query for every bin, "total" for all bins together, which is more precise than a sum of
    answers. truncate: give whole numbers from 0 up.

    >>> from eventide.windows.workload import Query
    >>> Questions((Query(window=6, step=1, name="hour"),), epsilon=0.3, of="total").names(("north", "south"))
    ('total',)
    """

    queries: tuple[Query, ...]
    epsilon: Amount
    of: str = "bins"
    truncate: bool = False

    def __post_init__(self) -> None:
        if self.of not in OF:
            raise InputError(f"queries of {self.of!r} mean nothing; choose {' or '.join(OF)}")

    @property
    def budget(self) -> int:
        """Their share of epsilon, in nano-epsilon."""
        return nano(self.epsilon)

    def names(self, bins: tuple[str, ...]) -> tuple[str, ...]:
        """What the values of an answer are about, in their order."""
        return bins if self.of == "bins" else ("total",)

    def counts(self, counts: Ints) -> Ints:
        """What is asked about, of the counts of a step."""
        return counts if self.of == "bins" else counts.sum(keepdims=True)

    def start(self, mechanism: Mechanism, tick: int = 0) -> Answers:
        """A plan for the queries, at work from a step on beside a mechanism, for the same people and windows."""
        if len({str(query) for query in self.queries}) < len(self.queries):
            raise InputError("two queries are the same, and their answers could not be told apart; leave one out")
        return plan(self.queries, self.epsilon).start(
            bins=self.names(mechanism.bins),
            window=mechanism.window,
            sensitivity=mechanism.sensitivity,
            noise=named(mechanism.source.name),
            tick=tick,
        )

    def described(self) -> dict[str, Any]:
        """What a store remembers of them; another description is another setting."""
        queries = [asdict(query) for query in self.queries]
        return {"queries": queries, "epsilon": self.budget, "of": self.of, "truncate": self.truncate}

    def assumption(self, window: int) -> str:
        """What the guarantee says about their share."""
        share, part = self.budget / NANO, "" if window == 1 else f", one part in {window} of it at each step"
        return f"epsilon {share:g} of that is for answers to window queries{part}"
