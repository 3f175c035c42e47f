"""Rows that mostly cannot be read stop the first run of a store: nothing is published, charged or left in the way."""

from __future__ import annotations

import json
import os
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from command_words import with_last

import eventide as ev
from eventide.audit.two_worlds.view import REFUSED, PublicView
from eventide.cli import main
from eventide.errors import StateError
from eventide.events.clock import ManualClock
from eventide.events.reader import Columns, EventReader
from eventide.events.rows import ParsedRows, unparsed_lines
from eventide.events.timeline import Timeline
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.first_rows import ENOUGH, MostRowsRefused
from eventide.live.sources import standard_input
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.standard_input import StandardInput
from eventide.live.stores.open_store import open_store

BINS = ["home", "search", "article"]
HOURS = ("--start", "2024-03-30", "--until", "2024-03-30T03:00")
COMMAND = ("--epsilon", "1e6", "--window", "1", "--mechanism", "uniform", "--step", "1h", "--user", "user", *HOURS)
STORED = ("--store", "store.db", "--bins", "bins.txt")
START = 1_711_756_800_000_000  # 2024-03-30, in microseconds
SECOND = 1_000_000


def rows(count=30, **changed):
    """Rows of three hours, ten people in each; the changed columns are made from a row's number."""
    made = [
        {"timestamp": f"2024-03-30T0{number % 3}:00:00Z", "user": f"u{number // 3}", "bin": BINS[number % 3]}
        for number in range(count)
    ]
    return [row | {name: make(number) for name, make in changed.items()} for number, row in enumerate(made)]


def write(path, given):
    table = pa.Table.from_pylist(given)
    match path.rpartition(".")[2]:
        case "csv":
            pa_csv.write_csv(table, path)
        case "parquet":
            pq.write_table(table, path, row_group_size=8)
        case _:
            Path(path).write_text("".join(json.dumps(row) + "\n" for row in given))


@pytest.fixture
def publish(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bins.txt").write_text("\n".join(BINS))

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(with_last("publish", *COMMAND, *words))
        return ended.value.code, *capsys.readouterr()

    return run


def released(text):
    return [json.loads(line)["values"] for line in text.splitlines()]


PUBLISHED = [[10, 0, 0], [0, 10, 0], [0, 0, 10]]


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (
            {"bin": lambda number: BINS[number % 3] if number < 10 else "Serch"},
            "bin is not in the list (column 'bin', first at row 11, the nearest bin name is 'search')",
        ),
        (
            {"timestamp": lambda number: f"30/03/2024 00:{number:02}" if number % 4 else "2024-03-30T00:00:00Z"},
            "time cannot be read (column 'timestamp', first at row 2)",
        ),
        (
            {"user": lambda number: "" if number > 2 else "anna"},
            "without a user (column 'user', first at row 4, where it is empty or missing)",
        ),
        (
            {"bin": lambda number: "" if number % 3 else "home"},
            "bin is not in the list (column 'bin', first at row 2, where it is empty or missing)",
        ),
    ],
    ids=["bins", "times", "users", "empty"],
)
def test_the_reason_the_column_the_row_and_the_nearest_bin_are_named(publish, name, changed, says):
    write(name, rows(**changed))
    code, out, err = publish(name, *STORED)
    assert (code, out) == (2, "")
    assert "more than half of the first rows were refused, so nothing was published or charged" in err
    assert says in err
    assert "--allow-refused" in err
    assert err.count("\n") == 1
    assert not {"Serch", "30/03", "anna"} & set(err.replace("'", " ").split())  # no cell is shown


def test_a_field_inside_another_is_told_as_such(publish):
    write("events.jsonl", rows(user=lambda number: {"plate": "anna"}))
    code, _, err = publish("events.jsonl", *STORED, "--user", "user.plate")
    assert code == 2
    assert "(column 'user.plate', first at row 1, where it is empty or missing, and fields inside others are not" in err


FARES = ("--statistic", "mean:fare", "--between", "fare=0,9")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (FARES, "value cannot be read (column 'fare', first at row 1)."),
        ((*FARES, "--statistic", "sum:tip", "--between", "tip=0,9"), "value cannot be read (first at row 1)."),
    ],
    ids=["one", "several"],
)
def test_values_that_cannot_be_read_stop_the_first_run_too(publish, asked, says):
    write("events.csv", rows(fare=lambda number: "twelve", tip=lambda number: 1))
    code, out, err = publish("events.csv", *STORED, *asked)
    assert (code, out) == (2, "")
    assert says in err
    assert "twelve" not in err
    with closing(open_store("store.db", read_only=True)) as store:
        assert (store.next_step(), list(store.entries())) == (0, [])
    assert publish("events.csv", *STORED, *asked, "--allow-refused")[0] == 0


