"""Several statistics under one ledger: their charges add up, whatever bins they were asked about."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from eventide.errors import BudgetExceeded, StateError
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Unit, Zero
from eventide.privacy.part_meter import PartMeter

PEOPLE, FARES = slice(0, 2), slice(2, 4)
SHARE = NANO // 2


def meters(source=None):
    """People (of whom one adds 1) and fares (of which one adds 240) of two bins; each has half of epsilon 1."""
    whole = Meter(WindowLedger(1, 2), source or Zero(), 4)
    parts = [PartMeter(whole, WindowLedger(0.5, 2), places, most) for places, most in ((PEOPLE, 1), (FARES, 240))]
    step = whole.seal(np.array([[3, 5, 700, 900]]))
    return whole, parts, [part.seal_part(step) for part in parts]


def largest_loss(charges, sensitivities):
    """The most that one person can lose in a step, over everything that somebody can add to both statistics."""

    def losses(charge, most):
        changes = [x for x in itertools.product(range(most + 1), repeat=len(charge)) if sum(x) <= most]
        return max(sum(each * x for each, x in zip(charge, change, strict=True)) / most for change in changes)

    return sum(losses(charge, most) for charge, most in zip(charges, sensitivities, strict=True))


@pytest.mark.parametrize("charges", list(itertools.product([(2, 2), (3, 0), (0, 3), (1, 4)], repeat=2)), ids=str)
def test_the_common_ledger_is_charged_what_somebody_can_lose(charges):
    whole, parts, steps = meters()
    for part, step, charge in zip(parts, steps, charges, strict=True):
        part.counts(step, np.array([charge]))
    lost = largest_loss(charges, (1, 3))
    assert round(whole.ledger.charged() * NANO) == lost
    by_bin = max(map(sum, zip(*charges, strict=True)))
    assert by_bin <= lost
    if charges == ((3, 0), (0, 3)):
        assert by_bin < lost  # what a ledger of bins would have charged is too little


def test_each_sees_its_own_numbers_with_noise_of_its_own_scale():
    _, parts, steps = meters()
    found = [part.counts(step, np.array([[SHARE]])) for part, step in zip(parts, steps, strict=True)]
    assert [each.values.tolist() for each in found] == [[[3, 5]], [[700, 900]]]
    assert [each.scale.ravel().tolist() for each in found] == [[2.0], [480.0]]
    whole, parts, steps = meters(Unit())
    whole.journal = []
    for part, step in zip(parts, steps, strict=True):
        part.distance(step, np.zeros((1, 2)), np.array([[SHARE]]))
    assert [draw.numerator for draw in whole.journal] == [NANO, 240 * NANO]


def test_none_spends_more_than_its_share():
    _, parts, steps = meters()
    with pytest.raises(BudgetExceeded):
        parts[0].counts(steps[0], np.array([[SHARE + 1]]))


def test_a_part_cannot_keep_anything_open():
    _, parts, _ = meters()
    with pytest.raises(StateError, match="measures counts and distances only"):
        parts[0].sum_over_steps(np.array([[1]]))
