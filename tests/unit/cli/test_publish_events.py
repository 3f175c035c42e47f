"""`eventide publish` on events: steps, bounding, stores that are gone on with, signals, and clear refusals."""

from __future__ import annotations

import itertools
import json
import logging
import os
import shlex
import signal
import subprocess
import sys
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from command_words import with_last
from nats_server import free_port

from eventide.audit.two_worlds.view import UNSEEN, PublicView
from eventide.cli import main
from eventide.cli.live_log import logging_to_stderr
from eventide.events import clock
from eventide.live.sinks.appending_file import AppendingFile
from eventide.live.stores.open_store import open_store

ROOT = Path(__file__).parents[3]
BINS = ("north", "south")
EXACT = ("--epsilon", "1e6", "--window", "1", "--mechanism", "uniform")  # noise is 0 but for one draw in e^1,000,000
STEP = ("--step", "1h", "--user", "user", "--bins", "bins.txt")
BEGIN = datetime(2024, 3, 30, tzinfo=UTC)
STEPS = 30


def events():
    """Two events of every user in each hour but the fifth, in one bin."""
    return [
        (BEGIN + timedelta(hours=hour, minutes=minute), f"user {user}", BINS[(hour + user) % 2])
        for hour in range(STEPS)
        for minute in (1, 31)
        for user in range(7)
        if hour != 5
    ]


