"""Audits of pan-private mechanisms: the attacker sees every release, and the memory once, in the middle of a step.

It looks into cells that are closed to everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.audit.pairs import Pair, neighbouring_pairs
from eventide.audit.subjects import Transcript
from eventide.privacy.noise import Seeded


class IntrudedSubject:
    """A pan-private mechanism whose noisy cells are seen once, at step `step`.

    Half of a person's chances: the events that differ between the two streams come before that moment, or after it;
    `apart` events of every bin come on the other side of it.
    """

    def __init__(self, make: Callable[..., Any], step: int, changes_first: bool, apart: int = 2) -> None:
        self.make, self.step, self.changes_first, self.apart = make, step, changes_first, apart

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """Run all copies side by side; what memory showed stands in `extra`."""
        mechanism = self.make(replicas=runs, noise=Seeded(seed))
        releases = []
        for index, counts in enumerate(stream):
            if index == self.step:
                first = counts - self.apart if self.changes_first else np.full_like(counts, self.apart)
                mechanism._cells._count(first[None, :], slice(None))
                memory = mechanism._cells.snapshot()
                seen = np.concatenate([memory["_decision"], memory["_look"]], axis=1)
                if mechanism.pan_private == "announced":
                    mechanism._cells.refresh(mechanism.meter)
                counts = counts - first
            releases.append(mechanism.release(counts))
        return Transcript.of(releases, seen)


def pairs_around(step: int, window: int, bins: int) -> Iterator[Pair]:
    """The neighbouring pairs that differ at `step`."""
    for pair in neighbouring_pairs(window, bins, 1, (6,)):
        if step in pair.changed[0]:
            yield pair
