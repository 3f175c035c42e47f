"""People of a day beside hourly counts: one publication, one store and one ledger, from the source to the release."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import warnings
from contextlib import closing

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from command_words import with_last
from visits_of_days import BINS, FRAME, NAMES, ROWS, START, UNTIL, written

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import EventBatch
from eventide.live.stores.open_store import open_store
from eventide.live.stream_mechanism import told_of_part
from eventide.live.stream_spec import StreamSpec

PEOPLE = {23: [1, 1], 47: [1, 0], 71: [0, 1]}
STREAM = {
    "epsilon": 1,
    "window": 168,
    "step": "1h",
    "start": START,
    "until": UNTIL,
    "user": "user",
    "bins": BINS,
    "statistic": ["people/1d", "events"],
    "split": "events=0.75,people/1d=0.25",
    "mechanism": "uniform",
}
EXACT = {"filter": "none", "parameters": {"noise": ev.noise.Zero()}}


@pytest.fixture
def source(tmp_path):
    return written(tmp_path)


def words(source, *more, until=UNTIL):
    told = ["publish", source, "--epsilon", 1, "--window", 168, "--step", "1h", "--start", START, "--until", until]
    told += ["--user", "user", "--bins", source.with_name("bins.txt"), "--mechanism", "uniform"]
    told += ["--statistic", "events", "--statistic", "people/1d", "--split", STREAM["split"]]
    return [*map(str, [*told, "--store", source.with_name("store.db"), *more])]


def called(*told):
    return CliRunner().invoke(main, with_last(*told))


def slots_in(table):
    """The numbers of people/1d that a long table has, by step, of all bins that have any."""
    found = {}
    for row in table:
        if row["statistic"] == "people/1d" and row["value"] not in (None, ""):
            found.setdefault(int(row["step"]), []).append(float(row["value"]))
    return found


def test_a_frame_and_a_file_have_people_of_days_beside_events_of_hours(source):
    for given in (FRAME, source):
        released = ev.publish(given, **STREAM, **EXACT)
        table = released.to_arrow().to_pylist()
        assert slots_in(table) == PEOPLE
        events = {(row["step"], row["bin"]): row["value"] for row in table if row["statistic"] == "events"}
        assert sum(events.values()) == len(ROWS)
        assert (events[0, "help"], events[5, "start"], len(table)) == (1, 1, 72 * 2 * 2)
        scales = {row["statistic"]: row["scale"] for row in table if row["step"] == 23}
        assert scales == pytest.approx({"events": 168 / 0.75, "people/1d": 2 * 8 / 0.25})
    told = str(released.guarantee)
    assert "inside any 168 consecutive steps (7 days) are hidden by w-event differential privacy with epsilon 1" in told
    assert "This covers the releases of events, people/1d together" in told
    assert "people/1d come with the last step of 1 day, and are charged from its first step on" in told
    assert "In 1 day one person changes the numbers of people/1d by at most 2, over all bins together" in told


@pytest.mark.slow
def test_operators_are_told_what_the_limit_per_person_left_out_of_each(source):
    with pytest.warns(UserWarning, match="For operators only, .* left out more than a tenth of people/1d, so"):
        releases = ev.publish(FRAME, **STREAM)
    assert releases.operators_only.left_out_of_each == {"events": 0, "people/1d": 1 / 5}
    assert "(0.0% of events, 20.0% of people/1d)" in called(*words(source)).stderr
    with warnings.catch_warnings(action="error"):
        ev.publish(FRAME, **STREAM, zone="UTC", max_per_step=2)


@pytest.mark.slow
def test_a_picture_shows_the_statistic_that_is_asked_for():
    pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'eventide[plots]'").use("Agg")
    releases = ev.publish(FRAME, **STREAM, **EXACT, max_per_step=2)
    for statistic, says, numbers in (("people/1d", "people of a day", 3), (None, "events", 72)):
        figure = releases.plot(statistic=statistic)
        assert [axes.get_ylabel() for axes in figure.axes] == [says] * 2
        assert figure.get_suptitle().startswith(f"{says}: 72 steps")
        (line,) = figure.axes[0].get_lines()
        assert len(line.get_ydata()) == 2 * numbers
    assert [*releases.plot(statistic="people/1d").axes[1].get_lines()[0].get_ydata()] == [1, 1, 0, 0, 1, 1]  # help
    with pytest.raises(InputError, match="there is no statistic 'peeple/1d'; did you mean 'people/1d'"):
        releases.plot(statistic="peeple/1d")


def test_a_file_without_start_and_until_has_whole_days(source):
    open_ended = {name: value for name, value in STREAM.items() if name not in ("start", "until")}
    for given in (FRAME, source):
        table = ev.publish(given, **open_ended, **EXACT).to_arrow().to_pylist()
        assert slots_in(table) == PEOPLE
        assert str(table[0]["start"])[:16] == "2026-01-01 00:00"


def test_days_are_those_of_the_zone():
    """The clocks change on 29 March, which is a day of 23 hours."""
    moments = [f"2026-03-{day}T23:30" for day in (28, 29, 30)]
    frame = {"timestamp": moments, "user": ["anna"] * 3, "bin": ["site"] * 3}
    berlin = STREAM | {"zone": "Europe/Berlin", "start": "2026-03-28", "until": "2026-03-31", "bins": ["site"]}
    table = ev.publish(frame, **berlin, **EXACT).to_arrow().to_pylist()
    assert slots_in(table) == {23: [1], 46: [1], 70: [1]}
    assert [str(row["start"])[8:16] for row in table if row["step"] == 46] == ["29 23:00"] * 2


@pytest.mark.slow
def test_a_slot_that_goes_on_behind_the_end_is_published_when_it_is_over(source):
    """The steps until noon are there; what the day was until then is kept until the next run."""
    out = source.with_name("out.jsonl")
    for until, steps in (("2026-01-02T12:00", 36), ("2026-01-02T22:00", 46), (UNTIL, 72)):
        done = called(*words(source, "--out", out, until=until))
        assert done.exit_code == 0, done.output
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        assert len(lines) == steps
        known = [at for at, line in enumerate(lines) if line["statistics"]["people/1d"]["values"] != [None, None]]
        assert known == [at for at in PEOPLE if at < steps]
    assert (lines[0]["statistic"], lines[0]["statistics"]["people/1d"]["fresh"]) == ("events", False)
    verified = called("ledger", source.with_name("store.db"))
    assert verified.exit_code == 0, verified.output


def rows_of(chance):
    return [
        (f"2026-01-0{1 + step // 24}T{step % 24:02}:{minute:02}", f"user {chance.randrange(9)}", chance.choice(BINS))
        for step in range(60)
        for minute in range(chance.randrange(6))
    ]


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2])
def test_a_publisher_that_begins_anew_counts_as_one_that_never_stopped(tmp_path, most):
    rows = rows_of(random.Random(most))
    path = tmp_path / "visits.csv"
    path.write_text("\n".join([",".join(NAMES), *map(",".join, rows), ""]))
    spec = StreamSpec(**STREAM | {"max_per_step": most}, **EXACT)
    whole, parts = (open_store(tmp_path / f"{name}.db", for_tests=True) for name in ("whole", "parts"))
    key = None
    for store, ends in ((whole, [None]), (parts, [5, 23, 24, 40, 41, None])):
        for until in ends:
            if store is None:
                store = open_store(tmp_path / "parts.db", for_tests=True)
            with ev.Publisher(spec.feed(path), spec.build_mechanism(), store) as publisher:
                publisher._key = key = key or publisher._key  # both choose among a person's bins alike
                publisher.run(until)
            store = None
    one, other = (open_store(tmp_path / f"{name}.db", read_only=True) for name in ("whole", "parts"))
    assert [*one.releases(0)] == [*other.releases(0)]
    assert len([*one.releases(0)]) == 72
    one.close()
    other.close()


def test_they_are_the_people_that_days_alone_have():
    """By the same key, whatever the batches."""
    chance = random.Random(8)
    rows = rows_of(chance)
    beside = StreamSpec(**STREAM | {"max_per_step": 1})
    alone = StreamSpec(**STREAM | {"statistic": "people/1d", "split": {}})
    found = []
    for spec in (beside, alone):
        feed = EventFeed(None, **spec.counting())
        feed.begin(Resume(0, None, bytes(16), []))
        chance.shuffle(rows)
        for row in rows:
            feed.take(EventBatch(feed.reader.read([dict(zip(NAMES, row, strict=True))]), None, 0))
        feed.take(EventBatch(feed.reader.read([]), None, feed.timeline.end(71 if spec is beside else 2)))
        found.append([step.counts.tolist() for step in feed.closed()])
    assert [counts[2:] for counts in found[0][23::24]] == found[1]
    assert all(counts[2:] == [0, 0] for at, counts in enumerate(found[0]) if at % 24 < 23)


def test_a_pipe_keeps_the_people_of_the_open_slot_in_its_store():
    """What comes once is kept by the store: tallies of open steps, and people of closed ones until the day is over."""
    spec, kept = StreamSpec(**STREAM), []
    feed = EventFeed(None, **spec.counting())
    feed.begin(Resume(0, None, bytes(16), [], lambda tallies, _: kept.extend(tallies) or True))
    for row in ROWS:
        feed.take(EventBatch(feed.reader.read([dict(zip(NAMES, row, strict=True))]), None, 0))
    feed.take(EventBatch(feed.reader.read([]), None, feed.timeline.end(11)))
    first = [*feed.closed()]
    remembered = [step.kept for step in first if step.kept is not None]
    assert {last for last, _ in remembered} == {23}
    again = EventFeed(None, **spec.counting())
    waiting = [(step, data) for step, data in kept if step > 11]
    again.begin(Resume(12, None, bytes(16), [*remembered, *waiting]))
    again.take(EventBatch(again.reader.read([]), None, again.timeline.end(71)))
    later = [*again.closed()]
    assert {step.index: step.counts[2:].tolist() for step in later if step.counts[2:].any()} == PEOPLE
    assert later[11].kept is None  # the day is over


@pytest.mark.slow
def test_every_sink_and_export_has_them_at_the_last_steps_of_days(source):
    outs = [source.with_name(f"out.{ending}") for ending in ("csv", "jsonl", "parquet", "sqlite")]
    for out in (*outs, *outs):  # the second time it compares what is there
        done = called(*words(source, "--out", out))
        assert done.exit_code == 0, done.output
    table = list(csv.DictReader(outs[0].read_text().splitlines()))
    assert list(slots_in(table)) == [23, 47, 71]
    lines = [json.loads(line) for line in outs[1].read_text().splitlines()]
    wanted = slots_in(table)
    assert {at: lines[at]["statistics"]["people/1d"]["values"] for at in wanted} == wanted
    assert slots_in(pq.read_table(outs[2]).to_pylist()) == wanted
    with closing(sqlite3.connect(outs[3])) as tables:
        asked = "SELECT step, group_concat(bin), sum(value) FROM statistics WHERE value IS NOT NULL GROUP BY step"
        found = {step: total for step, _, total in tables.execute(asked)}
    assert found == {at: sum(each) for at, each in wanted.items()}
    store = source.with_name("store.db")
    for name in ("all.csv", "all.parquet"):
        assert called("export", store, "--out", source.with_name(name)).exit_code == 0
    assert slots_in(csv.DictReader(source.with_name("all.csv").read_text().splitlines())) == wanted
    assert called("export", store, "--check", outs[0]).exit_code == 0


@pytest.mark.slow
def test_an_epoch_repeats_no_day_and_measures_none_that_it_did_not_charge(source):
    """A window of 20 hours: the new epoch measures from step 43 on, and the second day, which began before, is not."""
    out, short = source.with_name("out.jsonl"), ["--window", 20]
    assert called(*words(source, "--out", out, *short, until="2026-01-02T00:00")).exit_code == 0
    changed = ["--out", out, *short, "--split", "events=0.5,people/1d=0.5"]
    refused = called(*words(source, *changed))
    assert refused.exit_code == 2
    assert "statistics.events.part (3/4 before, 1/2 now)" in refused.stderr
    assert "statistics.people/1d/1h.part (1/4 before, 1/2 now)" in refused.stderr
    done = called(*words(source, *changed, "--new-epoch"))
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert next(at for at, line in enumerate(lines) if at > 23 and line["fresh"]) == 43
    known = [at for at, line in enumerate(lines) if line["statistics"]["people/1d"]["values"] != [None, None]]
    assert known == [23, 71]
    assert called("ledger", source.with_name("store.db")).exit_code == 0


@pytest.mark.slow
def test_an_account_holds_both_in_one_part(source):
    account = source.with_name("visitors.account")
    made = called("account", "create", account, "--population", "visitors", "--epsilon", 1, "--window", "167h")
    assert made.exit_code == 0, made.output
    shared = ("--account", account, "--population", "visitors", "--out", source.with_name("out.jsonl"))
    assert called(*words(source, *shared)).exit_code == 0
    shown = called("account", "show", account, "--json")
    assert json.loads(shown.stdout)["worst"] == 1


@pytest.mark.slow
@pytest.mark.parametrize("point", ["inside-transaction:3", "half-line:24", "after-commit:6", "after-draw:48"])
def test_a_killed_publisher_goes_on_and_says_what_it_would_have_said(source, point):
    out = source.with_name("out.csv")
    program = "from eventide.live.publisher import publisher; publisher.TOGETHER = 5; "  # deaths come inside of days
    program += "from eventide.cli import main; main()"
    environment = os.environ | {"EVENTIDE_FAULT": point}
    told = words(source, "--out", out)
    killed = subprocess.run([sys.executable, "-c", program, *told], env=environment, check=False)
    assert killed.returncode == -signal.SIGKILL
    before = out.read_text().rpartition("\n")[0]
    done = called(*told)
    assert done.exit_code == 0, done.output
    assert out.read_text().startswith(before)
    assert called("export", source.with_name("store.db"), "--check", out).exit_code == 0
    assert list(slots_in(csv.DictReader(out.read_text().splitlines()))) == [23, 47, 71]
    assert called("ledger", source.with_name("store.db")).exit_code == 0


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"user": None}, "need a person; name what holds the person, as user"),
        ({"statistic": ["events", "people/90min"], "split": {}}, "90min is no whole number of steps of 1h"),
        (
            {"statistic": ["people/2d", "people/1d"], "split": {}},
            "all these statistics are of slots; name one",
        ),
        (
            {"cap": "2/7d"},
            "cap: people of slots beside other statistics cannot have one; leave it out, or give them a store",
        ),
        ({"levels": {}}, "events, people/1d cannot be published with it"),
        ({"split": "events=1,people=1"}, "it must give a part to each of events, people/1d"),
        ({"mechanism": "pegasus"}, "pegasus cannot measure events, people/1d"),
    ],
)
def test_what_does_not_go_together_is_refused(change, says):
    given = {name: value for name, value in (STREAM | change).items() if value is not None}
    with pytest.raises(InputError, match=says):
        StreamSpec(**given)


def test_seasons_are_counted_in_slots():
    told = STREAM | {"mechanism": "tide", "seasons": (24, 168)}
    spec = StreamSpec(**told)
    parts = [told_of_part(spec, part)["parameters"]["seasons"] for part in spec.made_statistic().parts]
    assert parts == [[24, 168], [7]]


@pytest.mark.slow
def test_the_page_says_what_is_published_and_how_much_counts(source):
    done = called(*words(source, "--out", source.with_name("out.jsonl")))
    assert done.exit_code == 0, done.output
    page = source.with_name("page.html")
    assert called("guarantee", source.with_name("store.db"), "--out", page).exit_code == 0
    told = page.read_text()
    assert "noisy counts of every hour, and numbers of different people of every day, in 2 bins" in told
    assert "in a step one person adds at most 1 to the events that count, over all bins together" in told
    assert "who was in which bin: until the slot of 1 day is over" in told
