"""Runs the cells of a study and writes their figures into one file.

Cells that differ only in their stream, if streams are equally long and have one bin, are replicas of one run: that is
what makes a study fast. A run never holds more than LARGEST_RUN values a step, and repetitions beyond that are run one
lot after the other, so memory is bounded however large a study is. What is finished is kept in a journal beside the
results: run again after whatever happened, a study goes on from there, and its results are the same to the last byte,
also with another number of processes; only processor times, where a study asks for them, differ.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.bench.run.cell_noise import CellNoise
from eventide.bench.run.journal import Journal
from eventide.bench.run.plan_runs import PlanRun
from eventide.bench.run.results import CellFigures, fingerprint, holds_results_of, partial_of, summaries, write_results
from eventide.bench.run.workers import in_processes
from eventide.bench.study.metrics import MetricTally, StepBlock
from eventide.bench.study.study import Cell, Looked, StudiedStream, Study
from eventide.errors import EventideError, InputError
from eventide.events.statistics import OfValues, Told
from eventide.mechanisms.release import Release
from eventide.mechanisms.sliding_sum import SlidingSum
from eventide.privacy.noise import Seeded

LARGEST_RUN = 2**17  # replicas times bins: some mechanisms hold dozens of numbers for each
LONGEST_RUN = 2**22  # replicas times steps: some metrics hold one number for each
BLOCK = 2**14  # values of a cell that are handed to the metrics at once; not of the run, so that sums stay the same
STEP_COST = 5000  # what a step costs besides its values, in values


class CellBatch(NamedTuple):
    """Cells that are one run, by their numbers in the study, and what the run costs, in values."""

    cells: tuple[int, ...]
    cost: int


def batches_of(study: Study) -> list[CellBatch]:
    """The batches of a study; they depend on nothing but the study."""
    alike: dict[object, list[int]] = {}
    for number, cell in enumerate(study.cells):
        facts, stream = study.facts[cell.stream.label], cell.stream
        alone = facts.bins > 1 or stream.workload is not None or isinstance(stream.statistic, OfValues)
        joins = number if alone else (cell.mechanism.label, cell.setting, facts.steps, stream.span, stream.sensitivity)
        alike.setdefault(joins, []).append(number)
    batches = []
    for numbers in alike.values():
        stream = study.cells[numbers[0]].stream
        facts = study.facts[stream.label]
        width = facts.bins * stream.statistic.columns
        most = max(1, _replicas_at_once(facts.steps, width) // study.repetitions)
        for begin in range(0, len(numbers), most):
            cells = tuple(numbers[begin : begin + most])
            values = len(cells) * study.repetitions * width
            batches.append(CellBatch(cells, facts.steps * (values + STEP_COST)))
    return batches


def run_study(
    study: Study, out: str | Path, processes: int = 1, tell: Callable[[int, int], None] = lambda done, total: None
) -> None:
    """Run whatever of a study is not done yet and write its results.

    Parameters
    ----------
    study
        What `load_study` gave.
    out
        The .parquet file to write; beside it stands what is done so far.
    processes
        How many run side by side.
    tell
        `tell(done, total)` hears of the cost of what is done.
    """
    out = Path(out)
    mark = fingerprint(study)
    if holds_results_of(out, mark):
        return
    batches = batches_of(study)
    total = sum(batch.cost for batch in batches)
    with Journal(partial_of(out), mark) as journal:
        done = sum(batches[number].cost for number in journal.finished)
        tell(done, total)
        waiting = [(number, batch.cells) for number, batch in enumerate(batches) if number not in journal.finished]
        for number, figures in in_processes(Runner(study), waiting, processes):
            journal.add(number, figures)
            done += batches[number].cost
            tell(done, total)
        write_results(out, study, mark, _by_cell(batches, journal.finished))
        journal.remove()


def repeat_cell(study: Study, cell: Cell) -> dict[str, Floats]:
    """Run one cell again: a figure of each metric for each repetition, those behind the row in the results.

    Parameters
    ----------
    study
        Whose seed, repetitions and metrics are used.
    cell
        A mechanism on a stream under a setting.
    """
    return {metric: values[0] for metric, values in Runner(study).figures([cell]).items()}


class Runner:
    """Runs batches of one study; the streams of the last one are kept for the next."""

    def __init__(self, study: Study) -> None:
        self.study = study
        self._labels: list[str] = []
        self._looked = Looked(np.empty((0, 0, 0), dtype=np.int64), np.empty((0, 0, 0)))

    def __call__(self, numbers: Sequence[int]) -> list[CellFigures]:
        """For each cell, by number, the summary of each metric."""
        figures = self.figures([self.study.cells[number] for number in numbers])
        of_metrics = [summaries(values) for values in figures.values()]
        return [[of_cells[place] for of_cells in of_metrics] for place in range(len(numbers))]

    def figures(self, cells: Sequence[Cell]) -> dict[str, Floats]:
        """One figure for each cell and repetition, of each metric."""
        looked = self._read(cells)
        try:
            if cells[0].stream.workload is not None:
                return {name: each[None] for name, each in self._answers(cells[0], looked.numbers[0]).items()}
            return self._releases(cells, looked)
        except EventideError as problem:
            names = f"{cells[0].mechanism.label} on {cells[0].stream.label}"
            raise InputError(f"{names} cannot go on: {problem}") from problem

    def _answers(self, cell: Cell, counts: Ints) -> dict[str, Floats]:
        """The figures of a planner, whose stream has window queries."""
        study, setting, workload = self.study, cell.setting, cell.stream.workload
        assert workload is not None
        seed = study.seed_of(cell)
        run = PlanRun(cell.mechanism.name, workload, counts, setting.epsilon, setting.window, study.repetitions, seed)
        return run.figures(study.metrics, study.options)

    def _releases(self, cells: Sequence[Cell], looked: Looked) -> dict[str, Floats]:
        """The figures of a mechanism on streams of equal shape."""
        study, setting, stream = self.study, cells[0].setting, cells[0].stream
        at_once = min(study.repetitions, _replicas_at_once(*looked.numbers.shape[1:]))
        parts = []
        for first in range(0, study.repetitions, at_once):
            repetitions = min(at_once, study.repetitions - first)
            asked = (study.metrics, looked.truth, repetitions, setting.epsilon, setting.window, study.options)
            tally = MetricTally(*asked, stream.levels, adds_up=stream.without_data is None)
            for block in releases(study, cells, looked, first, repetitions):
                tally.add(block)
            parts.append(tally.figures())
        return {metric: np.concatenate([part[metric] for part in parts], axis=1) for metric in study.metrics}

    def _read(self, cells: Sequence[Cell]) -> Looked:
        labels = [cell.stream.label for cell in cells]
        if labels != self._labels:
            self._looked = Looked.side_by_side(*(cell.stream.look() for cell in cells))
            self._labels = labels
        return self._looked


def releases(study: Study, cells: Sequence[Cell], looked: Looked, first: int, repetitions: int) -> Iterator[StepBlock]:
    """Run cells that differ in nothing but their streams, `(S, T, ...)`, side by side, block after block."""
    counts, truth = looked
    streams, steps, bins = counts.shape
    shape = (streams, repetitions)
    seeds = [study.seed_of(cell, first) for cell in cells]
    noise = CellNoise(seeds, repetitions) if bins == 1 else Seeded(*seeds)
    length = max(1, BLOCK // (repetitions * bins))
    stream, replicas = cells[0].stream, streams * repetitions
    answers = _Answers(stream, (replicas, bins))
    asked = stream.span, stream.sensitivity, stream.levels, stream.statistic.direct
    mechanism = cells[0].mechanism.build(cells[0].setting, bins, replicas, noise, *asked)
    for begin in range(0, steps, length):
        true = np.moveaxis(truth[:, begin : begin + length], 0, 1)
        released = np.empty((len(true), *shape, truth.shape[2]))
        fresh: list[Any] = []
        left: list[Any] = []
        spent: list[Any] = []
        ends: list[Floats] = []
        seconds = 0.0
        for step in range(len(true)):
            current = counts[:, begin + step]
            left.append(mechanism.ledger.left())
            started = time.process_time()
            release = mechanism.release(np.repeat(current, repetitions, axis=0) if streams > 1 else current[0])
            seconds += time.process_time() - started
            values, interval = answers.of(release)
            released[step] = values.reshape(released.shape[1:])
            fresh.append(release.fresh)
            spent.append(release.spent)
            ends += interval
        measured = np.reshape(fresh, (len(true), *shape))
        unused = np.reshape(left, (*measured.shape, -1)).min(axis=3) - np.reshape(spent, measured.shape)
        held = np.stack(ends).reshape(len(true), 2, *released.shape[1:]) if ends else None
        yield StepBlock(begin, true[:, :, None], released, measured, unused, held, seconds, stream.without_data)


class _Answers:
    """What releases say about what is asked of a stream, and the ends of the interval around it, where there is one.

    That is their values, what a statistic tells of these, or the histogram of the last `span` steps, which has no
    interval; a mechanism that gives no such histogram has it as the sum of its last releases.
    """

    def __init__(self, stream: StudiedStream, shape: tuple[int, int]) -> None:
        self._shape, self._statistic = shape, stream.statistic
        self._sums = None if stream.span is None else SlidingSum(stream.span, shape)

    def of(self, release: Release) -> tuple[Floats, list[Floats]]:
        """Those of the next release."""
        if self._sums is None:
            return self._told(Told(release.values, release.scale, release.low, release.high))
        if release.window_values is not None:
            return release.window_values, []
        self._sums.push(release.values.reshape(self._shape))
        return self._sums.total, []

    def _told(self, found: Told) -> tuple[Floats, list[Floats]]:
        if isinstance(self._statistic, OfValues):
            columns = (self._shape[0], -1, self._statistic.columns)
            numbers = (None if each is None else each.reshape(columns) for each in found)
            told = self._statistic.tell(Told(*numbers)).values()  # type: ignore[arg-type]
            found = Told(*map(_together, zip(*told, strict=True)))  # type: ignore[arg-type]
        ends = [each for each in (found.low, found.high) if each is not None]
        return found.values, ends


def _together(numbers: Sequence[Floats | None]) -> Floats | None:
    """What is told under several names, those of a bin side by side; None where nothing is."""
    known = [each for each in numbers if each is not None]
    return np.stack(known, axis=-1) if known else None


def _replicas_at_once(steps: int, bins: int) -> int:
    return max(1, min(LARGEST_RUN // bins, LONGEST_RUN // steps))


def _by_cell(batches: list[CellBatch], finished: dict[int, list[CellFigures]]) -> list[CellFigures]:
    """The figures of all cells in the study's order."""
    figures = {
        cell: each
        for number, batch in enumerate(batches)
        for cell, each in zip(batch.cells, finished[number], strict=True)
    }
    return [figures[number] for number in range(len(figures))]
