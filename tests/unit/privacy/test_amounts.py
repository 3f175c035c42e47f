"""Epsilon as whole nano-epsilon."""

import decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.privacy.amounts import nano, share


@pytest.mark.parametrize(
    ("given_as", "amount"),
    [
        (1, 10**9),
        (0.3, 300_000_000),
        (0.1 + 0.2, 300_000_000),  # its shortest decimal form is 0.30000000000000004, rounded down
        ("0.3", 300_000_000),
        ("1/3", 333_333_333),
        (Fraction(2, 3), 666_666_666),
        (decimal.Decimal("0.0000019999"), 1_999),
        (np.float32(0.3), 300_000_000),
        (np.float64(0.7), 700_000_000),
        (np.int64(2), 2 * 10**9),
        (1e-6, 1_000),
        (1e6, 10**15),
    ],
)
def test_conversion_is_exact(given_as, amount):
    assert nano(given_as) == amount


@pytest.mark.parametrize(
    "hostile",
    [
        0,
        -1,
        -0.5,
        float("nan"),
        float("inf"),
        -float("inf"),
        1e-300,
        5e-324,
        1e300,
        10**40,
        9.99e-7,
        1_000_000.1,
        "",
        "abc",
        "1/0",
        "nan",
        None,
        True,
        np.True_,
        [1],
        1j,
        decimal.Decimal("NaN"),
        np.nan,
        np.float32("inf"),
    ],
)
def test_hostile_epsilon_is_refused(hostile):
    with pytest.raises(InputError):
        nano(hostile)


@given(st.integers(0, 10**15), st.integers(1, 2**31 - 1), st.integers(1, 2**31 - 1))
def test_shares_are_rounded_down_without_overflow(amount, numerator, denominator):
    numerator = min(numerator, denominator)
    assert int(share(amount, numerator, denominator)) == amount * numerator // denominator
