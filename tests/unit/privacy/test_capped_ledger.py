"""The ledger under a window sensitivity: every step has epsilon m / C, and people lose at most epsilon."""

from __future__ import annotations

import numpy as np
import pytest

from eventide.errors import BudgetExceeded, InputError
from eventide.privacy.amounts import NANO
from eventide.privacy.capped_ledger import CappedLedger, step_budget


def test_every_step_has_the_same_budget_for_ever():
    ledger = CappedLedger(epsilon=1, window=5, sensitivity=2, window_sensitivity=7)
    share = NANO * 2 // 7
    for _ in range(20):
        assert ledger.left_nano().item() == share
        with pytest.raises(BudgetExceeded):
            ledger.charge(share + 1)
        ledger.charge(share)
        assert ledger.left() == 0
        with pytest.raises(BudgetExceeded):
            ledger.charge(1)
        ledger.advance()


def test_spans_are_counted_at_every_step_that_they_touch():
    ledger = CappedLedger(epsilon=1, window=8, sensitivity=1, window_sensitivity=4)
    ledger.open_span(NANO // 10)
    for _ in range(3):
        ledger.charge(NANO // 4 - NANO // 10)
        with pytest.raises(BudgetExceeded):
            ledger.charge(1)
        ledger.advance()
    ledger.close_span()
    ledger.charge(NANO // 4 - NANO // 10)
    ledger.advance()
    assert ledger.left() == 1
    assert ledger.worst_window() == 1


def test_what_is_spent_is_rounded_up_and_what_is_left_down():
    ledger = CappedLedger(epsilon=1, window=9, sensitivity=3, window_sensitivity=10)
    ledger.charge(1)
    assert ledger.worst_window() == 4 / NANO  # 10 / 3
    assert ledger.left() == (NANO * 3 // 10 - 1) * 10 // 3 / NANO
    for epsilon, most, bound in (("0.000123457", 7, 55), (10**6, 10**6, 10**9 - 1), ("0.1", 1, 3)):
        full = CappedLedger(epsilon, 10**9, most, bound)
        full.charge(full.nano_epsilon)
        assert 0 <= full.promised - round(full.worst_window() * NANO) <= bound / most
        assert full.worst_window() <= full.epsilon


def test_replicas_have_a_column_each():
    ledger = CappedLedger(1, 5, 1, 4, replicas=2)
    ledger.charge(np.array([[NANO // 8], [0]]))
    assert ledger.left().tolist() == [0.5, 1.0]
    assert ledger.worst_window().tolist() == [0.5, 0.0]


def test_it_shows_what_it_is_for():
    ledger = CappedLedger(1, 168, 1, 8)
    ledger.charge(NANO // 16)
    assert repr(ledger) == (
        "CappedLedger(epsilon=1, window=168, sensitivity=1, window_sensitivity=8, step=0, left=0.5, worst_window=0.5)"
    )
    assert "epsilon 1 for every window of 168 steps of one person, 0.125 for every step" in ledger._repr_html_()
    assert "0.5 of 1" in ledger._repr_html_()


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "bound", "says"),
    [(NANO, 3, 2, "window_sensitivity is 2 and sensitivity 3"), (2000, 1, 3, "leaves less than 0.000001")],
)
def test_bounds_that_cannot_be_are_refused(epsilon, sensitivity, bound, says):
    with pytest.raises(InputError, match=says):
        step_budget(epsilon, sensitivity, bound)


def test_its_picture_is_in_what_one_person_loses():
    ledger = CappedLedger(1, 168, 1, 8)
    ledger.charge(NANO // 16)
    figure = ledger.plot()
    heights = {line.get_label(): line.get_ydata().max() for line in figure.axes[0].lines}
    assert heights["charged to the step"] == heights["fullest window so far"] == 0.5
    assert heights["epsilon"] == 1
