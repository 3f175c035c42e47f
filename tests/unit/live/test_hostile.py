"""Against whoever wants a window over epsilon, a lost step or a crash."""

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner
from live_stores import SETTING, a_commit, filled

from eventide.cli import main
from eventide.errors import InputError, StoreError
from eventide.events.files.lines import CsvLineReader
from eventide.events.reader import Columns, Counters, EventReader, Events
from eventide.events.timeline import Timeline
from eventide.live.feeds.base import ClosedStep, Resume
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.open_feed import open_feed
from eventide.live.publisher.publisher import Publisher
from eventide.live.sinks.base import Sink
from eventide.live.sinks.open_sink import open_sink
from eventide.live.sinks.webhook import Webhook
from eventide.live.stores.open_store import open_store
from eventide.live.stores.rows import CheckedRows
from eventide.live.stores.verification import verify
from eventide.mechanisms.uniform import Uniform
from eventide.releases.files import open_releases

LONG, SHORT = SETTING._replace(window=100), SETTING._replace(window=10)

# No window over epsilon after a restored backup, whatever windows the epochs had.


def measured_from(path, first_step_of_each):
    """Where a store measures that was begun with a long window, then asked to go on with a short one and restored."""
    filled(path, steps=50, setting=LONG).close()
    for options in first_step_of_each:
        with closing(open_store(path)) as store:
            standing = store.begin(SHORT, **options)
            if "after_restore" in options:
                standing = store.after_restore(standing.next_step)
    return standing.measured_from


@pytest.mark.parametrize(
    "lives",
    [
        [{"new_epoch": True, "after_restore": True}],
        [{"new_epoch": True}, {"after_restore": True}],
        [{"new_epoch": True, "after_restore": True}, {"after_restore": True}],
    ],
)
def test_a_restored_store_waits_for_the_longest_window_of_what_was_lost(tmp_path, lives):
    assert measured_from(tmp_path / "city.db", lives) == 149


def test_an_epoch_after_a_restored_one_waits_as_long(tmp_path):
    path = tmp_path / "city.db"
    assert measured_from(path, [{"new_epoch": True, "after_restore": True}]) == 149
    with closing(open_store(path)) as store:
        assert store.begin(SHORT._replace(people="drivers"), new_epoch=True).measured_from == 149
        early = [entry._replace(step=80) for entry in a_commit(80).entries]
        epochs = store.epochs()
        later = [*epochs[:-1], epochs[-1]._replace(measured_from=51)]
        assert "may measure from step 149" in verify(early, later, 90).problems[0]


def test_a_short_window_long_after_a_long_one_waits_only_for_itself(tmp_path):
    path = tmp_path / "city.db"
    filled(path, steps=3, setting=LONG).close()
    with closing(open_store(path)) as store:
        begins = store.begin(SHORT, new_epoch=True).measured_from
        for step in range(3, begins + 5):
            store.commit(a_commit(step, charge=100 if step >= begins else 0))
    with closing(open_store(path)) as store:
        assert store.after_restore(store.begin(SHORT, after_restore=True).next_step).measured_from == begins + 14


# Whoever reads beside a writer sees no damage.


def test_a_commit_between_two_reads_is_no_damage(tmp_path, monkeypatch):
    with closing(filled(tmp_path / "city.db")) as writer, closing(open_store(tmp_path / "city.db")) as reader:
        rows, asked = reader._rows, iter(range(5, 99))
        one = CheckedRows.one

        def one_then_a_commit(self, query, *values):
            found = one(self, query, *values)
            writer.commit(a_commit(next(asked)))
            return found

        before = writer._rows
        monkeypatch.setattr(rows, "one", one_then_a_commit.__get__(rows))
        rows.check_head()
        assert before.head().step > 4


# Nothing is lost on the way to a sink that is slow.


class SlowOnce(Sink):
    name = "slow"

    def __init__(self):
        self.steps = []

    def send(self, step, release):
        self.steps.append(step)
        if step == 5:
            time.sleep(0.3)


def test_without_a_store_a_slow_sink_still_gets_every_step():
    sink = SlowOnce()
    mechanism = Uniform(epsilon=1, window=2, bins=["north", "south"])
    with Publisher(MemoryFeed([[1, 2]] * 500), mechanism, None, [sink]) as publisher:
        publisher.run()
    assert sink.steps == list(range(500))


