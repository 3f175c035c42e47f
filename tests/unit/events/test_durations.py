"""A window written as a duration: its steps cover at least that long, or it is refused."""

from __future__ import annotations

import pytest

from eventide.errors import InputError
from eventide.events.durations import in_words, milliseconds, steps_of_window


@pytest.mark.parametrize(
    ("window", "step", "steps"),
    [("24h", "1h", 24), ("1d", "1d", 1), ("1d", "24h", 1), ("36h", "1d", 2), ("61min", "1h", 2), ("1w", "1d", 7)],
)
def test_a_window_has_the_steps_that_cover_it(window, step, steps):
    assert steps_of_window(window, step) == steps
    assert (steps - 1) * milliseconds(step) < milliseconds(window) <= steps * milliseconds(step)


def test_a_window_of_time_needs_the_length_of_a_step():
    with pytest.raises(InputError, match="a window of 24h needs the length of a step, such as --step 1h"):
        steps_of_window("24h", None)


@pytest.mark.parametrize(("window", "step"), [("12h", "1d"), ("59min", "1h"), ("1ms", "2ms")])
def test_a_window_shorter_than_a_step_is_refused(window, step):
    with pytest.raises(InputError, match=f"{window} is shorter than a step of {step}.*write 1"):
        steps_of_window(window, step)


@pytest.mark.parametrize(
    ("text", "told"),
    [("24h", "1 day"), ("25h", "25 hours"), ("100h", "4 days 4 hours"), ("1439min", "23 hours 59 minutes")],
)
def test_a_length_is_told_in_large_units(text, told):
    assert in_words(milliseconds(text)) == told


@pytest.mark.parametrize(
    ("text", "meant"), [("30m", "30min"), ("2 hours", "2h"), ("1D", "1d"), ("5MS", "5ms"), ("90 secs", "90s")]
)
def test_other_names_of_units_are_understood_in_the_refusal(text, meant):
    with pytest.raises(InputError, match=f"'{text}' is no duration; did you mean {meant}\\? If not, write"):
        milliseconds(text)


@pytest.mark.parametrize("text", ["1mo", "month", "1M", "2 Months", "1q", "1 year"])
def test_a_length_that_differs_in_the_calendar_is_told_as_such(text):
    with pytest.raises(InputError, match="months and years differ in length, so give weeks or days, such as 4w; write"):
        milliseconds(text)


@pytest.mark.parametrize("text", ["0s", "soon", "3", "1 fortnight"])
def test_nothing_is_made_up_where_no_unit_is_known(text):
    with pytest.raises(InputError, match="is no duration; write a whole number"):
        milliseconds(text)
