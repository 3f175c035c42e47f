"""Each measurement: what comes out, what is charged, at which scale."""

import copy
import decimal
import logging
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.privacy.amplification import _table, amplified
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Seeded, Unit, Zero
from eventide.privacy.partition import Partition

TENTH = np.array([[100_000_000]])
COUNTS = np.array([[5, 0, 20]])


def meter(source=None, window=3, sensitivity=1, replicas=1, size=3):
    return Meter(WindowLedger(1, window, replicas), source or Zero(), size, sensitivity)


def test_counts_come_with_their_scale_and_charge():
    door = meter(Unit(), sensitivity=2)
    measured = door.counts(door.seal(COUNTS), TENTH)
    assert measured.values.tolist() == [[25, 20, 40]]
    assert measured.scale.tolist() == [[20]]
    assert door.ledger.charged() == 0.1


def test_bins_without_budget_are_not_measured():
    door = meter(Unit())
    measured = door.counts(door.seal(COUNTS), np.array([[100_000_000, 0, 200_000_000]]))
    assert measured.values.tolist() == [[15, 0, 25]]
    assert measured.fresh.tolist() == [[True, False, True]]
    assert measured.scale.tolist() == [[10, math.inf, 5]]
    assert door.ledger.charged() == 0.2


def test_sums_of_disjoint_groups():
    door = meter()
    groups = Partition(np.array([1, -1, 1]), 2)
    measured = door.counts(door.seal(COUNTS), np.array([[100_000_000, 300_000_000]]), groups)
    assert measured.values.tolist() == [[0, 25]]
    assert door.ledger.charged() == 0.3
    with pytest.raises(InputError):
        Partition(np.array([0, 2]), 2)


def test_sums_are_cut_instead_of_wrapping():
    door = meter(size=2000, window=1)
    full = np.full((1, 2000), 2**53)
    assert 0 < door.counts(door.seal(full), TENTH, Partition(np.zeros(2000, dtype=np.int64), 1)).values[0, 0] <= 2**62
    sums = door.sum_over_steps(TENTH)
    for _ in range(1200):
        door.advance()
        door.add(door.seal(full), sums)
    assert (door.read(sums).values == 2**62).all()


def test_distance_is_integer_l1_and_never_overflows():
    door = meter(Unit())
    step = door.seal(COUNTS)
    assert door.distance(step, np.array([[5.4, 3.0, 10.0]]), TENTH).tolist() == [[13 + 10]]
    wide = meter(size=100_000, window=1)
    step = wide.seal(np.full((1, 100_000), 2**53))
    assert 0 < wide.distance(step, np.full((1, 100_000), -1e300), TENTH)[0, 0] <= 2**62
    with pytest.raises(InputError):
        wide.distance(step, np.full((1, 100_000), np.nan), TENTH)


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(-50, 50)), min_size=3, max_size=3), st.integers(0, 2))
def test_one_event_moves_a_distance_by_at_most_one(cells, where):
    counts, reference = (np.array([column]) for column in zip(*cells, strict=True))
    more = counts.copy()
    more[0, where] += 1
    distances = []
    for vector in (counts, more):
        door = meter()
        distances.append(int(door.distance(door.seal(vector), reference, TENTH)[0, 0]))
    assert abs(distances[0] - distances[1]) <= 1


def test_sum_over_steps_is_charged_when_added_and_read_once():
    door = meter(Unit(), window=2)
    sums = door.sum_over_steps(TENTH * [[1, 1, 0]])
    for _ in range(3):
        door.add(door.seal(COUNTS), sums)
        assert door.ledger.charged() == 0.1
        door.advance()
    assert sums.holds_raw
    measured = door.read(sums)
    assert measured.values.tolist() == [[25, 10, 0]]
    assert measured.fresh.tolist() == [[True, True, False]]
    assert door.ledger.charged() == 0
    assert not door.read(sums).fresh.any()
    assert not sums.holds_raw


def test_nothing_is_added_that_the_ledger_refuses():
    door = meter(window=2)
    sums = door.sum_over_steps(np.array([[600_000_000]]))
    door.add(door.seal(COUNTS), sums)
    door.advance()
    with pytest.raises(BudgetExceeded):
        door.add(door.seal(COUNTS), sums)
    assert door.read(sums).values.tolist() == [[5, 0, 20]]


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize("percent", [1, 37, 100])
def test_thinning_uses_all_that_amplification_allows_and_no_more(sensitivity, percent):
    charge = 10_000_000
    budget = int(amplified(np.array([charge]), np.array([percent]), sensitivity)[0])

    def cost(nano):
        return math.log1p(percent / 100 * math.expm1(nano / 1e9)) * 1e9 * sensitivity

    assert cost(budget) <= charge * (1 + 1e-12)
    assert cost(budget + 2) > charge


def test_amplification_does_not_depend_on_the_callers_decimals():
    with decimal.localcontext(decimal.Context(prec=1, rounding=decimal.ROUND_UP)):
        coarse = amplified(np.array([777_777_777]), np.array([50]), 1)
    _table.cache_clear()
    assert amplified(np.array([777_777_777]), np.array([50]), 1) == coarse


