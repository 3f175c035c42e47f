"""The sparse-vector run: its exact privacy loss, its span in the ledger, and why the published form is disputed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import BudgetExceeded, StateError
from eventide.mechanisms.dsat import DSAT
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Seeded, Unit, Zero
from eventide.privacy.threshold_test import ThresholdTest

FACTORS = ThresholdTest.THRESHOLD_FACTOR, ThresholdTest.QUERY_FACTOR
ABOVE, BELOW = np.array([[-(10**6)]]), np.array([[10**6]])  # thresholds that settle the answer without noise


def meter(source=None, window=3, replicas=1, size=2):
    return Meter(WindowLedger(1, window, replicas), source or Zero(), size)


def log_below(limit, scale):
    """The logarithm of P(noise < limit) for discrete Laplace noise of that scale and whole limits."""
    tail = -np.maximum(limit, 1 - limit) / scale - np.log1p(np.exp(-1 / scale))  # of the side that does not hold 0
    return np.where(limit <= 0, tail, np.log1p(-np.exp(tail)))


def log_answers(threshold_noise, distances, answers, scale):
    """log P(answers | threshold noise), for distances already taken relative to the threshold."""
    limit = threshold_noise[:, None] - np.asarray(distances)  # below when the noise stays under it
    below = log_below(limit, scale)
    above = log_below(1 - limit, scale)  # by symmetry: noise >= limit exactly when -noise < 1 - limit
    return np.where(answers, above, below).sum(axis=1)


def log_probability(distances, answers, threshold_scale, query_scale):
    """The exact probability of a transcript with one threshold noise, up to a tail below exp(-60)."""
    noise = np.arange(-int(60 * threshold_scale), int(60 * threshold_scale) + 1)
    weights = -np.abs(noise) / threshold_scale + np.log(np.tanh(0.5 / threshold_scale))
    return np.logaddexp.reduce(weights + log_answers(noise, distances, np.asarray(answers), query_scale))


def test_the_oracle_adds_up_the_probabilities_of_the_noise():
    scale, noise = 3.0, np.arange(-400, 401)
    masses = np.exp(-np.abs(noise) / scale)
    below = np.cumsum(masses / masses.sum())
    assert np.exp(log_below(noise[1:], scale)) == pytest.approx(below[:-1])


runs = st.lists(st.tuples(st.integers(-12, 12), st.integers(-1, 1)), min_size=1, max_size=10)


def loss(run, ends_above, budget, factors):
    """How far a run moves in log-probability when every distance of it moves as drawn: below until the last answer."""
    near = [distance for distance, _ in run]
    far = [distance + moved for distance, moved in run]
    answers = [False] * (len(run) - 1) + [ends_above]
    scales = [factor / budget for factor in factors]
    return abs(log_probability(near, answers, *scales) - log_probability(far, answers, *scales))


@settings(max_examples=200)
@given(runs, st.booleans(), st.sampled_from([0.5, 1.0, 2.0]))
def test_a_run_costs_its_budget_at_most(run, ends_above, budget):
    assert loss(run, ends_above, budget, FACTORS) <= budget + 1e-9


def test_half_the_noise_would_cost_more():
    """Long below and barely above: the run nearly uses its budget, and with half of either noise it is over."""
    run = [(6, 1)] * 40 + [(-30, -1)]
    assert 0.75 < loss(run, True, 1.0, FACTORS) <= 1
    assert loss(run, True, 1.0, (FACTORS[0] / 2, FACTORS[1])) > 1
    assert loss(run, True, 1.0, (FACTORS[0], FACTORS[1] / 2)) > 1


def test_the_published_form_loses_more_than_epsilon():
    """A transcript that gives the threshold's noise away, then a window of unlikely negative answers: exact log-ratio.

    steps     2,000 far from the window, at the threshold | 20 in the window, above it
    answers   half above, half below                      | all below
    """
    epsilon, window = 1.0, 20
    published = DSAT(epsilon=epsilon, window=window, bins=1, looks=1, test_share=0.5, as_published=True)
    claimed = published._test_pool / NANO
    scales = published._test.THRESHOLD_FACTOR / claimed, published._test.QUERY_FACTOR / claimed
    outside, outside_answers = [0] * 2000, [True, False] * 1000
    answers = outside_answers + [False] * window
    ratio = log_probability(outside + [30] * window, answers, *scales) - log_probability(
        outside + [31] * window, answers, *scales
    )
    assert ratio > 4 * epsilon
    assert ratio == pytest.approx(published._published_loss, rel=1e-3)
    repaired = DSAT(epsilon=epsilon, window=window, bins=1, looks=1, test_share=0.5)
    assert loss([(30, 1)] * window, False, repaired._test_pool / NANO, FACTORS) <= claimed


events = st.lists(
    st.tuples(st.sampled_from(["open", "above", "below", "close", "none"]), st.integers(1, 400_000_000)), max_size=40
)


@settings(max_examples=300)
@given(events, st.integers(1, 6))
def test_a_run_is_one_span_with_the_budget_it_opened_with(events, window):
    """Against a list of runs and their budgets, added up window by window in Python integers."""
    door = meter(window=window)
    test = door.threshold_test()
    spans = []  # (opened, closed or None, budget)
    for index, (event, amount) in enumerate(events):
        step = door.seal(np.array([[1, 2]]))
        is_open = bool(spans) and spans[-1][1] is None
        assert bool(test.running[0, 0]) == is_open
        touching = sum(b for first, last, b in spans if last is None or last > index - window)
        assert int(door.ledger.left_nano()[0, 0]) == NANO - touching
        if event == "open" and is_open:
            with pytest.raises(StateError):
                door.open_test(test, np.array([[amount]]))
        elif event == "open" and touching + amount > NANO:
            with pytest.raises(BudgetExceeded):
                door.open_test(test, np.array([[amount]]))
        elif event == "open":
            door.open_test(test, np.array([[amount]]))
            spans.append((index, None, amount))
        elif event in ("above", "below"):
            answer = door.above(test, step, np.zeros((1, 2)), ABOVE if event == "above" else BELOW)
            assert bool(answer[0, 0]) == (event == "above" and is_open)
        elif event == "close":
            door.close_test(test)
        if is_open and event in ("above", "close"):
            spans[-1] = (spans[-1][0], index, spans[-1][2])
        door.advance()


def test_replicas_open_and_close_runs_of_their_own():
    door = meter(window=2, replicas=3)
    test = door.threshold_test()
    amounts = np.array([[100_000_000], [0], [200_000_000]])
    door.open_test(test, amounts)
    assert test.running[:, 0].tolist() == [True, False, True]
    step = door.seal(np.array([[0, 0], [0, 0], [500, 500]]))
    assert door.above(test, step, np.zeros((3, 2)), np.array([[900]]))[:, 0].tolist() == [False, False, True]
    assert test.running[:, 0].tolist() == [True, False, False]
    assert door.ledger.open_spans(test.lane)[:, 0].tolist() == [100_000_000, 0, 0]
    door.close_test(test, np.array([[False], [True], [True]]))  # where no run is open nothing happens
    assert test.running[:, 0].tolist() == [True, False, False]


def test_every_run_draws_its_own_threshold_noise():
    door = meter(Seeded(3), window=1, size=1)
    test = door.threshold_test()
    drawn = set()
    for _ in range(50):
        door.open_test(test, np.array([[1_000_000]]))
        drawn.add(int(test._threshold_noise[0, 0]))
        door.close_test(test)
        assert test._threshold_noise[0, 0] == 0
        door.advance()
    assert len(drawn) > 45


def test_a_run_says_nothing_of_what_it_holds():
    door = meter(Unit())
    test = door.threshold_test()
    door.open_test(test, np.array([[100_000_000]]))
    assert repr(test) == object.__repr__(test)
