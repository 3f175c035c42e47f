"""Many steps at once through the door: the same charges, sums and draws as step by step, refused as a whole."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Secure, Seeded, Unit, Zero
from eventide.privacy.slot_sums import Cut

TOTAL = 10**9
INTS = np.int64


def cut(ends, budgets):
    return Cut(np.array(ends, dtype=INTS), np.array(budgets, dtype=INTS))


@given(
    st.lists(st.lists(st.integers(0, TOTAL // 2), min_size=1, max_size=30), max_size=4),
    st.integers(1, 40),
    st.integers(1, 3),
    st.lists(st.tuples(st.sampled_from(["charge", "open", "close", "bins"]), st.integers(0, TOTAL // 4)), max_size=4),
)
def test_charging_many_steps_is_charging_each_in_turn(batches, window, replicas, first):
    """After whatever else was entered at the current step: the same state, or the same refusal and no change."""
    together, alone = (WindowLedger(1, window, replicas) for _ in range(2))
    for ledger in (together, alone):
        for kind, amount in first:
            if kind == "open" and not ledger.open_spans().any():
                ledger.open_span(amount)
            elif kind == "close":
                ledger.close_span()
            elif kind in ("charge", "bins"):
                ledger.charge(amount // 8 if kind == "charge" else np.array([[amount // 8, amount // 9]]))
    for batch in batches:
        before = str(together.snapshot())
        refusal = None
        try:
            for amount in batch:
                alone.charge(amount)
                alone.advance()
        except BudgetExceeded as error:
            refusal = error
        if refusal is None:
            together.charge_each(np.array(batch))
            assert str(together.snapshot()) == str(alone.snapshot())
        else:
            with pytest.raises(BudgetExceeded) as refused:
                together.charge_each(np.array(batch))
            assert str(together.snapshot()) == before
            assert (refused.value.asked, refused.value.left) == pytest.approx((refusal.asked, refusal.left))
            return


def test_an_excess_behind_sums_beyond_64_bits_is_seen():
    """Epsilon a million, 100,000 steps in one window: their sum wraps around to nearly nothing."""
    ledger = WindowLedger(10**6, 10**9)
    amounts = np.full(100_000, 10**15)
    amounts[-1] = -int(np.sum(amounts[:-1])) % 2**64 % 10**15
    with pytest.raises(BudgetExceeded):
        ledger.charge_each(amounts)
    assert ledger.step == 0


@pytest.mark.parametrize("hostile", [[], [-1], [0.5], [[1]], [2**62], [True], ["1"], None])
def test_hostile_charges_of_several_steps_change_nothing(hostile):
    ledger = WindowLedger(1, 3)
    before = str(ledger.snapshot())
    with pytest.raises((InputError, BudgetExceeded)):
        ledger.charge_each(np.array(hostile))
    assert str(ledger.snapshot()) == before


def random_cuts(random, steps, levels):
    """Complete slots of several levels over `steps` steps, some without a budget."""
    cuts = []
    for _ in range(levels):
        inside = np.flatnonzero(random.random(steps - 1) < 0.3) + 1
        ends = np.append(inside, steps)
        budgets = random.integers(1, TOTAL // levels, len(ends)) * (random.random(len(ends)) < 0.8)
        cuts.append(Cut(ends, budgets))
    return cuts


def part_of(cuts, begin, end):
    """The same slots as seen by those who are given only the steps from begin to end."""
    parts = []
    for ends, budgets in cuts:
        closing = (ends > begin) & (ends <= end)
        touched = budgets[np.searchsorted(ends, begin, side="right") : np.searchsorted(ends, end, side="left") + 1]
        parts.append(Cut(ends[closing] - begin, touched))
    return parts


@pytest.mark.parametrize("seed", range(20))
def test_slots_are_read_alike_however_the_steps_are_handed_in(seed):
    random = np.random.default_rng(seed)
    steps, levels, size, replicas = 40, 3, 2, 2
    counts, cuts = random.integers(0, 100, (steps, size)), random_cuts(random, steps, levels)
    seen = []
    for pieces in ([0, steps], sorted({0, steps, *random.integers(1, steps, 9).tolist()}), list(range(steps + 1))):
        meter = Meter(WindowLedger(5, 5, replicas), Seeded(seed), size)
        sums, read = meter.slot_sums(levels), [[] for _ in range(levels)]
        for begin, end in pairwise(pieces):
            values = meter.sum_slots(sums, counts[begin:end], part_of(cuts, begin, end))
            for level in range(levels):
                read[level].append(values[level])
        assert not sums.holds_raw
        seen.append([np.concatenate(each) for each in read])
    for other in seen[1:]:
        for one, another in zip(seen[0], other, strict=True):
            np.testing.assert_array_equal(one, another)


def test_a_slot_is_the_sum_of_its_steps_with_its_own_scale_and_charge():
    """Steps     0 1 2 3 4
    level 0    [==)[===)      budgets 0.2, 0.5, then open with 0.1
    level 1    [=======)[-    budget 0.4, then without
    """
    meter = Meter(WindowLedger(1, 1), Unit(), 1, sensitivity=2)
    meter.journal = []
    sums = meter.slot_sums(2)
    counts = np.array([[1], [2], [4], [8], [16]])
    cuts = [cut([2, 4], [TOTAL // 5, TOTAL // 2, TOTAL // 10]), cut([4], [TOTAL * 2 // 5, 0])]
    values = meter.sum_slots(sums, counts, cuts)
    assert [each.ravel().tolist() for each in values] == [[3 + 10, 12 + 4], [15 + 5]]
    assert meter.ledger.worst_window() == 0.9
    assert [draw.charges.tolist() for draw in meter.journal] == [[TOTAL // 5, TOTAL // 2, TOTAL * 2 // 5]]
    assert sums.holds_raw
    assert meter.end_slots(sums).ravel().tolist() == [16 + 20, 0]
    assert not sums.holds_raw
    assert not meter.end_slots(sums).any()


def test_sums_beyond_64_bits_are_cut_and_never_wrap():
    meter = Meter(WindowLedger(1, 1), Zero(), 1)
    sums = meter.slot_sums(1)
    huge = np.full((3_000, 1), 2**53)
    for _ in range(3):
        meter.sum_slots(sums, huge, [cut([], [5])])
    values = meter.sum_slots(sums, huge, [cut([3_000], [5])])
    assert 2**61 < values[0][0, 0, 0] <= 2**62


def test_what_the_ledger_refuses_changes_nothing():
    meter = Meter(WindowLedger(1, 2), Zero(), 1)
    sums = meter.slot_sums(1)
    meter.sum_slots(sums, np.array([[7]]), [cut([], [TOTAL // 2])])
    before = str(sums.snapshot()), str(meter.ledger.snapshot())
    with pytest.raises(BudgetExceeded):
        meter.sum_slots(sums, np.array([[7], [7]]), [cut([1], [TOTAL // 2, TOTAL // 2 + 1])])
    assert (str(sums.snapshot()), str(meter.ledger.snapshot())) == before
    values = meter.sum_slots(sums, np.array([[5]]), [cut([1], [TOTAL // 2])])
    assert values[0].ravel().tolist() == [12]


@pytest.mark.parametrize(
    ("ends", "budgets"),
    [
        ([2], [5]),  # ends beyond the steps
        ([1], [5, 5]),  # nothing is left for the second slot
        ([0], [5]),
        ([1, 1], [5, 5]),
        ([], []),
        ([], [4]),  # the open slot has budget 5
        ([], [-5]),
        ([], [TOTAL + 1]),
    ],
)
def test_cuts_that_do_not_fit_are_refused_before_anything_is_charged(ends, budgets):
    meter = Meter(WindowLedger(1, 1), Zero(), 1)
    sums = meter.slot_sums(1)
    meter.sum_slots(sums, np.array([[7]]), [cut([], [5])])
    with pytest.raises(StateError):
        meter.sum_slots(sums, np.array([[7]]), [cut(ends, budgets)])
    assert meter.ledger.step == 1


def test_a_negative_budget_does_not_pay_for_another():
    meter = Meter(WindowLedger(1, 1), Zero(), 1)
    cuts = [cut([1], [-TOTAL // 2]), cut([1], [TOTAL])]
    with pytest.raises(StateError):
        meter.sum_slots(meter.slot_sums(2), np.array([[7]]), cuts)


def test_sums_show_nothing():
    meter = Meter(WindowLedger(1, 1), Secure(), 1)
    sums = meter.slot_sums(1)
    meter.sum_slots(sums, np.array([[7]]), [cut([], [5])])
    assert repr(sums) == object.__repr__(sums)


@pytest.mark.parametrize("shape", [(1, 1), (2, 3)])
def test_draws_in_turn_are_single_draws_of_a_seeded_source(shape):
    charges = np.array([TOTAL, 0, TOTAL // 7, TOTAL // 100])
    single, many = Seeded(3), Seeded(3)
    alone = [single.laplace(TOTAL, np.array([[charge]]), shape) for charge in charges]
    np.testing.assert_array_equal(many.laplace_in_turn(TOTAL, charges, shape), alone)
    np.testing.assert_array_equal(
        Unit().laplace_in_turn(TOTAL, charges, shape)[:, 0, 0], [1, 0, TOTAL / (TOTAL // 7), 100]
    )