@pytest.mark.parametrize("out", ["private.jsonl", "private.csv", "private.parquet"])
def test_a_corrected_second_try_begins_as_if_it_were_the_first(publish, tmp_path, out):
    write("events.csv", rows())
    (tmp_path / "bins.txt").write_text("Home\nSearch\n")
    assert publish("events.csv", *STORED, "--out", out)[0] == 2
    with closing(open_store("store.db", read_only=True)) as store:
        assert (store.next_step(), store.epochs(), list(store.entries()), store.kept()) == (0, [], [], [])
        store.verify()
    (tmp_path / "bins.txt").write_text("\n".join(BINS))
    code, _, err = publish("events.csv", *STORED, "--out", out, "--max-per-step", "2")  # steps are counted anew as well
    assert code == 0, err
    assert stored() == PUBLISHED
    if out.endswith("csv"):
        assert (tmp_path / out).read_text().splitlines()[0] == "step,start,home,search,article"


def stored():
    with closing(open_store("store.db", read_only=True)) as store:
        return [json.loads(line)["values"] for _, line in store.releases()]


def test_it_goes_on_if_told_to(publish):
    write("events.csv", rows(bin=lambda number: "elsewhere" if number % 10 else "home"))
    code, out, err = publish("events.csv", *STORED, "--allow-refused")
    assert code == 0
    assert sum(map(sum, released(out))) == 3
    assert "besides these, 27 were refused (27: bin is not in the list)." in err


def test_half_of_the_rows_are_not_most_of_them(publish):
    write("events.csv", rows(bin=lambda number: "elsewhere" if number % 2 else BINS[0]))
    assert publish("events.csv", *STORED)[0] == 0
    write("events.csv", rows(bin=lambda number: "elsewhere" if number % 2 or not number else BINS[0]))
    assert publish("events.csv", "--bins", "bins.txt")[0] == 2


def test_rows_before_the_start_and_behind_the_end_are_no_faults(publish):
    outside = rows(timestamp=lambda number: f"202{number % 2 * 9}-01-01T00:00:00Z")
    write("events.csv", [*outside, *rows(3)])
    code, out, _ = publish("events.csv", *STORED)
    assert code == 0
    assert released(out) == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
@pytest.mark.parametrize("time", ["2023-03-30T01:00:00Z", "2025-03-30T01:00:00Z"])
def test_complete_files_of_which_no_row_belongs_to_any_step_are_refused(publish, name, time):
    write(name, rows(timestamp=lambda number: time))
    code, out, err = publish(name, *STORED)
    assert (code, out) == (2, "")
    assert (
        "no row that can be counted lies between the start 2024-03-30T00:00:00+00:00 and the end 2024-03-30T03" in err
    )
    assert "so nothing was published or charged" in err
    with closing(open_store("store.db", read_only=True)) as store:
        assert (store.next_step(), store.epochs(), list(store.entries())) == (0, [], [])
    assert publish(name, *STORED, "--allow-refused")[0] == 0
    assert publish(name, *STORED, "--until", "2024-03-30T04:00")[0] == 0  # once something is released nobody asks


@pytest.mark.parametrize(("name", "content"), [("events.csv", "timestamp,user,bin\n"), ("events.jsonl", "")])
def test_an_empty_delivery_is_refused(publish, name, content):
    Path(name).write_text(content)
    code, out, err = publish(name, *STORED)
    assert (code, out) == (2, "")
    assert "the source holds no row, so nothing was published or charged" in err
    assert publish(name, *STORED, "--allow-refused")[0] == 0


def test_the_number_of_a_row_is_that_of_its_line(publish):
    lines = ["2024-03-30T00:00:00Z,u,home", "", '2024-03-30T00:00:00Z,"torn,home', "too,few", *["never,u,home"] * 9]
    Path("events.csv").write_text("timestamp,user,bin\n" + "\n".join(lines))
    assert "time cannot be read (column 'timestamp', first at row 5)" in publish("events.csv", *STORED)[2]
    Path("events.jsonl").write_text("\n\n{}\nno object\n" + "[]\n" * 9)
    assert "row cannot be read (first at row 4). Give one JSON object a line" in publish("events.jsonl", *STORED)[2]