def expected(most):
    counts = Counter((hour, place) for hour in range(STEPS) for user in range(7) for place in [(hour + user) % 2])
    return [[most * counts[hour, place] * (hour != 5) for place in (0, 1)] for hour in range(STEPS)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the same events in every format."""
    monkeypatch.chdir(tmp_path)
    rows = [{"timestamp": at.isoformat(), "user": user, "bin": place} for at, user, place in events()]
    table = pa.Table.from_pylist(rows)
    pa_csv.write_csv(table, "events.csv")
    pq.write_table(table, "events.parquet")
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "bins.txt").write_text("\n".join(BINS))
    return tmp_path


@pytest.fixture
def publish(folder, capsys):
    """Run `eventide publish`; give its exit code, standard output and standard error."""

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            main(["publish", *words])
        return ended.value.code, *capsys.readouterr()

    return run


def values(text):
    return [json.loads(line)["values"] for line in text.splitlines()]


@pytest.mark.parametrize("source", ["events.csv", "events.jsonl", "events.parquet"])
@pytest.mark.parametrize("most", [1, 2])
def test_events_are_counted_by_step_and_bounded_by_user(publish, source, most):
    code, out, err = publish(source, *EXACT, *STEP, "--max-per-step", str(most))
    assert code == 0
    assert values(out) == expected(most)
    assert json.loads(out.splitlines()[1])["start"].startswith("2024-03-30T01:00:00")
    assert f"{len(events())} events were read" in err
    assert "For operators only" in err
    left_out = len(events()) - sum(map(sum, expected(most)))
    view = PublicView()
    view.show("stderr", "\n".join(line for line in err.splitlines() if line.startswith("For operators only")))
    assert view.lines("stderr", UNSEEN) == [], "raw, and so not compared between two worlds"
    warned = "\nFor operators only, since it depends on the events: the limit per person left out more than a tenth of"
    assert (f"{warned} events, so values are too small. A larger --max-per-step" in err) == (left_out > 0)
    assert (
        f"{left_out} of them were left out by the limit per person; 0 came too late; besides these, 0 were refused."
        in err
    )
    assert "Any single step spent at most" in err
    assert (left_out > 0) == (most == 1)
    guarantee = err.splitlines()[-1]
    assert f"at most {most} to a step" in guarantee
    assert "for this run only" in guarantee
    assert "The first step was taken from the data." in guarantee
    assert "The last step was taken from the data." in guarantee
    assert "trusted" not in guarantee


@pytest.fixture
def parts(folder):
    """The same events as a data set: a folder for each bin, in files of several kinds and in any order."""
    rows = [dict(zip(("timestamp", "user", "bin"), row, strict=True)) for row in events()][::-1]
    for place in BINS:
        here = [{"timestamp": row["timestamp"], "user": row["user"]} for row in rows if row["bin"] == place]
        (folder / "set" / f"bin={place}").mkdir(parents=True)
        half = len(here) // 2
        pq.write_table(pa.Table.from_pylist(here[:half]), f"set/bin={place}/part-0.parquet")
        pa_csv.write_csv(pa.Table.from_pylist(here[half:]), f"set/bin={place}/part-1.csv")
    return folder / "set"


def test_a_folder_a_pattern_and_several_files_are_one_source(publish, parts):
    for sources in (
        ["set"],
        ["set/*/part-*"],
        [f"set/bin={place}" for place in BINS],
        sorted(map(str, parts.rglob("part-*")), reverse=True),
    ):
        code, out, err = publish(*sources, *EXACT, *STEP)
        assert (code, values(out)) == (0, expected(1)), err


def test_a_folder_is_gone_on_with(publish, parts):
    stored = (*EXACT, *STEP, "--store", "store.db", "--out", "out.csv", "--start", "2024-03-30T00:00Z", "--until")
    assert publish("set", *stored, "2024-03-30T02:00Z")[0] == 0
    code, _, err = publish("set", *stored, "2024-03-30T03:00Z")
    assert (code, read_steps("out.csv")) == (0, [0, 1, 2]), err
    next(parts.rglob("*.csv")).rename("taken.csv")
    code, _, err = publish("set", *stored, "2024-03-30T04:00Z")
    assert code == 2
    assert "files were added, removed or renamed since a part of them was published; give the same files" in err


def test_what_is_written_is_not_read(publish, parts):
    for option, sources in (
        ("--out set/private.csv", ["set"]),
        ("--out private.csv", ["set", "*.csv"]),
        ("--store set/store.db", ["set"]),
    ):
        code, _, err = publish(*sources, *EXACT, *STEP, *option.split())
        assert code == 2
        assert f"{option} would be read as one of the files of {sources[-1]}; choose another folder" in err
    words = ("--epsilon", "1", "--window", "2", "--dry-run", "--engine", "spark", *STEP)
    code, _, err = publish("set", "events.csv", *words)
    assert (code, "--engine spark reads one file" in err) == (2, True)
    code, _, err = publish("events.csv", "events.parquet", "--epsilon", "1", "--window", "2", "--queries", "none.toml")
    assert code == 2


@pytest.mark.parametrize(
    ("form", "write"),
    [
        ("ms", lambda moment: str(int(moment.timestamp() * 1000))),
        ("%d.%m.%Y %H:%M:%S.%f", lambda moment: moment.strftime("%d.%m.%Y %H:%M:%S.%f")),
        ("%d %b %Y, %H:%M:%S %z", lambda moment: moment.strftime("%d %b %Y, %H:%M:%S %z")),
    ],
)
def test_times_may_be_written_in_any_format(publish, form, write):
    table = pa_csv.read_csv(
        "events.csv", convert_options=pa_csv.ConvertOptions(column_types={"timestamp": pa.string()})
    )
    moments = [datetime.fromisoformat(text.as_py()) for text in table["timestamp"]]
    written = pa.array([write(moment.astimezone(UTC)) for moment in moments])
    pa_csv.write_csv(table.set_column(table.column_names.index("timestamp"), "timestamp", written), "written.csv")
    code, out, err = publish("written.csv", *EXACT, *STEP, "--time-format", form)
    assert (code, values(out)) == (0, expected(1)), err
    code, _, err = publish("written.csv", *EXACT, *STEP, "--time-format", "%H:%M")
    assert (code, "--time-format: '%H:%M' is no format of times" in err) == (2, True)


def test_intervals_in_wide_files(publish):
    words = (*EXACT, *STEP, "--intervals", "--out")
    assert publish("events.csv", *words, "wide.csv")[0] == 0
    table = pa_csv.read_csv("wide.csv")
    assert table.column_names[:5] == ["step", "start", BINS[0], f"{BINS[0]}_low", f"{BINS[0]}_high"]
    value, low, high = (table[name].to_pylist() for name in table.column_names[2:5])
    assert value == [north for north, _ in expected(1)]
    assert set(low + high) == {None}  # this mechanism gives none
    code, _, err = publish("events.csv", *words, "lines.jsonl")
    assert code == 2
    assert "JSON lines have low and high where they are known" in err


def test_without_a_user_column_every_event_is_its_own_user(publish):
    words = ("--step", "1h", "--bin", "bin", "--bins", "bins.txt")
    code, out, err = publish("events.csv", *EXACT, *words)
    assert code == 0
    assert values(out) == expected(2)
    assert "every event is taken for a person of its own" in err.splitlines()[-1]


def test_start_and_end_can_be_given(publish):
    when = ("--start", "2024-03-29T22:00Z", "--until", "2024-03-30T03:00Z")
    code, out, err = publish("events.csv", *EXACT, *STEP, *when)
    assert code == 0
    assert values(out) == [[0, 0], [0, 0], *expected(1)[:3]]
    assert "taken from the data" not in err.splitlines()[-1]


def test_a_window_can_be_a_duration(publish):
    code, out, err = publish("events.csv", "--epsilon", "1", "--window", "90min", *STEP, "--dry-run", "--json")
    assert "Not checked: the rows of events." in err
    document = json.loads(out)
    assert code == 0
    assert document["window"] == 2  # rounded up to whole steps
    assert document["steps"] is None


def test_unknown_bins_are_refused_or_go_to_the_other_one(publish, folder):
    (folder / "one.txt").write_text("north\n")
    words = ("--step", "1h", "--user", "user", "--bins", "one.txt")
    north = [row[0] for row in expected(1)]
    code, out, err = publish("events.csv", *EXACT, *words)
    assert code == 0
    assert values(out) == [[count] for count in north]
    assert "bin is not in the list" in err
    code, out, err = publish("events.csv", *EXACT, *words, "--other", "elsewhere")
    assert code == 0
    assert values(out) == expected(1)
    assert "--other" not in err


@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_heading_in_the_list_of_bins_is_noticed(publish, folder, more):
    (folder / "headed.txt").write_text("User\nuser 1\n")
    (folder / "plain.txt").write_text("user 1\n")
    words = (*EXACT, "--step", "1h", "--bin", "user", "--other", "somebody", *more)
    told = "Note: the first bin is named 'User', as the column of --bin is"
    assert told in publish("events.csv", *words, "--bins", "headed.txt")[2]
    assert told not in publish("events.csv", *words, "--bins", "plain.txt")[2]


def test_operators_are_told_if_no_row_names_a_listed_bin(publish):
    code, out, err = publish("events.csv", *EXACT, *STEP, "--bin", "user", "--other", "elsewhere")
    assert code == 0
    assert {tuple(row[:2]) for row in values(out)} == {(0, 0)}
    assert "no row named a bin of the list, so all were counted in the bin of --other. Name another column" in err
    Path("whole.txt").write_text("site\n")
    whole = publish("events.csv", *EXACT, "--step", "1h", "--bin", "user", "--bins", "whole.txt", "--other", "site")
    assert (whole[0], "no row named a bin" in whole[2]) == (0, False)


@pytest.mark.parametrize("out", ["private.jsonl", "private.csv", "private.parquet"])
def test_the_same_command_goes_on_where_it_stopped(publish, folder, out):
    words = ("events.csv", *EXACT, *STEP, "--store", "store.db", "--out", out, "--start", BEGIN.isoformat())
    for hours in (3, 17, 17, STEPS):
        until = (BEGIN + timedelta(hours=hours)).isoformat()
        code, _, err = publish(*words, "--until", until)
        assert code == 0
        assert "for this run only" not in err
        assert read(out) == (list(range(hours)), expected(1)[:hours])
    assert "Published 13 steps" in err
    (folder / out).unlink()  # what is lost is written anew from the store
    assert publish(*words, "--until", until)[0] == 0
    assert read(out) == (list(range(STEPS)), expected(1))


def read(path):
    if path.endswith("jsonl"):
        lines = [json.loads(line) for line in Path(path).read_text().splitlines()]
        return [line["step"] for line in lines], [line["values"] for line in lines]
    table = pq.read_table(path) if path.endswith("parquet") else pa_csv.read_csv(path)
    assert table.column_names[:2] == ["step", "start"]
    return table["step"].to_pylist(), np.column_stack([table[name] for name in BINS]).tolist()


def test_another_setting_needs_a_new_epoch(publish):
    words = ("events.csv", *STEP, "--store", "store.db", "--epsilon", "1", "--out", "private.jsonl")
    assert publish(*words, "--window", "2", "--until", "2024-03-30T10:00Z")[0] == 0
    for changed in (
        ("--window", "3"),
        ("--window", "2", "--population", "somebody"),
        ("--window", "2", "--mechanism", "bd"),
    ):
        code, _, err = publish(*words, *changed)
        assert code == 2
        assert "--new-epoch" in err
    assert publish(*words, "--window", "3", "--new-epoch")[0] == 0
    assert read("private.jsonl")[0] == list(range(STEPS))


def test_people_means_the_population(publish):
    words = ("events.csv", *EXACT, *STEP, "--store", "store.db", "--out", "private.jsonl")
    for option in ("--people", "--population", "--people"):
        code, _, err = publish(*words, option, "riders")
        assert code == 0, err
    assert publish(*words, "--population", "others")[0] == 2


def test_a_mechanism_of_ones_own_goes_on_in_its_store(publish, folder):
    (folder / "ours_of_publish.py").write_text(
        "from eventide.mechanisms.hybrid import Hybrid\nclass Mine(Hybrid): pass\n"
    )
    words = ("events.csv", "--epsilon", "1", "--window", "4", *STEP, "--store", "store.db", "--out", "private.jsonl")
    words += ("--mechanism", "ours_of_publish:Mine", "--json")
    assert publish(*words, "--set", "k=2", "--until", "2024-03-30T10:00Z")[0] == 0
    code, out, err = publish(*words, "--set", "k=2")
    assert (code, json.loads(out)["steps"] > 0) == (0, True), err
    code, _, err = publish(*words, "--set", "k=3")
    assert (code, "mechanism.parameters.k (2 before, 3 now)" in err) == (2, True)


def test_a_parameter_at_its_default_is_no_other_setting(publish):
    words = ("events.csv", "--epsilon", "1", "--window", "4", *STEP, "--store", "store.db", "--out", "private.jsonl")
    words += ("--mechanism", "bd")
    assert publish(*words, "--until", "2024-03-30T10:00Z")[0] == 0
    assert publish(*words, "--set", "shift_budget=false", "--set", "accounting=moving")[0] == 0


def test_a_new_epoch_is_not_begun_where_its_output_cannot_go_on(publish, folder):
    words = ("events.csv", *STEP, "--store", "store.db", "--epsilon", "1", "--window", "2", "--out", "private.csv")
    assert publish(*words, "--until", "2024-03-30T10:00Z")[0] == 0
    (folder / "bins.txt").write_text("south\nnorth\n")
    code, _, err = publish(*words, "--new-epoch")
    assert code == 2
    assert "begins with other columns" in err
    (folder / "bins.txt").write_text("north\nsouth\n")
    assert publish(*words)[0] == 0  # the store is as it was
    assert read("private.csv")[0] == list(range(STEPS))


@pytest.mark.parametrize(
    ("out", "place", "write"), [("private.jsonl", AppendingFile, "flush"), ("private.parquet", Path, "replace")]
)
def test_an_output_that_its_disk_does_not_take_is_a_failure_of_code_5(publish, folder, monkeypatch, out, place, write):
    def full(*_):
        raise OSError(28, "No space left on device")

    words = ("events.csv", *EXACT, *STEP, "--store", "store.db", "--out", out)
    with monkeypatch.context() as broken:
        broken.setattr(place, write, full)
        code, _, err = publish(*words)
    assert code == 5
    assert f"{out} cannot be made durable: No space left on device" in err
    assert not list(folder.glob(".*.part"))
    assert publish(*words)[0] == 0
    assert read(out) == (list(range(STEPS)), expected(1))


def test_the_document_names_what_is_for_operators(publish):
    code, out, err = publish("events.csv", *EXACT, *STEP, "--store", "store.db", "--out", "private.csv", "--json")
    document = json.loads(out)
    assert code == 0
    left_out = len(events()) - sum(map(sum, expected(1)))
    told = {"accepted": len(events()), "late": 0, "again": 0, "left_out": left_out, "refused": {}}
    told |= {"left_out_by_cap": None, "left_out_of_each": {}, "read_as_utc": False}
    told |= {"cut_to_range": {}, "strange_times": False, "all_in_other": False}
    assert document["operators_only"] == told
    assert (document["steps"], document["next_step"], document["store"]) == (STEPS, STEPS, "store.db")
    assert document["guarantee"] == err.splitlines()[-1]


def test_the_log_is_one_object_a_line_and_holds_no_count(publish):
    code, _, err = publish("events.csv", *EXACT, *STEP, "--store", "s.db", "--out", "p.csv", "--log", "json")
    assert code == 0
    lines = [json.loads(line) for line in err.splitlines()[:STEPS]]
    assert [line["step"] for line in lines] == list(range(STEPS))
    assert all(set(line) == {"time", "level", "event", "step", "fresh", "spent", "left", "lag"} for line in lines)
    assert all(line["lag"] > 0 and line["lag"] % 3_600 == 0 for line in lines)  # in whole steps
    assert all(datetime.fromisoformat(line["time"]).microsecond == 0 for line in lines)


def test_warnings_are_sentences(capsys):
    with logging_to_stderr(None):
        log = logging.getLogger("eventide.live")
        log.warning("sink failed", extra={"fields": {"sink": "out.jsonl", "has": 3}})
        log.warning("the clock went back")
    assert capsys.readouterr().err == "Warning: sink failed (sink out.jsonl, has 3)\nWarning: the clock went back\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--time", "timestamp", "--bins", "bins.txt"), "give the length of a step, such as --step 1h"),
        (("--time", "timestamp", "--step", "1h"), "--bins is missing"),
        (("--follow",), "A file of counts is not followed: give the same command without --follow"),
        (("--follow", "--step", "1h"), "--bins is missing"),
        ((*STEP, "--webhook", "127.0.0.1:9/x"), "--webhook takes an address that begins with http:// or https://"),
        ((*STEP, "--sensitivity", "2"), "--max-per-step"),
        ((*STEP, "--queries", "queries.toml"), "add --queries-epsilon: the share of epsilon"),
        ((*STEP, "--late", "5min"), "late"),
        ((*STEP, "--time", "when"), "when"),
        ((*STEP, "--start", "yesterday"), "yesterday"),
        ((*STEP, "--step", "1 fortnight"), "duration"),
        ((*STEP, "--step", "1d", "--window", "12h"), "a window of 12h is shorter than a step of 1d"),
        ((*STEP, "--zone", "Europe/Atlantis"), "Atlantis"),
        ((*STEP, "--max-per-step", "0"), "is not a whole number from 1"),
        ((*STEP, "--mechanism", "nowhere:Mine"), "cannot find nowhere:Mine"),
        ((*STEP, "--mechanism", "hybrid", "--set", "j=3"), "takes no 'j'"),
        ((*STEP, "--set", "seed=7"), "--set seed=... is not possible"),
        ((*STEP, "--mechanism", "uniform", "--window", "100000000", "--epsilon", "0.01"), "larger epsilon"),
    ],
)
def test_options_that_do_not_fit_are_refused(publish, folder, words, says):
    before = sorted(path.name for path in folder.iterdir())
    usual = ("--epsilon", "1", "--window", "2", "--store", "store.db")
    code, out, err = publish("events.csv", *with_last(*usual, *words))
    assert code == 2
    assert says in err
    assert out == ""
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before


def start_following(*words):
    usual = (*EXACT, "--bins", "bins.txt", "--step", "100ms", "--store", "store.db", "--out", "private.jsonl")
    return subprocess.Popen(
        [sys.executable, "-m", "eventide", "publish", "log.jsonl", "--follow", *with_last(*usual, *words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_steps(process, steps):
    """Wait until the output holds so many more steps, or the process ends."""
    seen = published()
    while process.poll() is None and published() < seen + steps:
        time.sleep(0.02)


def published():
    return Path("private.jsonl").read_text().count("\n") if os.path.exists("private.jsonl") else 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)]
)
def test_a_signal_ends_a_live_run_between_steps(folder, number, code):
    (folder / "log.jsonl").touch()
    start = datetime.now(UTC).isoformat()
    for _ in range(2):  # the second goes on where the first ended
        process = start_following("--start", start)
        wait_for_steps(process, 3)
        process.send_signal(number)
        _, err = process.communicate()
        assert process.returncode == code, err
    store = open_store("store.db", read_only=True)
    stored = [release for _, release in store.releases()]
    store.close()
    written = (folder / "private.jsonl").read_bytes().splitlines()
    assert stored[: len(written)] == written
    assert len(stored) >= 6
    if code == 0:
        assert len(stored) == len(written)
        assert "Published" in err


@pytest.mark.slow
def test_sigterm_with_a_webhook_that_is_away_ends_well_and_says_what_is_still_to_be_sent(folder):
    (folder / "log.jsonl").touch()
    process = start_following("--start", datetime.now(UTC).isoformat(), "--webhook", f"http://127.0.0.1:{free_port()}/")
    wait_for_steps(process, 3)
    process.terminate()
    _, err = process.communicate()
    assert process.returncode == 0, err
    assert "Still to be sent: webhook 127.0.0.1" in err
    store = open_store("store.db", read_only=True)
    assert published() == store.next_step() >= 3  # the other sink has everything
    store.close()


@pytest.mark.slow
def test_a_live_run_that_names_no_start_begins_at_midnight_and_keeps_to_it(folder):
    (folder / "log.jsonl").touch()
    words = ("--step", "1d", "--zone", "Europe/Berlin")
    for _ in range(2):
        process = start_following(*words)
        while process.poll() is None and not os.path.exists("private.jsonl"):
            time.sleep(0.02)
        process.terminate()
        _, err = process.communicate()
        assert process.returncode == 0, err
        os.remove("private.jsonl")
    store = open_store("store.db", read_only=True)
    (epoch,) = store.epochs()
    store.close()
    assert datetime.fromisoformat(epoch.setting.steps["start"]).hour == 0


class Sender:
    """A clock that is a tenth of a second later at each look, when another event has been sent, and then far ahead."""

    def __init__(self, pipe):
        self._pipe, self._looks = pipe, itertools.count()

    def now(self):
        look = next(self._looks)
        at = BEGIN + timedelta(milliseconds=100 * look) + timedelta(hours=look > 40)
        if look < 20:
            event = {"timestamp": at.isoformat(), "bin": BINS[look % 2]}
            os.write(self._pipe, (json.dumps(event) + "\n").encode())
        return int(at.timestamp() * 1e6)

    certain = now


def test_standard_input_is_published_while_it_comes(publish, monkeypatch):
    when = ("--start", BEGIN.isoformat(), "--until", (BEGIN + timedelta(seconds=2)).isoformat(), "--late", "1s")
    reading, writing = os.pipe()
    monkeypatch.setattr(clock, "SystemClock", lambda: Sender(writing))
    with open(reading) as pipe:
        monkeypatch.setattr(sys, "stdin", pipe)
        code, out, err = publish("-", *EXACT, "--step", "500ms", "--bins", "bins.txt", *when)
    os.close(writing)
    assert code == 0
    assert len(out.splitlines()) == 4
    assert sorted(map(sorted, values(out))) == [[2, 3]] * 4
    assert "20 events were read" in err


def test_the_how_to_s_command_works(tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / "how-to" / "publish-events.md").read_text()
    command = text.split("<!-- publish-command -->\n```sh\n")[1].split("\n```")[0]
    program, *words = shlex.split(command)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main([str(ROOT / word) if word.startswith("docs/") else word for word in words])
    assert (program, ended.value.code) == ("eventide", 0)
    assert read_steps("private.csv") == list(range(48))
    assert "besides these, 0 were refused" in capsys.readouterr().err


def test_a_run_that_only_delivers_says_so(publish, folder):
    told = (*EXACT, *STEP, "--store", "s.db", "--start", "2024-03-30", "--until", "2024-03-30T02:00", "--out")
    assert publish("events.csv", *told, "one.csv")[0] == 0
    err = publish("events.csv", *told, "two.csv")[2]
    assert "Nothing new was published: the store has 2 steps of 2 bins, and two.csv has what it lacked of them" in err
    assert (folder / "one.csv").read_bytes() == (folder / "two.csv").read_bytes()


@pytest.mark.parametrize("source", ["events.csv", "events.parquet"])
@pytest.mark.parametrize("more", [(), ("--dry-run",)])
def test_a_column_that_no_header_has_is_refused_before_anything_is_made(publish, folder, source, more):
    before = sorted(path.name for path in folder.iterdir())
    told = (*EXACT, *STEP, "--store", "s.db", "--out", "o.csv", "--start", "2024-03-30", "--bin", "nowhere")
    code, out, err = publish(source, *told, *more)
    assert (code, out) == (2, "")
    assert "has no column 'nowhere'" in err
    assert sorted(path.name for path in folder.iterdir()) == before


OWN = """import eventide as ev

class Fails(ev.Uniform):
    def is_sampling_point(self, step):
        return 1 / 0
"""


@pytest.mark.parametrize(
    ("module", "text", "says"),
    [
        ("wrong_syntax", "class Fails(:\n", "wrong_syntax cannot be imported: SyntaxError in wrong_syntax.py, line 1"),
        ("wrong_name", "import math\nnowhere\n", "NameError in wrong_name, line 2: name 'nowhere' is not"),
        ("wants_more", "import nosuchlib\n", "wants_more cannot be imported: No module named 'nosuchlib'"),
        ("fails_late", OWN, "ZeroDivisionError in fails_late, line 5, which is no part of eventide; correct it"),
    ],
)
def test_a_mistake_in_somebody_s_own_mechanism_is_named_as_such(publish, folder, module, text, says):
    (folder / f"{module}.py").write_text(text)
    code, _, err = publish("events.csv", "--epsilon", "1", "--window", "2", *STEP, "--mechanism", f"{module}:Fails")
    assert code == 2
    assert says in err


def read_steps(path):
    return pa_csv.read_csv(path)["step"].to_pylist()
