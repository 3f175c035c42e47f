"""Privacy budgets as integers: an amount is a whole number of nano-epsilon (10^-9).

Integers make "no window is over epsilon" an exact statement. A float is read through its shortest decimal form, so 0.3
means three tenths, and whatever does not fit the grid is rounded down: a plan may waste a nano, never overspend one.
"""

from __future__ import annotations

import decimal
import math
import numbers
from fractions import Fraction

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError

NANO = 10**9
SMALLEST, LARGEST = NANO // 10**6, NANO * 10**6

Amount = int | float | str | Fraction | decimal.Decimal


def exact(value: Amount) -> Fraction:
    """`value` as the rational number that its shortest decimal form denotes; what is no finite number is refused."""
    try:
        if isinstance(value, bool | np.bool_):
            raise TypeError
        if isinstance(value, numbers.Rational):
            return Fraction(int(value.numerator), int(value.denominator))
        if isinstance(value, float | np.floating):
            if not math.isfinite(value):
                raise ValueError
            return Fraction(np.format_float_positional(value, unique=True))
        if isinstance(value, str | decimal.Decimal):
            return Fraction(value)
        raise TypeError
    except (TypeError, ValueError, OverflowError, ZeroDivisionError):
        raise InputError(f"{value!r} is not a number that epsilon can be; give one such as 1, 0.3 or '1/3'") from None


def number(value: object) -> float:
    """`value` as a float if it is a real number that one can hold; else NaN, which is neither above nor below anything.

    >>> 0 <= number("abc"), 0 <= number(3)
    (False, True)
    """
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def nano(epsilon: Amount) -> int:
    """The whole nano-epsilon in `epsilon`, rounded down; it must lie between 10^-6 and 10^6.

    >>> nano(0.3), nano("1/3")
    (300000000, 333333333)
    """
    amount = math.floor(exact(epsilon) * NANO)
    if not SMALLEST <= amount <= LARGEST:
        raise InputError(f"epsilon is {epsilon!r}; it must lie between 0.000001 and 1000000")
    return amount


def fixed(numbers: Ints) -> Ints:
    """A copy of whole numbers that cannot be written to, for whoever keeps them and shows them."""
    copy = np.array(numbers, dtype=np.int64)
    copy.flags.writeable = False
    return copy


def share(amount: int | Ints, numerator: int, denominator: int) -> Ints:
    """A part of an amount, rounded down: `n` shares of one n-th never exceed it.

    Parameters
    ----------
    amount
        Whole nano-epsilon, as a number or an array.
    numerator, denominator
        Which part. There is no overflow below 2^31.

    >>> share(1_000_000_000, 1, 3).item()
    333333333
    """
    whole, rest = np.divmod(np.asarray(amount, dtype=np.int64), denominator)
    return np.asarray(whole * numerator + rest * numerator // denominator, dtype=np.int64)