@pytest.mark.parametrize(("text", "size"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb\n", 3), (b"a\nb", 2)])
def test_lines_are_counted_and_read_again_from_the_first_on(text, size):
    raw = unparsed_lines(text, lambda lines: ParsedRows(lines, 0))
    assert raw.size() == size
    assert [raw.first(number).rows for number in range(1, size + 1)] == [
        b"".join(line + b"\n" for line in text.split(b"\n")[:number]) for number in range(1, size + 1)
    ]


@pytest.mark.parametrize("bad_first", [True, False])
def test_the_first_thousand_rows_decide(publish, monkeypatch, bad_first):
    monkeypatch.setattr("eventide.events.files.lines.BLOCK", 4_000)  # bytes: a hundred rows or so
    bad = range(ENOUGH) if bad_first else range(ENOUGH + 200, 4 * ENOUGH)
    write("events.csv", rows(4 * ENOUGH, bin=lambda number: "hom" if number in bad else "home"))
    code, _, err = publish("events.csv", *STORED)
    assert (code, "first at row 1," in err) == ((2, True) if bad_first else (0, False))


def exact(bins=BINS):
    return ev.Uniform(epsilon=1e6, window=1, bins=bins)  # noise is 0 but for one draw in e^1,000,000


def live_feed(source, bins=BINS, seconds=3):
    columns = Columns("timestamp", "user", "bin")
    until = f"2024-03-30T00:00:0{seconds}"
    return EventFeed(source, Timeline("2024-03-30", "1s"), EventReader(bins, columns), until=until)


def lines(place, count=10, second=0):
    moment = f"2024-03-30T00:00:0{second}Z"
    made = [{"timestamp": moment, "user": f"{place} {number}", "bin": place} for number in range(count)]
    return "".join(json.dumps(row) + "\n" for row in made)


def test_a_growing_file_is_stopped_when_its_first_step_would_come_out(tmp_path):
    log, store = tmp_path / "log.jsonl", tmp_path / "store.db"
    log.write_text(lines("home"))
    for bins in (["Home"], BINS):
        with ev.Publisher(live_feed(GrowingFile(log, ManualClock(START)), bins), exact(bins), store) as publisher:
            if bins == BINS:
                publisher.run()
                continue
            with pytest.raises(MostRowsRefused, match="first at row 1, the nearest bin name is 'Home'"):
                publisher.run()
    with closing(open_store(store, read_only=True)) as reader:
        assert json.loads(reader.release(0))["values"] == [10, 0, 0]


def test_a_store_that_has_released_a_step_is_never_stopped(tmp_path):
    log, store, clock = tmp_path / "log.jsonl", tmp_path / "store.db", ManualClock(START)
    log.write_text(lines("home"))
    with ev.Publisher(live_feed(GrowingFile(log, clock), seconds=1), exact(), store) as publisher:
        assert publisher.run() == 1
    with log.open("a") as file:
        file.write(lines("nowhere", 2 * ENOUGH, 1))
    with ev.Publisher(live_feed(GrowingFile(log, clock)), exact(), store) as publisher:
        assert publisher.run() == 2
        assert publisher.feed.counters.refused.total() == 2 * ENOUGH


class Moments(ManualClock):
    """A clock that is asked a few times."""

    def __init__(self, *seconds):
        super().__init__()
        self._seconds = iter(seconds)

    def now(self):
        self.set(START + next(self._seconds) * SECOND)
        return super().now()

    def certain(self):
        return super().now()


@pytest.fixture
def piped(monkeypatch):
    """A feed of a pipe with two batches of lines, read in the first second and in the fourth."""
    ends = []

    def feed(first, second="\n", bins=BINS):
        reading, writing = os.pipe()
        ends.append(reading)
        os.write(writing, (first + second).encode())
        os.close(writing)
        monkeypatch.setattr(standard_input, "CHUNK", len(first))
        return live_feed(StandardInput(reading, Moments(0, 4)), bins)

    yield feed
    for end in ends:
        os.close(end)


def test_events_of_a_pipe_that_is_refused_are_not_kept_and_count_once_when_they_come_again(tmp_path, piped):
    """Some are good, and kept, before most turn out to be bad."""
    store, out = tmp_path / "store.db", tmp_path / "out.csv"
    given = lines("home", 4) + lines("search", 6)
    with ev.Publisher(piped(given, bins=["home", "x"]), exact(["home", "x"]), store, [out]) as publisher:
        with pytest.raises(MostRowsRefused, match="bin is not in the list"):
            publisher.run()
        with pytest.raises(StateError, match="only the writer"):
            publisher.publish(0, [0, 0])
    with ev.Publisher(piped(given), exact(), store, [out]) as publisher:
        assert publisher.run() == 3
    assert out.read_text().splitlines()[1].endswith(",4,6,0")


def test_what_an_earlier_run_has_kept_stays(tmp_path, piped):
    store = tmp_path / "store.db"
    with ev.Publisher(piped(lines("home", 3), ""), exact(), store) as publisher:
        assert publisher.run() == 0  # the pipe ended within the first second
    with ev.Publisher(piped(lines("hom", 9)), exact(), store) as publisher, pytest.raises(MostRowsRefused):
        publisher.run()
    with ev.Publisher(piped(lines("search", 2)), exact(), store) as publisher:
        publisher.run()
        assert json.loads(publisher.store.release(0))["values"] == [3, 2, 0]


def test_a_pipe_that_ends_before_its_first_step_is_looked_at_as_well(piped):
    with ev.Publisher(piped(lines("hom"), ""), exact()) as publisher, pytest.raises(MostRowsRefused):
        publisher.run()
    with ev.Publisher(piped(lines("hom"), ""), exact(), allow_refused=True) as publisher:
        assert publisher.run() == 0


def test_late_rows_are_no_faults(piped):
    first = lines("home", 2) + lines("hom", 4)
    second = lines("search", 3)
    with ev.Publisher(piped(first, second), exact()) as publisher:
        assert publisher.run() == 3
        assert publisher.feed.counters.late == 3


def test_nothing_is_withdrawn_once_a_step_is_released(tmp_path):
    with ev.Publisher(MemoryFeed([]), exact(), tmp_path / "store.db") as publisher:
        publisher.publish(0, [1, 2, 3])
        with pytest.raises(StateError, match="has released a step"):
            publisher.store.withdraw()


MIXED = {"timestamp": lambda number: f"2024-03-30T0{number % 3}:00:00{'Z' if number % 10 else ''}"}


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
def test_times_with_and_without_a_zone_are_refused_until_somebody_says_which(publish, name):
    write(name, rows(**MIXED))
    code, out, err = publish(name, *STORED)
    assert (code, out) == (2, "")
    assert "of the first times in column 'timestamp' some name a zone or count since 1970 and some name none" in err
    assert "so nothing was published or charged" in err
    assert "Say in which zone the others are, such as --zone UTC" in err
    code, out, _ = publish(name, *STORED, "--zone", "UTC")
    assert (code, released(out)) == (0, PUBLISHED)


def test_once_something_is_released_each_time_is_judged_by_itself(publish):
    """Whether later steps come out must not depend on how anybody's time is written."""
    write("events.csv", rows(**MIXED))
    assert publish("events.csv", *STORED, "--zone", "UTC", "--until", "2024-03-30T01:00")[0] == 0
    code, out, _ = publish("events.csv", *STORED)
    assert (code, released(out)) == (0, PUBLISHED[1:])


DATED = {"timestamp": lambda number: 20_240_330 + number % 2}


@pytest.mark.parametrize("name", ["events.csv", "events.jsonl", "events.parquet"])
def test_dates_written_as_numbers_are_refused_until_somebody_says_how_to_read_them(publish, name):
    write(name, rows(**DATED))
    days = ("--step", "1d", "--until", "2024-04-01", "--bins", "bins.txt")
    code, out, err = publish(name, *days)
    assert (code, out) == (2, "")
    assert "the first times in column 'timestamp' are all numbers that read like dates" in err
    assert "give --time-format %Y%m%d; if they count since 1970, give --time-format s" in err
    assert "20240330" not in err
    view = PublicView()
    view.show("stderr", err.rstrip())
    assert view.lines("stderr", [REFUSED]) == [], "raw, and so not compared between two worlds"
    code, out, _ = publish(name, *days, "--time-format", "%Y%m%d")
    assert (code, sum(map(sum, released(out)))) == (0, 20), "ten people on each of two days, of each one event a day"
    assert publish(name, *days, "--time-format", "s", "--allow-refused")[0] == 0


@pytest.mark.parametrize(
    ("times", "refused"),
    [
        ([20130101, 20130102], "%Y%m%d"),
        (["20130101", "20130102"], "%Y%m%d"),
        ([20130101.0, None, 20130102.0], "%Y%m%d"),
        ([201301011230, 201301012359], "%Y%m%d%H%M"),
        ([20130101123000, 20130101123059], "%Y%m%d%H%M%S"),
        ([20130101, 20130199], None),  # no date
        ([20130101, 1_700_000_000], None),  # one of our days, in seconds
        ([20130101, 30130101], None),
        ([0, 1, 2, 86_400], None),
        ([46083.4, 46084.5], None),  # days of a spreadsheet, or the seconds of some day
        (["1970-08-21T23:41:41Z", "1970-08-21T23:41:42Z"], None),
        (pa.array([20130101, 20130102], pa.timestamp("s", "UTC")), None),
    ],
    ids=str,
)
def test_only_numbers_that_all_read_like_dates_are_refused(times, refused):
    frame = {"at": times, "bin": ["home"] * len(times)}
    told = {"epsilon": 1, "window": 1, "step": "1d", "time": "at", "bins": BINS, "mechanism": "uniform"}
    told |= {"start": "1970-01-01", "until": "1970-01-03"}
    if refused is None:
        assert len(ev.publish(frame, **told, allow_refused=True)) == 2
        return
    with pytest.raises(ev.InputError, match=f"If they are dates, give .*{refused}"):
        ev.publish(frame, **told)


@pytest.mark.parametrize(
    ("times", "told", "strange"),
    [
        ([46083.4, 46084.5], {}, True),
        ([46083.4, 46084.5], {"time_format": "s"}, False),
        (["1970-01-01T12:00Z", "1980-01-01T00:00Z"], {}, False),
        ([253_000_000_000_000], {}, True),  # some unit that is none
    ],
)
@pytest.mark.filterwarnings("ignore:For operators only")
def test_operators_are_told_if_no_time_lies_in_our_days(times, told, strange):
    how = {"epsilon": 1, "window": 1, "step": "1d", "time": "at", "bins": BINS, "mechanism": "uniform"} | told
    how |= {"allow_refused": True}  # no row of the last case lies in these days
    frame = {"at": times, "bin": ["home"] * len(times)}
    counted = ev.publish(frame, start="1970-01-01", until="1970-01-03", **how).operators_only
    assert any("All times lie before 1980 or after 2100" in each for each in counted.warnings()) == strange
    assert ("All times lie before 1980" in str(counted)) == strange


FIRST_HOUR = ("--until", "2024-03-30T01:00")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--bin", "user"), "bin (bin before, user now)"),
        (("--time", "tme"), "time (timestamp before, tme now)"),
        (("--time-format", "s"), "time format (nothing before, s now)"),
        (("--user", "fare", "--time-format", "s"), "time format (nothing before, s now); user (user before, fare now)"),
    ],
)
def test_a_store_is_not_gone_on_with_from_other_columns_unless_they_are_meant(publish, words, says):
    write("events.jsonl", rows(fare=str))
    assert publish("events.jsonl", *STORED, *FIRST_HOUR)[0] == 0
    for dry in ((), ("--dry-run",)):
        code, out, err = publish("events.jsonl", *STORED, *words, *dry)
        assert (code, out) == (2, "")
        assert f"this store was published from other columns: {says}. Nothing was published or charged" in err
    assert len(stored()) == 1
    code, _, err = publish("events.jsonl", *STORED, *words, "--new-columns")
    assert (code, len(stored())) == (0, 3), err
    assert "from other columns" in publish("events.jsonl", *STORED, "--until", "2024-03-30T04:00")[2]


