"""Statistics from the source to the release: the promise, the paths that have them, and those that refuse."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from command_words import with_last

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.reader import Columns, EventReader
from eventide.events.statistic_names import parse_statistic
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher.setup import setting_of
from eventide.live.sources.base import EventBatch
from eventide.live.stores.epochs import setting_text
from eventide.live.stream_spec import StreamSpec

START, UNTIL = "2026-01-01T00:00:00+00:00", "2026-01-01T03:00:00+00:00"
ROWS = [  # anna is in two bins of hour 0, and often in one of them; ben in one bin of hours 0 and 2
    *(("2026-01-01T00:10", "anna", "start"),) * 5,
    ("2026-01-01T00:20", "anna", "help"),
    ("2026-01-01T00:30", "ben", "start"),
    *(("2026-01-01T02:30", "ben", "help"),) * 3,
]
PEOPLE = [[2, 1], [0, 0], [0, 1]]
FRAME = dict(zip(("timestamp", "user", "bin"), map(list, zip(*ROWS, strict=True)), strict=True))
STREAM = {
    "epsilon": 1,
    "window": 2,
    "step": "1h",
    "start": START,
    "until": UNTIL,
    "user": "user",
    "bins": ["start", "help"],
    "statistic": "people",
    "max_per_step": 2,
    "mechanism": "uniform",
}
EXACT = {"filter": "none", "parameters": {"noise": ev.noise.Zero()}}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "visits.csv"
    path.write_text("\n".join(["timestamp,user,bin", *map(",".join, ROWS), ""]))
    return path


def values(releases):
    return [line["values"] for line in map(json.loads, releases)]


def called(source, *more, statistic="people"):
    words = ["publish", source, "--epsilon", 1, "--window", 2, "--step", "1h", "--start", START, "--until", UNTIL]
    words += ["--user", "user", "--bins", source.with_name("bins.txt"), "--mechanism", "uniform"]
    source.with_name("bins.txt").write_text("start\nhelp\n")
    return CliRunner().invoke(main, with_last(*words, "--statistic", statistic, *more))


def test_a_frame_and_a_file_are_counted_by_people(source):
    for given in (FRAME, source):
        released = ev.publish(given, **STREAM, **EXACT).to_arrow()
        assert released["value"].to_pylist() == [value for row in PEOPLE for value in row]


def test_a_publisher_counts_people_of_a_path(source, tmp_path):
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["start", "help"], sensitivity=2, noise=ev.noise.Zero())
    own = {"step": "1h", "start": START, "until": UNTIL, "user": "user", "statistic": "people"}
    with ev.Publisher(source, mechanism, None, [tmp_path / "out.jsonl"], **own) as publisher:
        publisher.run()
    assert values((tmp_path / "out.jsonl").read_text().splitlines()) == PEOPLE


def test_a_pipe_counts_people_through_the_tallies_that_a_store_keeps():
    reader = EventReader(["start", "help"], Columns(user="user"))
    feed = EventFeed(None, Timeline(START, "1h"), reader, max_per_step=2, statistic=parse_statistic("people"))
    kept = []
    key = bytes(16)
    feed.begin(Resume(0, None, key, [], lambda tallies, _: kept.extend(tallies) or True))
    for row in ROWS:  # one by one, each kept before it counts
        feed.take(EventBatch(reader.read([dict(zip(FRAME, row, strict=True))]), None, 0))
    again = EventFeed(None, Timeline(START, "1h"), reader, max_per_step=2, statistic=parse_statistic("people"))
    again.begin(Resume(0, None, key, kept))
    again.take(EventBatch(reader.read([]), None, feed.timeline.end(2)))
    assert [step.counts.tolist() for step in again.closed()] == PEOPLE


def test_the_guarantee_says_what_is_counted():
    told = str(ev.publish(FRAME, **STREAM).guarantee)
    assert "In a step one person adds at most 2 to the numbers of different people, over all bins together." in told
    assert "Each person counts once in a bin of a step, however often they come, and in at most 2 bins." in told
    capped = str(ev.publish(FRAME, **STREAM | {"max_per_step": 1, "window": 6, "cap": "1/6h"}).guarantee)
    assert "Of each person only the first bin of a step counts in every block of 6 hours" in capped
    assert "counts once" not in str(ev.publish(FRAME, **STREAM | {"statistic": "events"}).guarantee)


def test_the_command_publishes_people(source, tmp_path):
    done = called(source, "--max-per-step", 2, "--store", tmp_path / "store.db", "--out", tmp_path / "out.jsonl")
    assert done.exit_code == 0, done.output
    assert "different people" in done.stderr
    assert len((tmp_path / "out.jsonl").read_text().splitlines()) == 3


def test_totals_of_people_who_may_be_in_several_bins_are_refused(source, tmp_path):
    (tmp_path / "site.toml").write_text('site = ["start", "help"]\n')
    for most, code in ((2, 2), (1, 0)):
        store = tmp_path / f"store {most}.db"
        out = tmp_path / f"out {most}.jsonl"
        assert called(source, "--max-per-step", most, "--store", store, "--out", out).exit_code == 0
        words = ["export", store, "--out", tmp_path / f"site {most}.csv", "--totals", tmp_path / "site.toml"]
        done = CliRunner().invoke(main, [*map(str, words)])
        assert done.exit_code == code, done.output
        assert ("people in several bins do not add up" in done.stderr) == bool(code)
        assert CliRunner().invoke(main, ["ledger", str(store)]).exit_code == 0


def test_a_store_keeps_to_its_statistic(source, tmp_path):
    bounds = ("--max-per-step", 2, "--store", tmp_path / "store.db", "--out", tmp_path / "out.jsonl")
    assert called(source, *bounds).exit_code == 0
    assert called(source, *bounds).exit_code == 0
    other = called(source, *bounds, "--new-epoch", statistic="events")
    assert other.exit_code == 2
    assert "steps.statistic (people before" in other.stderr


def test_a_stored_setting_without_a_statistic_is_as_it_was():
    spec = StreamSpec(**STREAM | {"statistic": "events"})
    assert "statistic" not in setting_text(setting_of(spec.build_mechanism(), EventFeed(None, **spec.counting()), "us"))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": None, "max_per_step": 1}, "statistic: people need a person; name what holds the person, as user"),
        ({"step": None, "start": None, "until": None}, "it is made of events; give the length of a step, as step"),
        ({"levels": {}}, "people in several bins do not add up; leave levels out, or max_per_step"),
        (
            {"queries": [ev.Query(2, 1)], "queries_epsilon": 0.5},
            "people cannot be published with it; leave one of them out",
        ),
        ({"statistic": "mean:fare"}, "mean:fare needs the range of fare"),
        ({"statistic": "median"}, "is no statistic; choose events, people, people/DURATION, sum:COLUMN"),
        ({"statistic": ["people/2d", "people/1d"]}, "all these statistics are of slots"),
    ],
)
def test_what_does_not_go_together_is_refused(change, says):
    given = {name: value for name, value in (STREAM | change).items() if value is not None}
    with pytest.raises(InputError, match=says):
        StreamSpec(**given)


def test_histograms_of_the_last_steps_are_not_of_people():
    windows = {"mechanism": "rg", "parameters": {"span": 2}}
    for statistic in ("people", "people/3h"):
        with pytest.raises(InputError, match="numbers of different people cannot be added up over steps"):
            ev.publish(FRAME, **STREAM | windows | {"statistic": statistic})
    ev.publish(FRAME, **STREAM | windows | {"statistic": "events"})


def test_people_in_one_bin_add_up_to_levels():
    released = ev.publish(FRAME, **STREAM | {"max_per_step": 1, "levels": {}})
    assert "different people" in str(released.guarantee)


def test_a_feed_refuses_what_it_cannot_count():
    reader = EventReader(["start"], Columns(user=None))
    with pytest.raises(InputError, match="the statistic people needs people; name the column of users"):
        EventFeed(None, Timeline(START, "1h"), reader, statistic=parse_statistic("people"))