def test_thinned_counts():
    door = meter(Unit())
    measured = door.thinned(door.seal(COUNTS), np.array([[50, 100, 10]]), TENTH)
    budgets = amplified(TENTH, np.array([[50, 100, 10]]), 1)[0]
    assert budgets[1] == TENTH[0, 0]
    assert measured.values[0] == pytest.approx(np.array([2, 0, 2]) + 1e9 / budgets)
    assert door.ledger.charged() == 0.1


def test_a_run_whose_span_was_closed_behind_its_back_answers_no_more():
    door = meter(window=2)
    test = door.threshold_test()
    door.open_test(test, TENTH)
    door.ledger.close_span(lane=test.lane)
    with pytest.raises(StateError, match="does not hold"):
        door.above(test, door.seal(COUNTS), np.zeros((1, 3)), np.array([[1]]))


def test_a_threshold_run_costs_once_until_it_is_above():
    door = meter(Unit(), window=2)  # noise of a run with budget 0.1: threshold 20, distance 40
    test = door.threshold_test()
    door.open_test(test, TENTH)
    assert door.ledger.charged() == 0.1
    answers, left = [], []
    for total in (100, 100, 200, 300):
        step = door.seal(np.array([[total, 0, 0]]))
        answers.append(bool(door.above(test, step, np.zeros((1, 3)), np.array([[180]]))[0, 0]))
        door.advance()
        left.append(door.ledger.left())
    assert answers == [False, False, True, False]  # 240 >= 200 ends the run, and a run that ended answers no
    assert left == [0.9, 0.9, 0.9, 1.0]  # of the windows that end at steps 1 to 4; the run was open at 0 to 2


def naive_deviation(values):
    return min(sum(abs(value - centre) for value in values) for centre in values)


@given(st.lists(st.integers(0, 30), min_size=1, max_size=25))
def test_group_deviation_agrees_with_the_naive_one(values):
    door = meter(size=1, window=1)
    test = door.group_test(TENTH, longest=40)
    for index, value in enumerate(values):
        counts = np.array([[value]])
        if index:
            assert int(test.deviation_with(counts)[0, 0]) == naive_deviation([*values[:index], value])
        joins, begins = door.grouped(test, door.seal(counts), np.array([[10**9]]))
        assert (bool(joins[0, 0]), bool(begins[0, 0])) == (index > 0, index == 0)
        door.advance()


def test_groups_close_when_they_drift_and_when_they_are_full():
    """Counts   7 7 7 90 7 7 7 7
    groups    [-----) x [---)[-    longest 3: joins J, begins B, alone x
    """
    door = meter(size=1, window=1)
    test = door.group_test(TENTH, longest=3)
    seen = ""
    for value in (7, 7, 90, 7, 7, 7, 7):
        joins, begins = door.grouped(test, door.seal(np.array([[value]])), np.array([[20]]))
        seen += "J" if joins[0, 0] else "B" if begins[0, 0] else "x"
        assert door.ledger.charged() == 0.1
        door.advance()
    assert seen == "BJxBJJB"
    assert test.holds_raw


def test_buffers_that_are_used_again_change_no_amount_and_no_group():
    door, amount, labels = meter(Unit(), window=1), TENTH.copy(), np.array([0, 0, 1])
    sums, groups = door.sum_over_steps(amount), Partition(labels, 2)
    test = door.group_test(amount, longest=2)
    amount[...], labels[...] = 0, 1
    assert sums.amount == test.amount == TENTH
    assert groups.labels.tolist() == [[0, 0, 1]]
    for shown in (sums.amount, test.amount, groups.labels):
        with pytest.raises(ValueError, match="read-only"):
            shown[...] = 0
    door.add(door.seal(COUNTS), sums)
    assert door.ledger.charged() == 0.1
    sums.steps[...] = 0
    assert door.read(sums).values.tolist() == [[15, 10, 30]]


def test_a_sealed_step_shows_nothing():
    door = meter()
    step = door.seal(COUNTS)
    for reading in (np.asarray, list, len, int, float, bool, pickle.dumps, copy.copy, copy.deepcopy, lambda s: s[0]):
        with pytest.raises(StateError):
            reading(step)
    assert repr(step) == str(step) == f"{step}" == "<sealed step 0>"
    assert logging.Formatter().format(logging.LogRecord("a", 30, "", 1, "%s", (step,), None)) == "<sealed step 0>"
    with pytest.raises(TypeError):
        vars(step)


def test_a_step_dies_when_the_ledger_advances():
    door = meter()
    kept = door.seal(COUNTS)
    door.advance()
    with pytest.raises(StateError):
        door.counts(kept, TENTH)
    fresh = door.seal(COUNTS)
    for asked in (kept, COUNTS, None):
        with pytest.raises(StateError):
            door.counts(asked, TENTH)
    with pytest.raises(StateError):
        meter().counts(fresh, TENTH)
    other = meter()
    step = other.seal(COUNTS)
    other.ledger.advance()
    with pytest.raises(StateError, match="is over"):
        other.counts(step, TENTH)
    with pytest.raises(StateError):
        door.seal(COUNTS)


def test_replicas_draw_their_own_noise_and_are_charged_apart():
    door = meter(Seeded(1), replicas=2, size=200)
    measured = door.counts(door.seal(np.zeros((1, 200), dtype=np.int64)), np.array([[100_000_000], [0]]))
    assert len(np.unique(measured.values[0])) > 20
    assert not measured.values[1].any()
    assert door.ledger.charged().tolist() == [0.1, 0]