# The steps of a complete file are those of the clock, whoever is in it.


@pytest.mark.parametrize("rows", [[], ["2024-01-01T01:10,a,n"], ["2023-01-01,a,n"]])
def test_one_event_more_or_less_changes_no_step(tmp_path, rows):
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")
    feed = open_feed(path, ["n"], step="1h", start="2024-01-01", until="2024-01-01T06:00", user="user")
    with closing(feed):
        closed = [step.index for step in feed.steps(Resume(0, None, bytes(16), [])) if step]
    assert closed == list(range(6))


def test_a_later_end_closes_the_steps_up_to_it(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("timestamp,user,bin\n2024-01-01T01:10,a,n\n")
    position, following = None, 0
    for until, steps in (("2024-01-01T02:00", [0, 1]), ("2024-01-01T05:00", [2, 3, 4])):
        feed = open_feed(path, ["n"], step="1h", start="2024-01-01", until=until, user="user")
        with closing(feed):
            closed = [step for step in feed.steps(Resume(following, position, bytes(16), [])) if step]
        assert [step.index for step in closed] == steps
        position, following = closed[-1].position, closed[-1].index + 1


@pytest.mark.parametrize("until", ["2024-01-01", "2023-12-31T12:00"])
def test_an_end_that_is_not_after_the_start_is_refused(until):
    with pytest.raises(InputError, match="is not after the start"):
        EventFeed(None, Timeline("2024-01-01", "1h"), EventReader(["n"]), until=until)


# A line stands for itself, whatever bytes are in it.


@pytest.mark.parametrize(
    "bad", [b"\xff", b"a,\xff", b"2024-01-01,\xff,n,more", b"\xef\xbb\xbf\xff\r\xff", b'"\xff"x\r,']
)
@pytest.mark.parametrize("place", [0, 3, 6])
def test_a_line_that_is_neither_a_row_nor_text_takes_no_other_with_it(bad, place):
    good = [b"2024-01-01T00:%02d,u%d\xfe,n" % (row, row) for row in range(6)]
    lines = [*good[:place], bad, *good[place:]]
    rows, unreadable, _ = CsvLineReader(b"time,user,bin", "x").rows(b"\n".join(lines) + b"\n", ["user"])
    users = rows.column("user").to_pylist()
    assert [user for user in users if user.startswith(b"u")] == [b"u%d\xfe" % row for row in range(6)]
    assert unreadable >= 1


# Bad addresses, paths and lengths are refused in a sentence.


@pytest.mark.parametrize(
    "url",
    [
        *("http://h:99999/", "http://h:x/", "http://h:0/", "http://[::1", "http://h/\xfc", "http://h/a b", "http://"),
        *(f"http://{'a' * 70}.b/", "http://a..b/", "ftp://h/", "http://h/a\nb"),
    ],
)
def test_an_address_that_cannot_be_posted_to_is_refused(url):
    with pytest.raises(InputError, match="a webhook is an address"):
        Webhook(url)


@pytest.mark.parametrize("url", ["http://[::1]:80/x", "https://example.org/a%20b?c=d", "http://10.0.0.1"])
def test_a_good_address_is_taken(url):
    assert Webhook(url).name.startswith("webhook ")


def test_a_circle_of_links_is_refused(tmp_path):
    for name in ("city.db", "out.jsonl"):
        (tmp_path / name).symlink_to(tmp_path / f"b {name}")
        (tmp_path / f"b {name}").symlink_to(tmp_path / name)
    with pytest.raises(StoreError, match="cannot be used"):
        open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="cannot write"):
        open_sink(tmp_path / "out.jsonl", ["n"]).open()


