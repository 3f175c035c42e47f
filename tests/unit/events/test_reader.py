"""From rows to events: times however they are written, bins, and rows that are refused."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from plain_bounding import siphash

from eventide.errors import InputError
from eventide.events.reader import Columns, EventReader
from eventide.events.times import parse_times
from eventide.events.zones import EPOCH, Zone

KEY = bytes(range(16))
BERLIN = Zone("Europe/Berlin")


def reader_of(*bins: str, user: str | None = "user", **options) -> EventReader:
    reader = EventReader(bins or ("north", "south"), Columns("time", user), **options)
    reader.key = KEY
    return reader


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def read(value, zone: Zone = BERLIN) -> str | None:
    """What is read, as text in UTC; None if it was refused."""
    (time,), (good,) = parse_times(value if isinstance(value, pa.Array) else [value], zone)
    return Zone("UTC").iso(int(time)).removesuffix("+00:00") if good else None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("2024-07-01T12:30:15Z", "2024-07-01T12:30:15"),
        ("2024-07-01T12:30:15+02:00", "2024-07-01T10:30:15"),
        ("2024-07-01 12:30:15 -0530", "2024-07-01T18:00:15"),
        ("2024-07-01t12:30+02", "2024-07-01T10:30:00"),
        ("2024-07-01T12:30", "2024-07-01T10:30:00"),
        (" 2024-01-01 12:30 ", "2024-01-01T11:30:00"),
        ("2024-07-01", "2024-06-30T22:00:00"),
        ("2024-02-29T00:00:00.1234567Z", "2024-02-29T00:00:00.123456"),
        ("2024-10-27T02:30", "2024-10-27T00:30:00"),
        ("2024-03-31T02:30", "2024-03-31T01:00:00"),
        ("0001-01-03T00:00Z", "0001-01-03T00:00:00"),
        ("9999-12-29T23:59:59Z", "9999-12-29T23:59:59"),
    ],
)
def test_iso_text_is_read_in_the_zone_unless_it_names_one(written, expected):
    assert read(written) == expected


@pytest.mark.parametrize(
    "moment", ["1700000000", "1700000000000", "1700000000000000", "1700000000000000000", "1700000000.0"]
)
def test_numbers_count_since_1970_in_seconds_or_in_what_their_size_says(moment):
    assert read(moment) == "2023-11-14T22:13:20"
    assert read(float(moment)) == "2023-11-14T22:13:20"
    if "." not in moment:
        assert read(int(moment)) == "2023-11-14T22:13:20"
        assert read(pa.array([int(moment)])) == "2023-11-14T22:13:20"


def test_numbers_may_have_fractions_and_signs():
    assert read("1700000000.25") == "2023-11-14T22:13:20.250000"
    assert read("1700000000123.5") == "2023-11-14T22:13:20.123500"
    assert read("-1.5") == "1969-12-31T23:59:58.500000"
    assert read("99999999999") == "5138-11-16T09:46:39"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (datetime(2024, 7, 1, 12, tzinfo=UTC), "2024-07-01T12:00:00"),
        (datetime(2024, 7, 1, 12), "2024-07-01T10:00:00"),
        (date(2024, 7, 1), "2024-06-30T22:00:00"),
        (pa.array([datetime(2024, 7, 1, 12)], pa.timestamp("ns")), "2024-07-01T10:00:00"),
        (pa.array([datetime(2024, 7, 1, 12)], pa.timestamp("s", "America/New_York")), "2024-07-01T12:00:00"),
        (pa.array([date(2024, 7, 1)]), "2024-06-30T22:00:00"),
    ],
)
def test_dates_and_timestamps_are_taken_as_they_are(value, expected):
    assert read(value) == expected


def test_periods_of_pandas_are_no_times():
    """They are kept as numbers of hours, days or months, which would be read as seconds."""
    pandas = pytest.importorskip("pandas")
    periods = pa.array(pandas.period_range("2026-03-02", periods=2, freq="h"))
    with pytest.raises(InputError, match=r"type period\[h\] holds no points in time; .* series.dt.to_timestamp\(\)"):
        parse_times(periods, BERLIN)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", None, "now", "2024-13-01", "2023-02-29", "2024-04-31", "2024-7-1", "2024-07-01T", "2024-07-01T24:00",
        "2024-07-01T12", "2024-07-01T12:60", "2024-07-01T12:00:60", "2024-07-01T12:00:", "2024-07-01T12:00:00.",
        "2024-07-01T12:00:00Zulu", "2024-07-01T12:00+2", "2024-07-01T12:00+25:00", "2024-07-01T12:00+02:60",
        "2024-07-01X12:00", "0000-01-01", "12:30", "1.7e9", "17 000", "1.", ".5", "+1",
        "-", "9" * 19, "1" * 20, "1" * 40,
        "٢٠٢٤-07-01", [2024], float("nan"), float("inf"), pa.array([None], pa.timestamp("us")),
        pa.array([2**62], pa.timestamp("us")),
    ],
    ids=lambda value: str(value.cast("int64")[0]) if isinstance(value, pa.Array) else repr(value),
)  # fmt: skip
def test_what_is_no_time_is_refused(value):
    assert read(value) is None


offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda minutes: timezone(timedelta(minutes=minutes)))


@given(st.datetimes(datetime(2, 1, 1), datetime(9998, 1, 1), timezones=offsets), st.sampled_from(["T", " "]))
@example(datetime(2000, 2, 29, 23, 59, 59, 999_999, tzinfo=UTC), "T")
def test_whatever_the_standard_library_writes_is_read(moment, separator):
    (time,), (good,) = parse_times([moment.isoformat(separator)], BERLIN)
    assert good
    assert time == microseconds(moment)


@given(st.text("0123456789-+:.,TZ e", max_size=30))
def test_no_text_is_read_otherwise_than_by_the_standard_library(text):
    (time,), (good,) = parse_times([text], Zone("UTC"))
    stripped = text.strip()
    if good and stripped[4:5] == "-" and len(stripped) >= 10:
        moment = datetime.fromisoformat(stripped.replace(" +", "+").replace(" -", "-").replace(" Z", "Z"))
        assert time == microseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    elif good:
        float(stripped)


def test_columns_of_texts_with_and_without_zone_may_be_mixed():
    times, good = parse_times(["2024-07-01T12:00", "2024-07-01T12:00Z", "never"], BERLIN)
    assert good.tolist() == [True, True, False]
    assert times[1] - times[0] == 2 * 3_600_000_000


def test_an_empty_timestamp_without_a_zone_does_not_stop_the_others():
    column = pa.chunked_array([pa.array([datetime(2024, 7, 1), None], pa.timestamp("us"))])
    times, readable = parse_times(column, Zone("Europe/Berlin"))
    assert readable.tolist() == [True, False]
    assert times[0] == datetime(2024, 6, 30, 22, tzinfo=UTC).timestamp() * 1_000_000


def test_rows_become_events():
    rows = pa.table({"bin": ["south", "north"], "more": [1, 2], "user": [17, 4], "time": ["1970-01-01", "1"]})
    events = reader_of().read(rows, arrival=9)
    assert events.time.tolist() == [0, 1_000_000]
    assert events.user.tolist() == siphash(KEY, [b"17", b"4"]).tolist()
    assert events.bin.tolist() == [1, 0]
    assert events.arrival.tolist() == [9, 9]
    assert events.refused == Counter()


def test_dicts_and_tables_are_read_alike():
    rows = [{"time": 5, "user": "ann", "bin": "south"}, {"time": "x", "bin": "south", "user": 1}, {"user": 1}]
    table = pa.table({name: [str(row.get(name, "")) for row in rows] for name in ("time", "user", "bin")})
    for events in (reader_of().read(rows), reader_of().read(table)):
        assert events.time.tolist() == events.arrival.tolist() == [5_000_000]
        assert events.refused == {"time cannot be read": 2}


@pytest.mark.parametrize("few", [slice(None), slice(3, 4)])  # of one row the texts of all others need not be read
def test_columns_that_are_coded_as_dictionaries_are_read_like_texts(few):
    users, bins = ["ann", " 4 ", None, "ann", ""] * 4, ["south", "nowhere", "north", " south ", None] * 4
    texts = pa.table({"time": ["5"] * 20, "user": users, "bin": bins})[few]
    coded = pa.table({name: texts[name].dictionary_encode() for name in texts.column_names})
    chunks = pa.table({name: pa.chunked_array([*coded[name].chunks] * 2) for name in texts.column_names})
    for one, other in ((texts, coded), (pa.concat_tables([texts, texts]), chunks)):
        plain, read = reader_of(other="else").read(one), reader_of(other="else").read(other)
        assert plain.user.tolist() == read.user.tolist()
        assert plain.bin.tolist() == read.bin.tolist()
        assert plain.refused == read.refused


def test_each_refused_row_is_counted_once_with_its_first_fault():
    rows = [
        {"time": 1, "user": "ann", "bin": "north"},
        {"time": "?", "user": "", "bin": "west"},
        {"time": 1, "user": " ", "bin": "west"},
        {"time": 1, "user": None, "bin": "north"},
        {"time": 1, "user": "bob", "bin": "west"},
    ]
    events = reader_of().read(rows, unreadable=3)
    assert len(events.time) == len(events.user) == len(events.bin) == 1
    assert events.refused == {
        "row cannot be read": 3,
        "time cannot be read": 1,
        "without a user": 2,
        "bin is not in the list": 1,
    }


def test_without_a_column_of_users_nobody_is_missing():
    events = reader_of(user=None).read([{"time": 1, "bin": "north"}])
    assert events.user is None
    assert events.bin.tolist() == [0]


@pytest.mark.parametrize("bins", [("north", "south", "elsewhere"), ("north", "south")])
def test_unknown_bins_go_to_the_bin_for_others(bins):
    reader = reader_of(*bins, other="elsewhere")
    assert reader.bins == ("north", "south", "elsewhere")
    rows = [{"time": 1, "user": 1, "bin": name} for name in ("west", None, "south", " north ", "elsewhere", b"\xff")]
    events = reader.read(rows)
    assert events.bin.tolist() == [2, 2, 1, 0, 2, 2]
    assert events.refused == Counter()


def test_bins_may_be_numbers():
    reader = reader_of("1", "2")
    assert reader.read(pa.table({"time": [1, 1, 1], "user": [1, 1, 1], "bin": [2, 1, 3]})).bin.tolist() == [1, 0]
    assert reader.read([{"time": 1, "user": 1, "bin": 2.0}]).bin.tolist() == [1]


def test_no_rows_are_no_events():
    for rows in (
        [],
        pa.table({"time": pa.array([], pa.string()), "user": pa.array([], pa.int64()), "bin": pa.array([])}),
    ):
        events = reader_of().read(rows)
        assert [len(column) for column in events[:4]] == [0, 0, 0, 0]


def test_a_missing_column_and_one_that_holds_no_values_are_named():
    with pytest.raises(InputError, match="column 'user' is missing; there are time, bin"):
        reader_of().read(pa.table({"time": ["1"], "bin": ["north"]}))
    with pytest.raises(InputError, match="list<item: int64> cannot be read"):
        reader_of().read(pa.table({"time": ["1"], "bin": ["north"], "user": [[1]]}))


def test_readable_times_are_given_for_a_first_look():
    assert reader_of().times(pa.table({"time": ["7", "x", "3"]})).tolist() == [7_000_000, 3_000_000]
    assert isinstance(reader_of().times([]), np.ndarray)
