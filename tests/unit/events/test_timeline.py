"""How time is cut: exact steps, calendar days, zones, and a clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.events.clock import ManualClock
from eventide.events.timeline import Timeline
from eventide.events.zones import EPOCH, Zone

HOUR = 3_600_000_000
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Pacific/Apia", "Africa/Casablanca"]


def moment(text: str) -> int:
    """A time with its offset, in microseconds UTC, by the standard library."""
    return (datetime.fromisoformat(text) - EPOCH) // timedelta(microseconds=1)


def steps_of(timeline: Timeline, *texts: str) -> list[int]:
    return timeline.index(np.array([moment(text) for text in texts])).tolist()


def test_a_step_holds_its_beginning_and_not_its_end():
    #        0           1           2
    # 12:00 |----- 12:10 |---- 12:20 |----
    #       ^           ^^           ^
    timeline = Timeline("2024-05-01T12:00", "10min")
    times = ["2024-05-01T12:00Z", "2024-05-01T12:09:59.999999Z", "2024-05-01T12:10Z", "2024-05-01T12:20Z"]
    assert steps_of(timeline, *times) == [0, 0, 1, 2]


def test_times_before_the_start_have_negative_steps():
    #      -2    -1     0
    #   |-----|-----|-----
    #      ^       ^^
    timeline = Timeline("2024-05-01", "1h")
    assert steps_of(timeline, "2024-04-30T22:30Z", "2024-04-30T23:59:59Z", "2024-05-01T00:00Z") == [-2, -1, 0]


def test_the_day_on_which_clocks_are_put_forward_has_23_hours():
    #  30 March      31 March       1 April      (Berlin)
    # |-- 24 h --|---- 23 h ----|---- 24 h --
    # 0          1       ^^     2
    #                02:00 = 03:00
    days = Timeline("2024-03-30", "1d", "Europe/Berlin")
    assert [days.end(step) - days.begin(step) for step in range(3)] == [24 * HOUR, 23 * HOUR, 24 * HOUR]
    times = [
        "2024-03-30T23:59:59+01:00",
        "2024-03-31T00:00+01:00",
        "2024-03-31T23:59:59+02:00",
        "2024-04-01T00:00+02:00",
    ]
    assert steps_of(days, *times) == [0, 1, 1, 2]
    assert [days.iso(step) for step in (1, 2)] == ["2024-03-31T00:00:00+01:00", "2024-04-01T00:00:00+02:00"]


def test_the_day_on_which_clocks_are_put_back_has_25_hours():
    #  26 October   27 October    28 October     (Berlin)
    # |-- 24 h --|---- 25 h ----|---- 24 h --
    # 0          1   02:xx twice 2
    days = Timeline("2024-10-26", "1d", "Europe/Berlin")
    assert [days.end(step) - days.begin(step) for step in range(3)] == [24 * HOUR, 25 * HOUR, 24 * HOUR]
    assert steps_of(days, "2024-10-27T02:30+02:00", "2024-10-27T02:30+01:00", "2024-10-28T00:00+01:00") == [1, 1, 2]


def test_hours_are_exact_through_both_changes():
    #  00:00 01:00 03:00 04:00   (Berlin, clocks skip 02:xx)
    # |  0  |  1  |  2  |  3
    spring = Timeline("2024-03-31", "1h", "Europe/Berlin")
    assert steps_of(spring, "2024-03-31T01:59+01:00", "2024-03-31T03:00+02:00") == [1, 2]
    #  00:00 01:00 02:00 02:00 03:00   (Berlin, clocks show 02:xx twice)
    # |  0  |  1  |  2  |  3  |  4
    autumn = Timeline("2024-10-27", "1h", "Europe/Berlin")
    assert steps_of(autumn, "2024-10-27T02:10+02:00", "2024-10-27T02:10+01:00", "2024-10-27T03:00+01:00") == [2, 3, 4]


def test_weeks_keep_their_weekday_and_hour():
    weeks = Timeline("2024-03-25T06:00", "1w", "America/New_York")
    assert [weeks.iso(step) for step in (0, 1, 32)] == [
        "2024-03-25T06:00:00-04:00",
        "2024-04-01T06:00:00-04:00",
        "2024-11-04T06:00:00-05:00",
    ]


def test_a_day_that_a_zone_left_out_is_an_empty_step():
    # Samoa went from 29 December 2011 straight to the 31st.
    #    29        30   31
    # |-- 24 h --||-- 24 h --|
    days = Timeline("2011-12-29", "1d", "Pacific/Apia")
    assert [(days.end(step) - days.begin(step)) // HOUR for step in range(3)] == [24, 0, 24]
    assert steps_of(days, "2011-12-29T23:59-10:00", "2011-12-31T00:00+14:00") == [0, 2]


def test_a_day_does_not_begin_again_when_clocks_go_back_over_midnight():
    # St. John's put clocks back at 00:01, to 23:01 of the day before.
    #      23:00  00:00 00:01=23:01  00:00
    # 29 Oct ------|--------------------------- 30 Oct
    days = Timeline("2006-10-28", "1d", "America/St_Johns")
    before, first, again = "2006-10-28T23:59-02:30", "2006-10-29T00:00:30-02:30", "2006-10-28T23:30-03:30"
    assert steps_of(days, before, first, again) == [0, 1, 1]


@settings(max_examples=20)
@given(
    st.lists(st.datetimes(datetime(1890, 1, 1), datetime(2150, 1, 1)), min_size=1, max_size=20),
    st.sampled_from(ZONES),
    st.sampled_from(["1d", "2d", "1w", "7h", "10min"]),
)
def test_every_time_lies_in_its_step(times, zone, length):
    timeline = Timeline("2024-03-30T04:30", length, zone)
    array = np.array([moment(time.replace(tzinfo=UTC).isoformat()) for time in times])
    for time, step in zip(array, timeline.index(array), strict=True):
        assert timeline.begin(step) <= time < timeline.end(step)


@given(st.datetimes(datetime(1890, 1, 1), datetime(9990, 1, 1)), st.sampled_from(ZONES))
def test_local_times_are_read_as_the_standard_library_does(local, zone):
    wall = moment(local.replace(tzinfo=UTC).isoformat())
    utc = int(Zone(zone).to_utc(np.array([wall]))[0])
    expected = local.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    if expected.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == local:
        assert utc == moment(expected.isoformat())
    else:  # skipped: the first moment at which clocks show something later
        assert Zone(zone).to_local(utc) > wall > Zone(zone).to_local(utc - 1)


def test_a_time_shown_twice_is_the_first_and_a_skipped_one_the_moment_of_the_change():
    def read(text: str) -> str:
        wall = np.array([moment(text + "+00:00")])
        return Zone("Europe/Berlin").iso(int(Zone("Europe/Berlin").to_utc(wall)[0]))

    assert read("2024-10-27T02:30:00") == "2024-10-27T02:30:00+02:00"
    assert read("2024-03-31T02:30:00") == "2024-03-31T03:00:00+02:00"
    assert read("2024-10-27T03:00:00") == "2024-10-27T03:00:00+01:00"
    assert read("2024-03-31T03:00:00") == "2024-03-31T03:00:00+02:00"
    assert read("2087-07-01T12:00:00") == "2087-07-01T12:00:00+02:00"


@pytest.mark.parametrize(
    ("length", "begin"),
    [("1d", "2013-01-05T00:00:00-05:00"), ("1h", "2013-01-05T17:00:00-05:00"), ("7h", "2013-01-05T14:00:00-05:00")],
)
def test_a_time_line_around_the_first_event_counts_from_midnight(length, begin):
    timeline = Timeline.around(moment("2013-01-05T17:30-05:00"), length, "America/New_York")
    assert timeline.iso(0) == begin
    assert timeline.from_data
    assert not Timeline("2013-01-05", length).from_data


@pytest.mark.parametrize(
    ("start", "length", "zone", "fault"),
    [
        ("yesterday", "1d", "UTC", "'yesterday' is no time"),
        ("2024-02-30", "1d", "UTC", "is no time"),
        ("2024-01-01", "a day", "UTC", "is no duration"),
        ("2024-01-01", "1d", "Europe/Atlantis", "is no time zone"),
        ("2024-01-01", "1d", "../etc", "is no time zone"),
    ],
)
def test_what_is_no_time_line_is_refused(start, length, zone, fault):
    with pytest.raises(InputError, match=fault):
        Timeline(start, length, zone)


def test_a_manual_clock_moves_when_told_and_never_back():
    manual = ManualClock(10)
    manual.wait(0.5)
    assert manual.now() == 500_010
    manual.set(7)
    assert manual.now() == 500_010


@settings(max_examples=50)
@given(
    st.lists(st.integers(-48, 120), max_size=20),
    st.booleans(),
    st.sampled_from(["8h", "1d"]),
    st.sampled_from(ZONES),
)
@example([0, 8], True, "8h", "UTC")
def test_times_are_split_into_the_steps_in_which_each_of_them_is(hours, in_order, length, zone):
    timeline = Timeline("2011-12-28", length, zone)  # Apia had no 30 December
    many = hours * 22  # more than there are steps
    times = timeline.start + HOUR * np.array(sorted(many) if in_order else many, np.int64)
    steps = timeline.index(times)
    split = {step: np.arange(len(times))[rows].tolist() for step, rows in timeline.split(times)}
    assert split == {step: np.flatnonzero(steps == step).tolist() for step in sorted(set(steps.tolist()))}
    assert list(split) == sorted(split)


def test_two_times_that_are_ages_apart_are_split_without_counting_the_steps_between():
    timeline = Timeline("2000-01-01", "1s")
    split = list(timeline.split(np.array([timeline.start, timeline.start + 10**17])))
    assert [step for step, _ in split] == [0, 10**11]
