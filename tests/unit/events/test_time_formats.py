"""Formats of times that somebody names: units since 1970, and patterns as Python's strptime understands them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.events.time_formats import TimeFormat
from eventide.events.times import read_times
from eventide.events.zones import EPOCH, Zone

BERLIN = Zone("Europe/Berlin")
COMPILED = ["%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M", "%Y%m%d%H%M%S", "%m/%d/%Y", "%Y-%m-%dT%H:%M:%S.%f%z", "%d%%%m%%%Y"]
PYTHON = ["%d %b %Y %H:%M", "%m/%d/%y %I:%M %p", "%Y-%j", "%G-W%V-%u", "%Y年%m月%d日"]


def read(value, form):
    """What is read, as text in UTC; None if it was refused."""
    (time,), (good,), _ = read_times(value if isinstance(value, pa.Array) else [value], BERLIN, TimeFormat(form))
    return Zone("UTC").iso(int(time)).removesuffix("+00:00") if good else None


@pytest.mark.parametrize(
    ("form", "written", "expected"),
    [
        ("%d.%m.%Y %H:%M", "01.07.2026 12:30", "2026-07-01T10:30:00"),
        ("%d.%m.%Y %H:%M", " 1.7.2026 2:30 ", "2026-07-01T00:30:00"),
        ("%Y-%m-%dT%H:%M:%S.%f%z", "2026-07-01T12:30:15.25+0200", "2026-07-01T10:30:15.250000"),
        ("%Y%m%d", 20260131, "2026-01-30T23:00:00"),
        ("%Y%m%d", pa.array([20260131]), "2026-01-30T23:00:00"),
        ("%d %b %Y %I:%M %p", "1 Jul 2026 01:30 PM", "2026-07-01T11:30:00"),
        ("%Y年%m月%d日", "2026年07月01日", "2026-06-30T22:00:00"),
        ("%d.%m.%Y", pa.array([datetime(2026, 7, 1, 12)], pa.timestamp("us", "UTC")), "2026-07-01T12:00:00"),
    ],
)
def test_a_pattern_says_how_times_are_written(form, written, expected):
    assert read(written, form) == expected


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("%d.%m.%Y", text)
        for text in ("", "2026-01-31", "31.02.2026", "01.13.2026", "1.1.26", "01.01.2026 12:00", "never", None, b"\xff")
    ]
    + [("%H:%M %d.%m.%Y", "24:00 01.01.2026"), ("%Y-%m-%d%z", "2026-01-01"), ("%Y-%m-%d%z", "2026-01-01+99:00")]
    + [("%Y-%m-%d %H:%M:%S.%f", "2026-01-01 00:00:00.1234567")],
)
def test_what_is_not_like_the_pattern_is_refused(form, value):
    assert read(value, form) is None


moments = st.datetimes(datetime(1000, 1, 1), datetime(9998, 1, 1))


@pytest.mark.parametrize("form", COMPILED + PYTHON)
@given(moment=moments)
def test_what_python_writes_is_read_as_python_reads_it(form, moment):
    written = moment.replace(tzinfo=UTC).strftime(form)
    expected = datetime.strptime(written, form)
    (time,), (good,), (local,) = read_times([written], Zone("UTC"), TimeFormat(form))
    assert good
    assert local == ("%z" not in form)
    assert time == (expected.replace(tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize("form", COMPILED)
@given(text=st.text("0123456789-+:./% TZ", max_size=28))
def test_nothing_is_read_otherwise_than_by_python(form, text):
    (time,), (good,), _ = read_times([text], Zone("UTC"), TimeFormat(form))
    if good and "%z" not in form:  # offsets are also read as in ISO 8601, such as +02
        expected = datetime.strptime(text.strip(), form).replace(tzinfo=UTC)
        assert time == (expected - EPOCH) // timedelta(microseconds=1)


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 1_000), ("us", 1_000_000), ("ns", 1_000_000_000)])
def test_a_unit_says_what_a_number_counts(unit, factor):
    assert read(86_400 * factor, unit) == "1970-01-02T00:00:00"  # small numbers too, which would be seconds
    assert read(str(-86_400 * factor), unit) == "1969-12-31T00:00:00"
    assert read(pa.array([1_700_000_000 * factor]), unit) == "2023-11-14T22:13:20"
    assert read("2026-01-31", unit) is None
    assert read("9" * 19, unit) is None
    many = read_times(np.arange(5).astype(str).tolist(), BERLIN, TimeFormat(unit))
    assert not many.in_zone.any()


@pytest.mark.parametrize("form", ["", "iso", "sec", "%H:%M", "%m/%d", "%Y-%m", "%Q", "%", "%d%d%m%Y", "%d.%m.%Y %I:%M"])
def test_what_does_not_tell_a_time_is_no_format(form):
    with pytest.raises(InputError, match=r"is no format of times; write s, ms, us or ns .* %d\.%m\.%Y %H:%M:%S"):
        TimeFormat(form)


def test_names_of_zones_are_not_read():
    with pytest.raises(InputError, match="is no format of times"):
        TimeFormat("%Y-%m-%d %Z")
