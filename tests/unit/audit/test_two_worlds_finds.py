"""Two worlds find what was once wrong: each test puts a repaired fault back, and sees it reported."""

from __future__ import annotations

import json
import logging

import pytest
import served_worlds
from worlds import Setup, check

from eventide.audit.two_worlds import WorldsDiffer
from eventide.events.reader import Events
from eventide.events.zones import EARLIEST
from eventide.live.publisher.publisher import Publisher
from eventide.live.sources import frame_events
from eventide.live.sources.base import FOREVER, EventBatch
from eventide.live.stores.rows import WrittenRows
from eventide.service.http import reading_routes
from eventide.service.pushed_feed import PushedFeed


def test_a_log_line_before_the_commit(monkeypatch):
    setup = Setup(mechanism="bd", life="dies once")
    check(setup)
    measured = Publisher._measured

    def hasty(publisher, step, counts, position):
        drawn = measured(publisher, step, counts, position)
        logging.getLogger("eventide.live").info("released", extra={"fields": {"step": step, **drawn.fields}})
        return drawn

    monkeypatch.setattr(Publisher, "_measured", hasty)
    with pytest.raises(WorldsDiffer, match=r'log, line \d+\n.*"step": 4'):
        check(setup)


def test_a_busy_neighbour_who_decides_who_counts(monkeypatch):
    setup = Setup(source="http", life="is busy")  # which test_two_worlds.py checks as it is
    taken = PushedFeed._taken

    def stamped_when_taken(feed, submitted):
        return taken(feed, submitted._replace(arrival=type(submitted.arrival)(feed.clock.now())))

    monkeypatch.setattr(PushedFeed, "_taken", stamped_when_taken)
    with pytest.raises(WorldsDiffer, match=r"step 3 .*sealed counts are \d+ apart, where one person adds 2"):
        check(setup)


class Hasty:
    """A clock that believes whatever the machine says, and never goes back."""

    def __init__(self, wall, steady):
        self._wall, self._latest = wall, 0

    def now(self):
        self._latest = max(self._latest, self._wall() // 1000)
        return self._latest

    certain = now


@pytest.mark.slow
def test_a_clock_that_jumps_when_one_person_looks(monkeypatch):
    setup = Setup(source="http", mechanism="uniform", life="has a clock that jumps")
    check(setup)
    monkeypatch.setattr(served_worlds, "SystemClock", Hasty)
    with pytest.raises(WorldsDiffer, match=r"step \d+ .*sealed counts are \d+ apart, outside the window"):
        check(setup)


@pytest.mark.slow
def test_a_page_and_a_saved_table_that_count_events(monkeypatch):
    setup = Setup(source="http", mechanism="uniform")
    check(setup)
    page, names, table = reading_routes.page_of_stream, reading_routes.statistics, reading_routes.release_page
    feeds = []

    def counting_page(service, stream, may_see):
        return page(service, stream, may_see) + str(stream.feed.totals.accepted)

    def names_of(mechanism, feed):
        feeds.append(feed)
        return names(mechanism, feed)

    def counting_table(*asked):
        return table(*asked) + (b"%d" % feeds[-1].totals.accepted if asked[-1] == "long" else b"")

    with monkeypatch.context() as patched:
        patched.setattr(reading_routes, "page_of_stream", counting_page)
        with pytest.raises(WorldsDiffer, match=r"GET /v1/streams/city/guarantee\.html"):
            check(setup)
    monkeypatch.setattr(reading_routes, "statistics", names_of)
    monkeypatch.setattr(reading_routes, "release_page", counting_table)
    with pytest.raises(WorldsDiffer, match=r"GET /v1/streams/city/releases\?format=csv&layout=long"):
        check(setup)


def test_a_store_that_keeps_positions(monkeypatch):
    setup = Setup(mechanism="uniform")
    check(setup)
    write = WrittenRows.steps

    def keeping(written, rows, commits):
        def change(query, *values):
            if query.startswith("INSERT INTO step"):
                return plain(query.replace(")", ", ?)"), *values, json.dumps(positions[values[0]]))
            return plain(query, *values)

        plain, positions = written._change, {commit.step: commit.position for commit in commits}
        if rows[0].step == 0:
            plain("ALTER TABLE step ADD COLUMN position TEXT")
        with monkeypatch.context() as patched:
            patched.setattr(written, "_change", change)
            return write(written, rows, commits)

    monkeypatch.setattr(WrittenRows, "steps", keeping)
    with pytest.raises(WorldsDiffer, match=r'store store.db, step, line \d+\n.*"at'):
        check(setup)


def test_a_frame_in_which_the_latest_time_closes_steps(monkeypatch):
    setup = Setup(source="frame", mechanism="uniform", person="is early and late")
    check(setup)

    def hasty(source, reader):
        latest = EARLIEST
        for events in frame_events._events(source._frame, reader):
            latest = max(latest, int(events.time.max(initial=EARLIEST)))
            yield EventBatch(events, None, latest)
        yield EventBatch(Events.none(), None, FOREVER)

    monkeypatch.setattr(frame_events.FrameEvents, "_looked_through", hasty)
    with pytest.raises(WorldsDiffer, match=r"step \d+ .*sealed counts are \d+ apart"):
        check(setup)
