"""Seeds for the runs of an audit, of which none comes twice, and the noise that they are for.

A run that is repeated is no evidence: confidence limits count on runs that are independent of each other.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eventide.errors import InputError
from eventide.privacy.noise import Secure, Seeded, Source

_SEEDS = 2**32  # numpy's older generators take no larger ones
_SPREAD = 2_654_435_769  # odd, so that multiplying by it modulo 2^32 gives every number once


class Seeds:
    """Numbers the runs of one audit, from a number on that follows from the audit's own seed.

    >>> seeds = Seeds(7)
    >>> seeds.block(1000) + 1000 == seeds.block(1)
    True
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"the seed of an audit is a whole number of at least 0, not {seed!r}")
        self._next = int(np.random.SeedSequence(int(seed)).generate_state(1)[0])

    @classmethod
    def of(cls, seed: int | Seeds) -> Seeds:
        """The numbers that follow from a seed, or those that go on where another part of the audit stopped."""
        return seed if isinstance(seed, Seeds) else cls(seed)

    def block(self, runs: int) -> int:
        """The first of `runs` numbers in a row that nobody else gets."""
        first = self._next
        self._next += runs
        return first


def seed_of(number: int) -> int:
    """The seed of the run of that number, below 2^32; different for any 2^32 numbers in a row.

    Seeds of neighbouring runs are far apart, for classes that make seeds of their own by adding to the one they got.
    """
    return number * _SPREAD % _SEEDS


def noise_by_seed(*, secure: bool) -> Callable[[int], Source]:
    """The noise of a run by its seed: seeded, or the real one, which has none."""
    return (lambda seed: Secure()) if secure else Seeded
