"""Steps that were over before a stream was first started are not measured: the clock says so, never their emptiness."""

from __future__ import annotations

import logging
from contextlib import closing

import pytest
from running_service import START, configuration, stream, wait_until

from eventide.cli.live_log import logging_to_stderr
from eventide.events.clock import ManualClock
from eventide.events.timeline import MILLISECOND, Timeline
from eventide.live.notices import NOTICES
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line
from eventide.service.live_stream import LiveStream
from eventide.service.service import Service

SECOND = 1_000 * MILLISECOND


def lived(settings, minutes):
    """Start a stream so late, let every step pass that is over by then and one more, and stop it."""
    clock = ManualClock()
    clock.set(settings.counting()["timeline"].start + int(minutes * 60 * SECOND))
    live = LiveStream(settings, clock, for_tests=True)
    measured_from = live.measured_from
    live.start()
    clock.set(live.feed.timeline.end(measured_from) + 60 * SECOND)
    wait_until(lambda: live.notices.last >= measured_from)
    live.stop()
    return measured_from


#  0     1     2     3     4        a minute each; late by half of one
#  |-----|-----|-----|-----|
#                 ^ started here: step 1 is over, and events of step 2 may still come
@pytest.mark.parametrize(
    ("late", "minutes", "expected"), [(None, 3.25, 3), ("30s", 3.25, 2), (None, -7, 0), (None, 0, 0)]
)
def test_a_stream_measures_from_the_first_step_whose_events_can_still_come(tmp_path, late, minutes, expected):
    settings = stream(tmp_path, late=late)
    assert lived(settings, minutes) == expected
    with closing(open_store(settings.store, read_only=True)) as store:
        fresh = [read_line(release).fresh for _, release in store.releases()]
        charged = {entry.step for entry in store.entries()}
    assert fresh[: expected + 1] == [False] * expected + [True]
    assert min(charged) == expected


def test_a_stream_that_was_started_before_measures_what_it_missed(tmp_path):
    settings = stream(tmp_path)
    assert lived(settings, 0) == 0
    assert lived(settings, 9) == 0
    with closing(open_store(settings.store, read_only=True)) as store:
        assert all(read_line(release).fresh for _, release in store.releases())


def test_the_first_start_is_told_as_a_note_and_never_as_a_warning(tmp_path, caplog):
    caplog.set_level(logging.INFO, "eventide.live.notices")
    Service(configuration(tmp_path), ManualClock(Timeline(START, "1min").begin(9)), for_tests=True).stop()
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        (
            "INFO",
            "stream city: steps before step 9 (2026-01-01T00:09:00+00:00) are not measured and cost no budget: they "
            "were over when measuring began. Nothing has to be done",
        )
    ]


def test_steps_that_only_repeat_are_one_line_and_each_line_names_its_stream(tmp_path, caplog):
    """However many there are: 46,357 lines of a first start would push warnings out of the journal."""
    caplog.set_level(logging.INFO, "eventide.live")
    lived(stream(tmp_path), 300)
    told = [(each.getMessage(), each.fields) for each in caplog.records if hasattr(each, "fields")]
    (first, repeated), (then, released), *_ = told
    assert (first, repeated["stream"], repeated["first"], repeated["step"]) == ("repeated", "city", 0, 299)
    assert (then, released["stream"], released["step"]) == ("released", "city", 300)


def test_notes_are_shown_where_only_warnings_are_logged(capsys):
    with logging_to_stderr(None):
        NOTICES.info("all is well")
        logging.getLogger("eventide.live").info("released")
    assert capsys.readouterr().err == "Note: all is well\n"