def test_a_file_whose_name_is_no_text_has_a_name_as_a_sink(tmp_path):
    sink = open_sink(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.jsonl"), ["n"])
    sink.name.encode()
    with closing(filled(tmp_path / "city.db")) as store:
        store.deliver(sink.name, 3)
        assert store.delivered(sink.name) == 3


@pytest.mark.parametrize("step", [None, "1h"])
def test_a_name_that_is_too_long_is_no_file(tmp_path, step):
    with pytest.raises(InputError, match="is not a file"):
        open_feed(tmp_path / ("x" * 300 + ".csv"), ["n"], step=step)


def test_a_step_of_a_million_years_is_refused():
    with pytest.raises(InputError, match="a thousand years"):
        Timeline("2024-01-01", "400000000d")


def test_an_export_never_replaces_its_store(tmp_path):
    path = tmp_path / "city.csv"
    with Publisher(MemoryFeed([[1, 2]]), Uniform(epsilon=1, window=2, bins=["north", "south"]), path) as publisher:
        publisher.run()
    before = path.read_bytes()
    done = CliRunner().invoke(main, ["export", str(path), "--out", str(path)])
    assert done.exit_code == 2
    assert "is the file that is read" in done.output
    assert path.read_bytes() == before


@pytest.mark.parametrize("source", ["-", "nats://127.0.0.1:4222/EVENTS"])
def test_an_output_that_is_there_may_be_gone_on_with_whatever_the_source(tmp_path, source):
    out = tmp_path / "out.jsonl"
    out.touch()
    with open_releases(str(out), ["n"], source=Path(source)) as file:
        assert file.path == out


# Nothing raw is shown or left.


def test_no_repr_shows_what_is_raw():
    columns = Columns("time", "user", "bin")
    reader = EventReader(["n"], columns)
    reader.key = bytes(16)
    events = reader.read([{"time": 4242, "user": "alice", "bin": "n"}])
    assert isinstance(events, Events)
    shown = [events, ClosedStep(1, [4242], None), Resume(0, None, b"4242", [(1, b"4242")]), Counters(accepted=4242)]
    assert not any("4242" in repr(one) or "alice" in repr(one) for one in shown)


def test_a_missing_header_shows_nobody():
    with pytest.raises(InputError, match="has no column 'user'") as refusal:
        CsvLineReader(b"2024-01-01,alice,north", "x").rows(b"2024-01-01,bob,north\n", ["user"])
    assert "alice" not in str(refusal.value)


def test_events_kept_are_gone_from_the_log_with_the_first_commit_of_a_life(tmp_path):
    path = tmp_path / "city.db"
    with closing(filled(path)) as store:
        store.keep([(5, b"alice was here")])
    with closing(open_store(path)) as store:
        store.begin(SETTING)
        store.commit(a_commit(5))
        files = [file for file in tmp_path.iterdir() if file.name.startswith("city.db")]
        assert not any(b"alice was here" in file.read_bytes() for file in files)


def test_a_full_disk_under_the_lock_is_said(tmp_path, monkeypatch):
    with closing(filled(tmp_path / "city.db")) as store:

        def full(*_):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(StoreError, match=r"city\.db\.lock cannot be written: No space left"):
            store.commit(a_commit(5))
        assert store.next_step() == 6  # it was committed before


# Damage that no digest covers.


@pytest.mark.parametrize(
    "statement",
    [
        *("UPDATE head SET step = x'00'", "UPDATE head SET fence = 'x'", "UPDATE delivery SET step = 'x'"),
        *("UPDATE epoch SET first_step = 'x'", "DELETE FROM head"),
    ],
)
def test_a_number_that_is_none_is_damage(tmp_path, statement):
    path = tmp_path / "city.db"
    with closing(filled(path)) as store:
        store.deliver("x", 3)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(statement)
    with closing(open_store(path)) as store, pytest.raises(StoreError, match="damaged"):
        store.next_step() + store.delivered("x")


def test_text_that_sqlite_cannot_even_quote_is_damage(tmp_path):
    path = tmp_path / "city.db"
    filled(path).close()
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE kept", b"CRE\xccTE TABLE kept"))
    with pytest.raises(StoreError, match="damaged"):
        open_store(path).verify()


@pytest.mark.parametrize("change", [-1, -500, 1])
def test_a_store_of_another_length_is_refused(tmp_path, change):
    path = tmp_path / "city.db"
    filled(path).close()
    data = path.read_bytes()
    path.write_bytes(data[:change] if change < 0 else data + b"x")
    for read_only in (True, False):
        with pytest.raises(StoreError, match="damaged"):
            open_store(path, read_only=read_only)
