"""People of slots from the source to the release: slots are what is published, and the window is counted in them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner
from command_words import with_last
from visits_of_days import FRAME, NAMES, ROWS, START, UNTIL, written

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stream_spec import StreamSpec

PEOPLE = [[1, 1], [1, 0], [0, 1]]
STREAM = {
    "epsilon": 1,
    "window": "168h",
    "step": "1h",
    "start": START,
    "until": UNTIL,
    "user": "user",
    "bins": ["start", "help"],
    "statistic": "people/1d",
    "mechanism": "uniform",
}
EXACT = {"filter": "none", "parameters": {"noise": ev.noise.Zero()}}


@pytest.fixture
def source(tmp_path):
    return written(tmp_path)


def test_a_frame_and_a_file_are_counted_by_days(source):
    for given in (FRAME, source):
        released = ev.publish(given, **STREAM, **EXACT)
        table = released.to_arrow()
        assert table["value"].to_pylist() == [value for row in PEOPLE for value in row]
        assert [str(start)[:10] for start in table["start"].to_pylist()[::2]] == [
            "2026-01-01",
            "2026-01-02",
            "2026-01-03",
        ]
        assert set(table["scale"].to_pylist()) == {2 * 8}  # two bins change at eight days
    told = str(released.guarantee)
    assert "inside any 8 consecutive steps" in told
    assert "A step of these releases is 1 day. What somebody did may be added or removed in any hour of it." in told
    assert "Each person counts once in a bin of 1 day, and in one bin only: the first." in told


def test_with_one_bin_a_person_changes_a_day_by_one():
    spec = StreamSpec(**STREAM | {"bins": ["site"]})
    assert (spec.build_mechanism().sensitivity, spec.build_mechanism().window) == (1, 8)
    assert (spec.step, spec.window, spec.timeline().iso(1)) == ("1d", 8, "2026-01-02T00:00:00+00:00")
    assert replace(spec, start="2026-01-02") == StreamSpec(**STREAM | {"bins": ["site"], "start": "2026-01-02"})
    assert StreamSpec(**STREAM | {"keep": "10d"}).keep == 10


def test_a_pipe_counts_them_through_the_tallies_that_a_store_keeps():
    spec, kept = StreamSpec(**STREAM), []
    feed, again = EventFeed(None, **spec.counting()), EventFeed(None, **spec.counting())
    feed.begin(Resume(0, None, bytes(16), [], lambda tallies, _: kept.extend(tallies) or True))
    for row in reversed(ROWS):
        feed.take(EventBatch(feed.reader.read([dict(zip(NAMES, row, strict=True))]), None, 0))
    again.begin(Resume(0, None, bytes(16), kept))
    again.take(EventBatch(again.reader.read([]), None, again.timeline.end(2)))
    assert [step.counts.tolist() for step in again.closed()] == PEOPLE


def called(source, *more, statistic="people/1d"):
    words = ["publish", source, "--epsilon", 1, "--window", "168h", "--step", "1h", "--start", START]
    words += ["--user", "user", "--bins", source.with_name("bins.txt"), "--mechanism", "uniform"]
    words += ["--store", source.with_name("store.db"), "--out", source.with_name("out.jsonl")]
    return CliRunner().invoke(main, with_last(*words, "--statistic", statistic, *more))


def test_the_command_publishes_them_and_a_store_keeps_to_slot_and_step(source):
    for until, number in (("2026-01-03", 2), ("2026-01-04", 3), ("2026-01-04", 3)):
        done = called(source, "--until", until)
        assert done.exit_code == 0, done.output
        lines = [json.loads(line) for line in source.with_name("out.jsonl").read_text().splitlines()]
        assert [line["start"][:10] for line in lines] == ["2026-01-01", "2026-01-02", "2026-01-03"][:number]
    other = called(source, "--until", "2026-01-05", "--new-epoch", statistic="people/2d")
    assert other.exit_code == 2
    assert "steps.statistic (people/1d/1h before, people/2d/1h now)" in other.stderr
    assert CliRunner().invoke(main, ["ledger", str(source.with_name("store.db"))]).exit_code == 0


def test_an_end_inside_a_slot_is_refused(source):
    """Or the releases would have what happened behind it."""
    done = called(source, "--until", "2026-01-03T12:00")
    assert done.exit_code == 2
    assert "lies inside a slot of people/1d" in done.stderr
    assert "end at 2026-01-04T00:00:00+00:00" in done.stderr


def test_the_page_says_in_how_many_bins_somebody_counts(source):
    assert called(source, "--until", "2026-01-02").exit_code == 0
    page = source.with_name("page.html")
    assert CliRunner().invoke(main, ["guarantee", str(source.with_name("store.db")), "--out", str(page)]).exit_code == 0
    assert "each person counts once in a bin of 1 day, and in one bin only: the first" in page.read_text()
    assert "In a step one person changes the numbers of different people by at most 2, over all" in page.read_text()


def test_hours_and_days_share_an_account(source):
    """A day is charged from its first hour on, so 7 days meet 8 of them, and 169 hours."""
    account = source.with_name("visitors.account")
    words = ["account", "create", account, "--population", "visitors", "--epsilon", "1", "--window", "7d"]
    assert CliRunner().invoke(main, [*map(str, words)]).exit_code == 0
    shared = ("--account", account, "--population", "visitors", "--until", "2026-01-04")
    for part, statistic, window, code in ((0.6, "events", 169, 0), (0.4, "people/1d", 168, 0), (0.1, "people", 169, 3)):
        places = [source.with_name(f"{part}.db"), source.with_name(f"{part}.jsonl")]
        told = ["--epsilon", part, "--window", window, "--store", places[0], "--out", places[1]]
        done = called(source, *told, *shared, statistic=statistic)
        assert done.exit_code == code, done.output
    shown = CliRunner().invoke(main, ["account", "show", str(account), "--json"])
    assert shown.exit_code == 0, shown.output
    assert json.loads(shown.stdout)["worst"] == 1


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": None}, "statistic: people/1d need a person; name what holds the person, as user"),
        ({"statistic": "people/90min"}, "90min is no whole number of steps of 1h"),
        ({"statistic": "people/1h"}, "or only one"),
        ({"statistic": "people/day"}, "is no duration"),
        ({"cap": "2/7d"}, "cap: people/1d cannot be published with it"),
        ({"cap": "9/7d"}, "cap: people/1d cannot be published with it"),
        ({"max_per_step": 2, "levels": {}}, "people/1d in several bins do not add up"),
        ({"queries": [ev.Query(2, 1)], "queries_epsilon": 0.5}, "people/1d cannot be published with it"),
    ],
)
def test_what_does_not_go_together_is_refused(change, says):
    given = {name: value for name, value in (STREAM | change).items() if value is not None}
    with pytest.raises(InputError, match=says):
        StreamSpec(**given)


def test_a_publisher_needs_to_be_told_the_step(source):
    own = {"start": START, "until": UNTIL, "user": "user"}
    mechanism = ev.Uniform(1, 8, ["start", "help"], sensitivity=2, noise=ev.noise.Zero())
    with pytest.raises(InputError, match="people/1d needs the length of a step and a window in such steps"):
        ev.Publisher(source, mechanism, step="1h", statistic="people/1d", **own)
    with ev.Publisher(
        source, mechanism, None, [source.with_name("o.jsonl")], step="1d", statistic="people/1d/1h", **own
    ) as it:
        it.run()
    assert [json.loads(line)["values"] for line in source.with_name("o.jsonl").read_text().splitlines()] == PEOPLE
