"""Trials of candidates on counts in memory: the cells of a study that nobody has to write down.

A trial's noise follows from the seed, the candidate and the setting alone, in however many processes they run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.bench.choose.choice import Trial
from eventide.bench.run.runner import STEP_COST, repeat_cell
from eventide.bench.run.workers import in_processes
from eventide.bench.study.metrics import is_of_level
from eventide.bench.study.study import Cell, Setting, StudiedMechanism, StudiedStream, Study, labelled
from eventide.events.levels import Levels
from eventide.mechanisms.run import run
from eventide.privacy.noise import Seeded
from eventide.streams.count_files import Matrix

NINE_OF_TEN = (0.05, 0.95)
FIRST = 3  # repetitions of a trial that is only compared
ALIKE = 0.05  # of the mean: so near to each other, these tell it to about 2 %
SHORT = 20_000_000  # what trials cost, in values, that are over before another process has begun


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

    def matrix(self) -> Matrix:
        """The counts, `(T, d)`."""
        return Matrix(self.counts, tuple(map(str, range(self.counts.shape[1]))))


class Trials:
    """Runs trials with so many `repetitions` each; `tell(done, total)` hears of each that is finished."""

    def __init__(
        self,
        sensitivity: int,
        repetitions: int,
        seed: int,
        tell: Callable[[int, int], None] = lambda done, total: None,
        processes: int = 1,
        levels: Levels | None = None,
    ) -> None:
        self.sensitivity, self._processes, self.levels = sensitivity, processes, levels
        of_levels = () if levels is None else tuple(f"mae:{name}" for name in levels.names)
        self.study = Study("choose", "", seed, repetitions, metrics=("mae", "publications", *of_levels))
        self._tell = tell
        self._done = self._total = 0

    def run(self, wanted: Sequence[tuple[Candidate, Publication]], repetitions: int | None = None) -> list[Trial]:
        """A trial of each, in this order, with other `repetitions` where given."""
        self._total += len(wanted)
        study = self.study if repetitions is None else replace(self.study, repetitions=repetitions)
        cells = [self._cell(candidate, given) for candidate, given in wanted]
        figures: dict[int, dict[str, Floats]] = {}
        processes = self._processes if self._cost(study, wanted) > SHORT else 1
        for number, found in in_processes(partial(repeat_cell, study), enumerate(cells), processes):
            figures[number] = found
            self._done += 1
            self._tell(self._done, self._total)
        return [_trial(candidate, given, figures[number]) for number, (candidate, given) in enumerate(wanted)]

    def compare(self, wanted: Sequence[tuple[Candidate, Publication]], most: int) -> list[Trial]:
        """A trial of each that is compared and not recommended, with `most` repetitions where the first few differ."""
        if most <= FIRST:
            return self.run(wanted, most)
        found = self.run(wanted, FIRST)
        unsure = [number for number, trial in enumerate(found) if trial.high - trial.low > ALIKE * trial.error]
        for number, trial in zip(unsure, self.run([wanted[number] for number in unsure], most), strict=True):
            found[number] = trial
        return found

    def released(self, candidate: Candidate, given: Publication) -> Floats:
        """What one run of a candidate releases, `(T, d)`."""
        cell = self._cell(candidate, given)
        noise = Seeded(self.study.seed_of(cell))
        bins, levels = given.counts.shape[1], cell.stream.levels
        return run(cell.mechanism.build(cell.setting, bins, 1, noise, levels=levels), given.counts).values

    @staticmethod
    def _cost(study: Study, wanted: Sequence[tuple[Candidate, Publication]]) -> int:
        return sum(len(counts) * (study.repetitions * counts.shape[1] + STEP_COST) for _, (counts, *_) in wanted)

    def _cell(self, candidate: Candidate, given: Publication) -> Cell:
        levels = self.levels if self.levels and given.counts.shape[1] == len(self.levels.bins) else None
        mechanism = StudiedMechanism(
            label=candidate.label,
            name=candidate.name,
            parameters={"sensitivity": self.sensitivity} | candidate.parameters | ({"levels": True} if levels else {}),
            filter="truncate",
        )
        stream = InMemory("file", "history", counts=given.counts, levels=levels)
        return Cell(mechanism, stream, Setting("choose", given.epsilon, given.window))


def _trial(candidate: Candidate, given: Publication, figures: dict[str, Floats]) -> Trial:
    errors = figures["mae"]
    low, high = np.quantile(errors, NINE_OF_TEN)
    return Trial(
        mechanism=candidate.name,
        parameters=candidate.parameters,
        epsilon=given.epsilon,
        window=given.window,
        error=float(errors.mean()),
        low=float(low),
        high=float(high),
        looks=float(figures["publications"].mean()),
        levels={name.partition(":")[2]: float(each.mean()) for name, each in figures.items() if is_of_level(name)},
    )
