"""Values as whole numbers: each by itself, inside the range, and as a rational oracle rounds them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.events.value_grid import parse_between

FARE = parse_between("fare=0,120")
HOSTILE = ["1e308", "-1e308", "5e-324", "nan", "inf", "-inf", "", "twelve", "1" + "0" * 30, "1e400", "\0", "0x10", None]
AS_UNITS = [1000, 0, 0, None, None, None, None, None, 1000, None, None, None, None]


@given(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from(["fare=0,120", "fare=0.1,7", "fare=3,4,0.3"]))
def test_a_value_is_the_nearest_unit_inside_the_range(value, written):
    grid = parse_between(written)
    (units,), (readable,) = grid.read([value])
    assert readable
    assert grid.lowest <= units <= grid.highest
    inside = min(max(Fraction(value), grid.low), grid.high)
    assert abs(units - inside / grid.unit) <= Fraction(1, 2) + Fraction(1, 10**6)


def test_what_is_no_number_is_not_read_and_changes_no_other():
    units, readable = FARE.read(HOSTILE)
    assert [int(unit) if good else None for unit, good in zip(units, readable, strict=True)] == AS_UNITS
    with_others, good = FARE.read([12, *HOSTILE, "60"])
    assert (with_others[0], with_others[-1], good[0], good[-1]) == (100, 500, True, True)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([12, 60, None]),
        pa.array([12.0, 60.0, float("nan")]),
        pa.array(["12", "6e1", "x"]),
        pa.array([b" 12 ", b"60.0", b""], pa.binary()),
        pa.array([Decimal(12), Decimal(60), None], pa.decimal128(9, 2)),
        pa.chunked_array([[12.0], [60.0, None]]),
        [12, 60.0, [1]],
        [Decimal(12), np.float32(60), True],
    ],
    ids=lambda column: str(getattr(column, "type", "list")),
)
def test_a_value_is_the_same_in_whatever_column(column):
    units, readable = FARE.read(column)
    assert units[:2].tolist() == [100, 500]
    assert readable.tolist() == [True, True, False]


def test_the_ends_of_a_range_are_rounded_outward():
    grid = parse_between("fare=0.5,1.2,1")
    assert (grid.lowest, grid.highest) == (0, 2)
    assert str(parse_between("a=b=0,1,1/3")) == "a=b=0,1,1/3"


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("fare", "is no range"),
        ("=0,1", "is no range"),
        ("fare=0", "is no range"),
        ("fare=1,1", "is no range"),
        ("fare=0,x", "is no range"),
        ("fare=0,1,0", "is no range"),
        ("fare=0,nan", "is no range"),
        ("fare=1000,1001", "more than 1,000,000 units"),
        ("fare=0,1e-300", "more than 15 digits"),
    ],
)
def test_what_is_no_range_is_refused(written, says):
    with pytest.raises(InputError, match=says):
        parse_between(written)