def test_a_store_that_does_not_know_its_columns_learns_them(publish, monkeypatch):
    """As one does that an older version has begun."""
    write("events.jsonl", rows())
    with monkeypatch.context() as older:
        older.setattr(EventFeed, "read_from", lambda feed: None)
        assert publish("events.jsonl", *STORED, *FIRST_HOUR)[0] == 0
    with closing(open_store("store.db", read_only=True)) as store:
        assert store.epochs()[0].setting.read is None
    assert publish("events.jsonl", *STORED, "--until", "2024-03-30T02:00")[0] == 0
    assert "from other columns" in publish("events.jsonl", *STORED, "--bin", "user")[2]
    with closing(open_store("store.db", read_only=True)) as store:
        store.verify()
        assert len(store.epochs()) == 1


def test_of_a_later_run_the_operator_is_told_and_nothing_is_stopped(publish):
    write("events.csv", [*rows(3), *rows(bin=lambda number: "elsewhere")])
    assert publish("events.csv", *STORED, *FIRST_HOUR, "--allow-refused")[0] == 0
    code, out, err = publish("events.csv", *STORED)
    assert (code, released(out)) == (0, [[0, 1, 0], [0, 0, 1]])
    told = next(
        line for line in err.splitlines() if "more than half of the first rows of this run were refused" in line
    )
    assert told.startswith("For operators only, since it depends on the events: ")
    assert "column 'bin', first at row 4, the nearest bin name is" in told
    assert "For operators only, since it depends on the events: more than a tenth of the rows were refused" in err


def test_a_time_format_that_was_given_is_what_does_not_fit(publish):
    write("events.csv", rows())
    err = publish("events.csv", *STORED, "--time-format", "%d.%m.%Y")[2]
    assert "--time-format '%d.%m.%Y' must describe the whole cell" in err
    assert "seconds since 1970" not in err
