"""The controller and the interval it sets: numbers worked out by hand, and a plain loop over cells."""

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.mechanisms.pid import PID, SamplingInterval, pushed


def column(number):
    return np.full((1, 1), float(number))


def test_the_three_terms_by_hand():
    control = PID((1, 1), gains=(0.5, 3.0, 10.0), memory=2)
    assert control.update(column(2), step=4) == 0.5 * 2 + 3 * 2  # no error before it: no speed
    assert control.update(column(5), step=7) == 0.5 * 5 + 3 * (2 + 5) / 2 + 10 * (5 - 2) / 3
    assert control.update(column(1), step=8) == 0.5 * 1 + 3 * (5 + 1) / 2 + 10 * (1 - 5) / 1


def plainly(errors, gains, memory):
    """The controller's answers for one cell from its (step, error) pairs."""
    answers = []
    for n, (step, error) in enumerate(errors):
        recent = [past for _, past in errors[: n + 1]][-memory if memory else 0 :]
        before, earlier = errors[n - 1] if n else (step - 1, error)
        speed = (error - earlier) / (step - before)
        answers.append(gains[0] * error + gains[1] * np.mean(recent) + gains[2] * speed)
    return answers


@pytest.mark.parametrize("memory", [1, 3, 5, None])
def test_every_cell_has_a_controller_of_its_own(memory):
    generator = np.random.default_rng(4)
    gains, shape, steps = (0.9, 0.1, 0.3), (3, 4), 30
    control, errors = PID(shape, gains, memory), generator.exponential(2, (steps, *shape))
    turns = generator.random((steps, *shape)) < 0.5
    answers = np.array([control.update(errors[t], t, turns[t]) for t in range(steps)])
    for cell in np.ndindex(shape):
        turn = turns[:, *cell]
        taken = [(t, errors[t, *cell]) for t in np.flatnonzero(turn)]
        assert answers[:, *cell][turn] == pytest.approx(plainly(taken, gains, memory))


def test_restart_forgets_where_it_is_told_to():
    control = PID((1, 2), gains=(0.0, 1.0, 1.0), memory=3)
    for step, error in enumerate((4, 8)):
        control.update(np.full((1, 2), float(error)), step)
    control.restart(np.array([[True, False]]))
    answers = control.update(np.full((1, 2), 3.0), 2)
    assert answers.tolist() == [[3, (4 + 8 + 3) / 3 + (3 - 8)]]


def test_full_once_the_mean_has_all_its_errors():
    control = PID((1, 2), gains=(1, 0, 0), memory=2)
    seen = []
    for step in range(3):
        control.update(np.ones((1, 2)), step, np.array([[True, step > 0]]))
        seen.append(control.full[0].tolist())
    assert seen == [[False, False], [True, False], [True, True]]


def test_a_saved_controller_goes_on():
    control, other = (PID((1, 1), (0.9, 0.1, 0.2), memory=2) for _ in range(2))
    control.update(column(3), 0)
    other.restore(control.snapshot())
    assert control.update(column(5), 4) == other.update(column(5), 4)


def test_pushed_drops_the_oldest_where_something_came():
    recent = np.array([[[2.0, 20.0]], [[1.0, 10.0]]])
    assert pushed(recent, np.array([[3.0, 30.0]]), np.array([[True, False]])).tolist() == [[[3, 20]], [[2, 10]]]


def test_gains_and_memory_that_make_no_sense_are_refused():
    for bad in ({"gains": (1, 2), "memory": 3}, {"gains": (1, 2, 3), "memory": 0}):
        with pytest.raises(InputError):
            PID((1, 1), **bad)


def test_an_interval_waits_whole_steps_and_at_least_one():
    """step  0 1 2 3 4 5 6 7
    due   x x . . x x        growth 0.25, then none, then a fall below one step"""
    interval = SamplingInterval((1, 1), stretch=10, shared=False)
    all_bins = np.ones((1, 1), dtype=bool)
    assert interval.due(0)
    assert interval.due(1)  # nothing was adjusted yet
    interval.adjust(column(0.25), 1, all_bins)
    assert interval.length == 3.5
    assert [bool(interval.due(step)) for step in (2, 3, 4)] == [False, False, True]
    interval.adjust(column(-1e40), 4, all_bins)
    assert interval.length == 1
    assert not interval.due(4)
    assert interval.due(5)


def test_the_bin_that_waits_least_decides_for_a_shared_clock():
    growth, every = np.array([[1.0, 0.5], [0.2, 0.8]]), np.ones((2, 2), dtype=bool)
    own, shared = (SamplingInterval((2, 2), stretch=5, shared=shared) for shared in (False, True))
    for interval in (own, shared):
        interval.adjust(growth, 0, every)
    assert own.length.tolist() == [[6, 3.5], [2, 5]]
    assert shared.length.tolist() == [[3.5], [2]]
    assert own.due(3).tolist() == [[False, True], [True, False]]
    assert shared.due(2).tolist() == [[False], [True]]


def test_only_those_who_looked_are_adjusted():
    interval = SamplingInterval((1, 2), stretch=4, shared=False)
    interval.adjust(np.ones((1, 2)), 0, np.array([[True, False]]))
    assert interval.length.tolist() == [[5, 1]]
    assert interval.due(1).tolist() == [[False, True]]
