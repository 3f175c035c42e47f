"""The ledger against a dense oracle that adds up every window from the list of entries, in Python integers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.privacy.ledger import WindowLedger

TOTAL = 10**9


class DenseLedger:
    """Every entry ever made, one replica: points per step and bin, spans with begin and end (None while open)."""

    def __init__(self, window, size):
        self.window, self.size = window, size
        self.step = 0
        self.points = []
        self.spans = []

    def window_total(self, begin):
        end = begin + self.window - 1
        total = 0
        for step in range(max(begin, 0), end + 1):
            total += max((sum(p[j] for s, p in self.points if s == step) for j in range(self.size)), default=0)
        for first, last, amount in self.spans:
            last = self.step if last is None else last
            if first <= end and last >= begin:
                total += amount
        return total

    def worst(self):
        return max(self.window_total(begin) for begin in range(1 - self.window, self.step + 1))


operations = st.lists(
    st.one_of(
        st.tuples(st.just("all"), st.integers(0, TOTAL)),
        st.tuples(st.just("bins"), st.lists(st.integers(0, TOTAL), min_size=3, max_size=3)),
        st.tuples(st.just("open"), st.integers(1, TOTAL), st.sampled_from("ab")),
        st.tuples(st.just("close"), st.sampled_from("ab")),
        st.tuples(st.just("advance")),
        st.tuples(st.just("half")),
    ),
    max_size=60,
)


@settings(max_examples=400)
@given(operations, st.integers(1, 5))
def test_ledger_agrees_with_the_dense_oracle(steps, window):
    ledger, dense = WindowLedger(1, window), DenseLedger(window, 3)
    open_lanes = {}
    for step in steps:
        kind = step[0]
        points, spans = list(dense.points), list(dense.spans)
        if kind == "advance":
            ledger.advance()
            dense.step += 1
            continue
        if kind == "close":
            ledger.close_span(lane=step[1])
            if step[1] in open_lanes:
                index = open_lanes.pop(step[1])
                first, _, amount = dense.spans[index]
                dense.spans[index] = (first, dense.step, amount)
            continue
        if kind == "open":
            if step[2] in open_lanes:
                with pytest.raises(StateError):
                    ledger.open_span(step[1], step[2])
                continue
            dense.spans.append((dense.step, None, step[1]))
            action = lambda step=step: ledger.open_span(step[1], step[2])  # noqa: E731
        elif kind == "half":
            amount = int(ledger.left_nano()[0, 0]) // 2
            dense.points.append((dense.step, [amount] * 3))
            action = lambda amount=amount: ledger.charge(amount)  # noqa: E731
        else:
            amounts = [step[1]] * 3 if kind == "all" else step[1]
            dense.points.append((dense.step, amounts))
            charge = step[1] if kind == "all" else np.array([step[1]])
            action = lambda charge=charge: ledger.charge(charge)  # noqa: E731
        before = ledger.snapshot()
        if dense.worst() > TOTAL:  # would push some window over: must be refused, and change nothing
            dense.points, dense.spans = points, spans
            with pytest.raises(BudgetExceeded) as refusal:
                action()
            assert refusal.value.asked > refusal.value.left
            assert refusal.value.window == window
            assert str(ledger.snapshot()) == str(before)
        else:
            action()
            if kind == "open":
                open_lanes[step[2]] = len(dense.spans) - 1
        assert round(ledger.worst_window() * TOTAL) == dense.worst()
        assert int(ledger.left_nano()[0, 0]) == TOTAL - dense.window_total(dense.step - window + 1)


@pytest.mark.parametrize(
    "hostile", [-1, 0.5, np.nan, np.inf, 1e-300, 5e-324, 1e300, 10**30, -(2**63), "1", None, [[[1]]], True, 2**63 - 1]
)
def test_hostile_charges_change_nothing(hostile):
    ledger = WindowLedger(1, 3)
    ledger.charge(1000)
    before = str(ledger.snapshot())
    for action in (ledger.charge, ledger.open_span):
        with pytest.raises((InputError, BudgetExceeded)):
            action(hostile)
        assert str(ledger.snapshot()) == before


def test_a_buffer_that_is_used_again_refunds_nothing():
    """Charged are 10 and then a hundred-thousandth; once the ledger added the second to what stood in the buffer."""
    ledger = WindowLedger(11, 3)
    buffer = np.array([[10 * TOTAL, 0]])
    ledger.charge(buffer)
    buffer[:] = 10_000
    ledger.charge(buffer)
    assert (ledger.charged(), ledger.left()) == (10.00001, 0.99999)


@pytest.mark.parametrize("several", [{}, {"replicas": 2}, {"bins": 2}])
def test_no_array_that_comes_in_or_goes_out_is_the_ledgers_own(several):
    """A twin is given fresh arrays and shows nothing; both must stand alike after every operation."""
    ledger, twin = WindowLedger(1, 3, **several), WindowLedger(1, 3, **several)
    ledger.entries = twin.entries = None if several else []
    shape = (several.get("replicas", 1), 2)
    buffer, column = np.zeros(shape, dtype=np.int64), np.zeros((shape[0], 1), dtype=np.int64)
    where, each = np.ones((shape[0], 1), dtype=np.bool_), np.zeros(2, dtype=np.int64)
    for amount in range(1, 8):
        for array, action in [
            (buffer, WindowLedger.charge),
            (column, WindowLedger.charge),
            (column, WindowLedger.open_span),
            (each, WindowLedger.charge_each),
        ]:
            array[...] = amount
            action(ledger, array)
            action(twin, array.copy())
            array[...] = 0
            for shown in (ledger.checked(3), ledger.left_nano(), ledger.open_spans(), *ledger.window_charges()[1:]):
                shown.flags.writeable = True
                shown[...] = 0
            for shown in (ledger.left(), ledger.charged(), ledger.worst_window()):
                np.asarray(shown)[...] = 0
            assert str(ledger.snapshot()) == str(twin.snapshot())
        ledger.close_span(where)
        twin.close_span(where.copy())
        where[...] = True
    assert not ledger._nothing.any()


def test_an_empty_ledger_shows_no_array_of_its_own():
    ledger = WindowLedger(1, 3)
    for shown in (ledger.open_spans("none"), ledger.window_charges()[2]):
        shown.flags.writeable = True
        shown[...] = -TOTAL
    assert (ledger.left(), ledger.charged()) == (1, 0)
    with pytest.raises(BudgetExceeded):
        ledger.charge(TOTAL + 1)


def test_charge_of_a_step_is_the_maximum_over_bins_of_the_sum_over_queries():
    ledger = WindowLedger(1, 2)
    ledger.charge(np.array([[300_000_000, 100_000_000]]))
    ledger.charge(np.array([[0, 150_000_000]]))
    assert ledger.charged() == 0.3
    ledger.charge(200_000_000)
    assert ledger.charged() == 0.5


def test_a_span_is_counted_once_in_every_window_it_touches():
    """Steps   0 1 2 3 4 5 6
    span         [===]          charged 0.4, window 2
    left       1 .6 .6 .6 .6 1   at the windows that end at steps 0 to 5: it touches those ending at 1 to 4
    """
    ledger, left = WindowLedger(1, 2), []
    for step in range(6):
        if step == 1:
            ledger.open_span(400_000_000)
        if step == 3:
            ledger.close_span()
        left.append(ledger.left())
        ledger.advance()
    assert left == [1, 0.6, 0.6, 0.6, 0.6, 1]


def test_accounts_per_bin_keep_bins_apart():
    ledger = WindowLedger(1, 2, bins=2)
    ledger.charge(np.array([[900_000_000, 0]]))
    ledger.advance()
    ledger.charge(np.array([[0, 900_000_000]]))
    assert ledger.left().tolist() == pytest.approx([0.1, 0.1])
    with pytest.raises(BudgetExceeded):
        ledger.charge(np.array([[200_000_000, 0]]))


def test_replicas_are_charged_apart():
    ledger = WindowLedger(1, 2, replicas=2)
    ledger.charge(np.array([[900_000_000], [100_000_000]]))
    assert ledger.left().tolist() == pytest.approx([0.1, 0.9])
    with pytest.raises(BudgetExceeded) as refusal:
        ledger.charge(np.array([[200_000_000], [200_000_000]]))
    assert (refusal.value.asked, refusal.value.left) == (0.2, 0.1)
    assert ledger.left().tolist() == pytest.approx([0.1, 0.9])


def test_memory_does_not_grow_with_a_huge_window():
    ledger = WindowLedger(1, 10**9)
    for _ in range(100):
        ledger.charge(1)
        ledger.advance()
    assert sum(array.nbytes for array in ledger.snapshot().values() if isinstance(array, np.ndarray)) < 10_000
    assert round(ledger.worst_window() * TOTAL) == 100


def test_restored_ledger_goes_on_the_same():
    ledger = WindowLedger(1, 3)
    ledger.charge(np.array([[5, 7]]))
    ledger.open_span(11)
    twin = WindowLedger(1, 3)
    twin.restore(ledger.snapshot())
    for one in (ledger, twin):
        one.charge(np.array([[4, 0]]))
        one.advance()
        one.close_span()
        one.advance()
    assert str(twin.snapshot()) == str(ledger.snapshot())
    with pytest.raises(StateError):
        twin.restore({"step": 3})


def test_entries_are_written_down_where_they_are_asked_for():
    ledger = WindowLedger(1, 3)
    assert ledger.entries is None
    ledger.charge(1)
    ledger.advance()
    ledger.entries = entries = []
    ledger.charge(2)
    ledger.charge(np.array([[3, 5]]))
    ledger.open_span(7, "x")
    ledger.advance()
    ledger.advance()
    ledger.close_span(lane="x")
    ledger.open_span(8, "x")
    ledger.charge_each(np.array([4, 0, 6]))
    assert entries == [
        (1, "open", "x", 7),
        (1, "point", "", 7),
        (3, "close", "x", 7),
        (3, "open", "x", 8),
        (3, "point", "", 4),
        (5, "point", "", 6),
    ]
    assert all(type(entry.step) is type(entry.amount) is int for entry in entries)


def test_a_refused_charge_is_not_written_down():
    ledger = WindowLedger(1, 3)
    ledger.entries = []
    for refused in (lambda: ledger.charge(2 * TOTAL), lambda: ledger.open_span(2 * TOTAL)):
        with pytest.raises(BudgetExceeded):
            refused()
    ledger.advance()
    assert ledger.entries == []


@pytest.mark.parametrize("several", [{"replicas": 2}, {"bins": 2}])
def test_entries_are_for_one_account(several):
    with pytest.raises(StateError, match="one account"):
        WindowLedger(1, 3, **several).entries = []
