"""Running totals: the factorisation against dense matrices, the guarantee against every neighbour of a tiny stream."""

from __future__ import annotations

import itertools
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from eventide import windows
from eventide.audit.plans import RecordingMeter
from eventide.errors import InputError, StateError
from eventide.privacy.noise import Seeded, Zero
from eventide.windows.running_total import Levels, RunningTotal, best_levels

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "running_totals.py"


def dense(levels, steps):
    """B, which makes totals of slots, and C, which measures all slots that end within `steps`."""
    slots = [(n * length, (n + 1) * length) for length in levels.lengths for n in range(steps // length)]
    measure = np.array([[begin <= step < end for step in range(steps)] for begin, end in slots], dtype=float)
    answer = np.zeros((steps, len(slots)))
    for step in range(steps):
        begin = 0
        while begin <= step:  # the longest slot that begins here and has ended
            longest = max(length for length in levels.lengths if begin % length == 0 and begin + length <= step + 1)
            answer[step, slots.index((begin, begin + longest))] = 1
            begin += longest
    return answer, measure


@pytest.mark.parametrize("levels", [Levels(2, 0), Levels(2, 3), Levels(3, 2), Levels(7, 1)])
def test_the_variances_are_those_of_a_dense_factorisation(levels):
    steps = 2 * levels.lengths[-1] + 5
    answer, measure = dense(levels, steps)
    assert np.array_equal(answer @ measure, np.tril(np.ones((steps, steps))))
    variances = (answer**2).sum(axis=1) * (levels.depth + 1) ** 2
    assert np.array_equal(levels.variance(np.arange(1, steps + 1)), variances)
    assert measure.sum(axis=0).max() == levels.depth + 1  # the column norm: one slot of every level


def test_the_best_levels_have_the_least_mean_variance_of_all():
    for horizon in (1, 7, 40, 300):
        steps = np.arange(1, horizon + 1)
        others = [Levels(f, n) for f in range(2, 20) for n in range(6) if f**n <= horizon]
        assert best_levels(horizon).variance(steps).mean() <= min(each.variance(steps).mean() for each in others)


@pytest.mark.parametrize("horizon", [1, 100])
def test_without_noise_totals_are_exact_over_several_blocks(horizon):
    counter = RunningTotal(1.0, 3, horizon=horizon, noise=Zero())
    counts = np.random.default_rng(1).poisson(4, (70, 3))
    totals = [counter.push(row) for row in counts]
    assert np.array_equal([total.value for total in totals], counts.cumsum(axis=0))
    assert [total.steps for total in totals] == list(range(1, 71))
    assert counter.ledger.worst_window() <= 1.0


def released(stream, **made):
    """Every slot of a run without noise, weighed by what one over its scale is."""
    counter = RunningTotal(1.0, stream.shape[1], horizon=1, noise=Zero(), **made)
    counter.levels = Levels(2, 2)
    counter.budget = counter.ledger.nano_epsilon // counter.ledger.window // 3
    counter._sums = counter.meter.slot_sums(3)
    counter._parts = np.zeros((3, 1, stream.shape[1]))
    counter.meter = RecordingMeter(counter.meter)
    for counts in stream:
        counter.push(counts)
    return counter.meter.slots[:, 0].ravel() * counter.meter.rates


@pytest.mark.parametrize("window", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_no_neighbour_of_a_tiny_stream_is_further_than_epsilon(window):
    """All rows that one person may have: at each step of a window absent, added or removed, in either bin."""
    stream = np.full((8, 2), 3)
    changes = [(0, 0), (1, 0), (0, 1), (-1, 0), (0, -1)]
    here, losses = released(stream, window=window), []
    for begin in range(8 - window + 1):
        for rows in itertools.product(changes, repeat=window):
            neighbour = stream.copy()
            neighbour[begin : begin + window] += np.array(rows)
            losses.append(np.abs(released(neighbour, window=window) - here).sum())
    assert max(losses) <= 1.0
    assert max(losses) == pytest.approx(1.0, abs=1e-6)


def test_the_noise_has_the_variance_that_is_promised():
    counter = RunningTotal(1.0, horizon=100, noise=Seeded(3), replicas=20_000)
    scale = 1e9 / counter.budget
    exact = 2 * np.exp(-1 / scale) / (1 - np.exp(-1 / scale)) ** 2  # of one discrete Laplace draw
    for step in range(1, 26):
        total = counter.push([7])
        noise = total.value[:, 0] - 7 * step
        slots = counter.levels.slots(step).sum()
        assert abs(noise.mean()) < 5 * np.sqrt(exact * slots / 20_000)
        assert noise.var() == pytest.approx(exact * slots, rel=0.08)
        assert total.variance == pytest.approx(exact * slots)


def test_a_saved_counter_goes_on_as_if_nothing_had_happened():
    whole = RunningTotal(0.3, 2, horizon=100, window=2, sensitivity=3, noise=Seeded(5))
    for step in range(13):
        whole.push([step, 1])
    assert whole.holds_raw
    again = RunningTotal.load(whole.save())
    for step in range(30):
        one, other = whole.push([step, 2]), again.push([step, 2])
        assert np.array_equal(one.value, other.value)
        assert one[::2] == other[::2]
    assert whole.ledger.worst_window() == again.ledger.worst_window() <= 0.3


def test_what_does_not_fit_is_refused_and_nothing_is_charged():
    counter = RunningTotal(1.0, 2)
    for counts in ([1], [1, -1], [1, 0.5], [[1, 2]]):
        with pytest.raises(InputError):
            counter.push(counts)
    assert (counter.steps, counter.ledger.left()) == (0, 1.0)
    with pytest.raises(InputError, match="a shorter window"):
        RunningTotal(1e-5, window=10)
    with pytest.raises(StateError):
        RunningTotal.load(b"nothing")
    with pytest.raises(StateError, match="'eventide running total', version 1; load them with what saved them"):
        windows.load(RunningTotal(1.0).save())


def test_the_guarantee_says_what_is_protected():
    assert str(RunningTotal(1.0, window=24, noise=Seeded(1)).guarantee).startswith("NOT PRIVATE")
    assert "24" in str(RunningTotal(1.0, window=24).guarantee)


def test_no_toeplitz_factorisation_beats_noise_on_every_step():
    """The bound of the benchmark, on its square root of A and on random strategies, against a dense inverse."""
    benchmark = SimpleNamespace(**runpy.run_path(str(BENCHMARK)))
    steps, triangle = 40, np.tril(np.ones((40, 40)))
    root = benchmark.root_coefficients(steps)
    assert np.allclose(np.convolve(root, root)[:steps], 1)
    random = np.random.default_rng(2)
    for strategy in (root, root[:4], *(random.normal(size=size) + 2 for size in (1, 3, 40))):
        padded = np.append(strategy, np.zeros(steps))[:steps]
        dense_strategy = np.array([[padded[i - j] if i >= j else 0 for j in range(steps)] for i in range(steps)])
        answer = triangle @ np.linalg.inv(dense_strategy)
        variance = (answer**2).sum(axis=1) * np.abs(dense_strategy).sum(axis=0).max() ** 2
        assert np.allclose(benchmark.toeplitz_variance(strategy, steps), variance)
        assert (variance >= np.arange(1, steps + 1) * (1 - 1e-9)).all()
