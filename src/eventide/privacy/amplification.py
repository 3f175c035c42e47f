"""Thinning amplifies privacy: a query on a random sample may be asked with a larger budget than it is charged.

The rule: keep each event with probability b and answer with budget e'; one event then costs ln(1 + b (exp(e') - 1)).
Here e' is the largest whole nano-epsilon whose cost stays within the charge, found in decimal arithmetic and rounded to
the safe side.
"""

from __future__ import annotations

import functools
from decimal import ROUND_FLOOR, Context, Decimal

import numpy as np

from eventide.arrays import Ints
from eventide.privacy.amounts import NANO

_DIGITS = Context(prec=60, rounding=ROUND_FLOOR)  # used for every operation: the caller's own context may be coarse
_MARGIN = Decimal(1).scaleb(-30)  # far above the error of 60 digits, far below a nano


def amplified(charge: Ints, percent: Ints, sensitivity: int) -> Ints:
    """The budget a sample of `percent` of the events may be measured with when every bin is charged `charge`.

    One person adds up to `sensitivity` events, each of which may cost `charge / sensitivity`.
    """
    charge, percent = np.broadcast_arrays(charge, percent)
    result = np.zeros(charge.shape, dtype=np.int64)
    for amount in np.unique(charge[charge > 0]):
        here = charge == amount
        result[here] = _table(int(amount), sensitivity)[percent[here]]
    return result


@functools.lru_cache(maxsize=64)
def _table(charge: int, sensitivity: int) -> Ints:
    """The amplified budget at 0, 1, ..., 100 percent; at 0 nothing is asked."""
    loss = _DIGITS.divide(Decimal(charge), Decimal(NANO * sensitivity))
    grown = _DIGITS.subtract(_DIGITS.exp(loss), Decimal(1))
    budgets = [
        _budget(_DIGITS.divide(_DIGITS.multiply(grown, Decimal(100)), Decimal(percent))) for percent in range(1, 100)
    ]
    return np.array([0, *budgets, charge // sensitivity], dtype=np.int64)  # a sample of everything gains nothing


def _budget(odds: Decimal) -> int:
    """ln(1 + odds) in nano-epsilon, rounded down."""
    exponent = _DIGITS.subtract(_DIGITS.ln(_DIGITS.add(odds, Decimal(1))), _MARGIN)
    return max(0, int(_DIGITS.multiply(exponent, Decimal(NANO)).to_integral_value(rounding=ROUND_FLOOR)))
