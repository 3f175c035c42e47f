"""Trials of candidates on counts in memory: the cells of a study that nobody has to write down.

A trial's noise follows from the seed, the candidate and the setting alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.bench.choose.choice import Trial
from eventide.bench.run.runner import repeat_cell
from eventide.bench.study.study import Cell, Setting, StudiedMechanism, StudiedStream, Study, labelled
from eventide.mechanisms.run import run
from eventide.privacy.noise import Seeded

NINE_OF_TEN = (0.05, 0.95)


class Candidate(NamedTuple):
    """A mechanism by its registry name or module:Class, with parameters of its own."""

    name: str
    parameters: dict[str, Any]

    @property
    def label(self) -> str:
        """Name and parameters."""
        return labelled(self.name, self.parameters)


class Publication(NamedTuple):
    """Counts `(T, d)` that are to be published under epsilon and a window."""

    counts: Ints
    epsilon: float
    window: int


@dataclass(frozen=True, kw_only=True)
class InMemory(StudiedStream):
    """A stream that was read already."""

    counts: Ints

    def read(self) -> Ints:
        """The counts, `(T, d)`."""
        return self.counts


class Trials:
    """Runs trials with so many `repetitions` each; `tell(done, total)` hears of each that is finished."""

    def __init__(self, sensitivity: int, repetitions: int, seed: int, tell: Callable[[int, int], None]) -> None:
        self.sensitivity = sensitivity
        self.study = Study("choose", "", seed, repetitions, metrics=("mae", "publications"))
        self._tell = tell
        self._done = self._total = 0

    def run(self, wanted: Sequence[tuple[Candidate, Publication]]) -> list[Trial]:
        """A trial of each, in this order."""
        self._total += len(wanted)
        return [self._trial(candidate, given) for candidate, given in wanted]

    def released(self, candidate: Candidate, given: Publication) -> Floats:
        """What one run of a candidate releases, `(T, d)`."""
        cell = self._cell(candidate, given)
        noise = Seeded(self.study.seed_of(cell))
        return run(cell.mechanism.build(cell.setting, given.counts.shape[1], 1, noise), given.counts).values

    def _trial(self, candidate: Candidate, given: Publication) -> Trial:
        figures = repeat_cell(self.study, self._cell(candidate, given))
        errors = figures["mae"]
        low, high = np.quantile(errors, NINE_OF_TEN)
        self._done += 1
        self._tell(self._done, self._total)
        return Trial(
            mechanism=candidate.name,
            parameters=candidate.parameters,
            epsilon=given.epsilon,
            window=given.window,
            error=float(errors.mean()),
            low=float(low),
            high=float(high),
            looks=float(figures["publications"].mean()),
        )

    def _cell(self, candidate: Candidate, given: Publication) -> Cell:
        mechanism = StudiedMechanism(
            label=candidate.label,
            name=candidate.name,
            parameters={"sensitivity": self.sensitivity} | candidate.parameters,
            filter="truncate",
        )
        stream = InMemory("file", "history", counts=given.counts)
        return Cell(mechanism, stream, Setting("choose", given.epsilon, given.window))
