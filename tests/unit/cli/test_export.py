"""`eventide export`: stored releases in every format, and totals of groups with their errors."""

import csv
import io
import json
import math
import re
import shutil
import sqlite3
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide as ev
from eventide.cli import main
from eventide.live.sinks.open_sink import open_sink
from eventide.live.stores.base import Commit, StoreSetting
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import ReleaseLine
from eventide.releases.totals import totals

BINS = ("north", "south", "west")
SETTING = StoreSetting("riders", {"name": "ba"}, 10**9, 4, 1, BINS, {"step": "10min"}, "secure")
STEPS = [
    (0, True, [3, 0, 7], [None, None, None]),
    (1, True, [5, 1, 7], [2, 2, 0.5]),
    (2, False, [5, 1.5, 7], [2, 2, 0.5]),
]


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main(["export", *words])
        return ended.value.code, *capsys.readouterr()

    return call


def line(step, fresh, values, scale, start=True):
    start = {"start": f"2026-03-01T00:{step}0:00+00:00"} if start else {}
    return json.dumps({"step": step} | start | {"fresh": fresh, "values": values, "scale": scale}).encode()


def made(steps=STEPS, setting=SETTING, start=True, **how):
    store = open_store("city.db")
    store.begin(setting, **how)
    for step in steps:
        store.commit(Commit(step[0], [], line(*step, start=start), b"", None, None))
    return store


def rows(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def test_csv_wide_and_long(run):
    made().close()
    assert run("city.db", "--out", "wide.csv")[0] == 0
    assert rows("wide.csv") == [
        ["step", "start", *BINS],
        ["0", "2026-03-01T00:00:00+00:00", "3", "0", "7"],
        ["1", "2026-03-01T00:10:00+00:00", "5", "1", "7"],
        ["2", "2026-03-01T00:20:00+00:00", "5", "1.5", "7"],
    ]
    assert run("city.db", "--out", "long.csv", "--layout", "long")[0] == 0
    header, first, *_, last = rows("long.csv")
    assert header == ["step", "start", "bin", "value", "low", "high", "scale", "fresh"]
    assert first[:4] == ["0", "2026-03-01T00:00:00+00:00", "north", "3"]
    assert last[:4] == ["2", "2026-03-01T00:20:00+00:00", "west", "7"]
    assert (first[4:], last[4:]) == (["", "", "", "true"], ["", "", "0.5", "false"])
    assert run("city.db", "--out", "with.csv", "--intervals")[0] == 0
    assert rows("with.csv")[0][:5] == ["step", "start", "north", "north_low", "north_high"]
    code, _, err = run("city.db", "--out", "with.jsonl", "--intervals")
    assert (code, "--intervals is for releases as .csv or .parquet" in err) == (2, True)


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_file_is_replaced_only_by_an_output_of_the_same_kind(run, ending):
    made().close()
    out = Path(f"out.{ending}")
    for raw in (b"time,card,stop\n1,2,3\n", b'{"time": 1, "card": 2}\n', b"PAR1", None):
        if raw is None:
            table = {"step": [1], "card": [2]}
            pq.write_table(pa.table(table), out)
            raw = out.read_bytes()
        out.write_bytes(raw)
        code, _, err = run("city.db", "--out", str(out))
        assert (code, out.read_bytes()) == (2, raw)
        assert f"--out out.{ending} exists, and is no earlier output with the same columns" in err
        assert not list(Path().glob(".out*"))
    out.unlink()
    for _ in range(2):
        assert run("city.db", "--out", str(out))[0] == 0


def test_parquet_and_no_clock(run):
    made(start=False).close()
    assert run("city.db", "--out", "city.parquet")[0] == 0
    table = pq.read_table("city.parquet")
    assert table.column_names == ["step", *BINS]
    assert table["south"].to_pylist() == [0, 1, 1.5]


def test_json_lines_are_the_stored_bytes(run):
    store = made()
    stored = [release for _, release in store.releases()]
    store.close()
    assert run("city.db", "--out", "city.jsonl")[0] == 0
    assert Path("city.jsonl").read_bytes().splitlines() == stored


def test_totals_add_up_and_so_do_their_errors(run):
    made().close()
    Path("groups.toml").write_text('all = ["north", "south", "west"]\n"the north" = ["north"]\n')
    code, _, err = run("city.db", "--out", "totals.csv", "--totals", "groups.toml")
    assert code == 0
    assert "2 scale^2" in err
    header, *lines = rows("totals.csv")
    assert header == ["step", "start", "group", "total", "error"]
    assert lines[0][2:] == ["all", "10", ""]  # nothing was looked at yet, so nothing is known of the error
    assert [row[2:4] for row in lines[2:]] == [["all", "13"], ["the north", "5"], ["all", "13.5"], ["the north", "5"]]
    errors = [math.sqrt(2 * (4 + 4 + 0.25)), math.sqrt(8)]
    assert [float(row[4]) for row in lines[2:]] == pytest.approx(errors * 2)


def test_errors_of_totals_come_from_the_intervals_where_there_are_any():
    """Nine tenths of a normal distribution lie within 1.645 deviations."""
    random = np.random.default_rng(1)
    known = np.array([3.0, 0.0, 40.0])
    low, high = np.quantile(random.normal(100, known, (200_000, 3)), [0.05, 0.95], axis=0)
    release = ReleaseLine(0, True, np.full(3, 100.0), np.full(3, 9000.0), low, high)
    assert totals(release, [np.array([0, 2]), np.array([1])]).scale == pytest.approx([np.hypot(3, 40), 0], rel=0.01)


def test_totals_from_a_csv_of_groups_as_json_lines(run):
    made().close()
    Path("groups.csv").write_text("group,bin\nsides,south\nsides,west\n")
    assert run("city.db", "--out", "totals.jsonl", "--totals", "groups.csv")[0] == 0
    last = json.loads(Path("totals.jsonl").read_text().splitlines()[-1])
    assert last == {
        "step": 2,
        "start": "2026-03-01T00:20:00+00:00",
        "totals": {"sides": 8.5},
        "errors": {"sides": pytest.approx(math.sqrt(2 * 4.25))},
    }


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("g.toml", 'x = ["north", "east"]', "names 'east': there is no bin 'east'; did you mean"),
        ("g.toml", "x = []", "has no bins"),
        ("g.toml", 'x = ["north", "north"]', "twice"),
        ("g.toml", 'x = "north"', "holds no groups"),
        ("g.toml", "x = [", "holds no groups"),
        ("g.toml", "", "names no group"),
        ("g.csv", "name,bin\nx,north\n", "holds no groups"),
        ("g.csv", "group,bin\nx\n", "holds no groups"),
        ("none.toml", None, "cannot read"),
    ],
)
def test_groups_that_make_no_sense_are_refused(run, tmp_path, name, content, sentence):
    made().close()
    if content is not None:
        (tmp_path / name).write_text(content)
    code, _, err = run("city.db", "--out", "totals.csv", "--totals", name)
    assert code == 2
    assert sentence in err
    assert not (tmp_path / "totals.csv").exists()


def test_totals_have_no_layout(run):
    made().close()
    Path("groups.toml").write_text('x = ["north"]')
    for ending in ("csv", "jsonl"):
        code, _, err = run("city.db", "--out", f"t.{ending}", "--totals", "groups.toml", "--layout", "wide")
        assert code == 2
        assert "leave --layout out" in err


def test_bins_that_changed_are_empty_where_they_were_none(run):
    made().close()
    made([(3, False, [5, 9], [2, None])], SETTING._replace(bins=("west", "east")), new_epoch=True).close()
    assert run("city.db", "--out", "city.csv")[0] == 0
    header, *lines = rows("city.csv")
    assert header == ["step", "start", "west", "east", "north", "south"]
    assert lines[2][2:] == ["7", "", "5", "1.5"]
    assert lines[3][2:] == ["5", "9", "", ""]
    assert run("city.db", "--out", "city.jsonl")[0] == 0
    assert json.loads(Path("city.jsonl").read_text().splitlines()[2])["values"] == [7, None, 5, 1.5]


def test_a_bin_named_like_a_column_needs_the_long_layout(run):
    made(setting=SETTING._replace(bins=("north", "start", "west"))).close()
    code, _, err = run("city.db", "--out", "city.csv")
    assert code == 2
    assert "column start of its own" in err
    assert run("city.db", "--out", "city.csv", "--layout", "long")[0] == 0


def test_it_works_while_a_writer_writes_and_on_standard_output(run, monkeypatch):
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, write_through=True))
    store = made()
    with pytest.raises(SystemExit):
        main(["export", "city.db", "--out", "-"])
    assert len(written.getvalue().splitlines()) == 3
    store.close()


def test_damage_is_exit_code_5_and_no_file(run, tmp_path):
    store = made()
    store._database._connection.execute("UPDATE step SET release = x'00' WHERE step = 2")
    store.close()
    code, _, err = run("city.db", "--out", "city.csv")
    assert code == 5
    assert "step 2" in err
    assert not (tmp_path / "city.csv").exists()


@pytest.mark.parametrize("place", ["out.jsonl", "wide.csv", "long.csv", "intervals.csv"])
def test_a_line_that_was_changed_in_an_output_is_found_on_request(run, place):
    feed = ev.MemoryFeed([[number, 2, 3] for number in range(20)])
    layout = {"layout": "long"} if "long" in place else {}
    sink = open_sink(place, BINS, intervals="intervals" in place, **layout)
    with ev.Publisher(feed, ev.Uniform(epsilon=1, window=2, bins=BINS), "city.db", [sink]) as publisher:
        publisher.run()
    code, _, err = run("city.db", "--check", place)
    assert (code, err) == (0, f"20 steps of {place} are as they were published\n")
    path = Path(place)
    written = path.read_text()
    lines = written.splitlines(keepends=True)
    middle = len(lines) // 2
    digit = next(at for at in range(len(lines[middle]) - 1, 0, -1) if lines[middle][at].isdigit())
    other = str((int(lines[middle][digit]) + 1) % 10)
    for changed, step in (
        ([*lines[:middle], lines[middle][:digit] + other + lines[middle][digit + 1 :], *lines[middle + 1 :]], r"\d+"),
        ([*lines[:-1]] if "long" not in place else lines[:-3], None),
        ([*lines, lines[-1]], "20"),
        (lines[:1] + lines[2:] if "csv" not in place else lines[:2] + lines[5:], r"\d+"),
    ):
        path.write_text("".join(changed))
        code, _, err = run("city.db", "--check", place)
        assert code == (0 if step is None else 2)
        assert re.search(
            "19 steps" if step is None else f"differs from the store at step {step}: it is not what was published", err
        )


def test_a_comparison_says_what_the_store_does_not_keep(run, monkeypatch):
    feed = ev.MemoryFeed([[number, 2, 3] for number in range(20)])
    with ev.Publisher(feed, ev.Uniform(epsilon=1, window=2, bins=BINS), "city.db", ["out.jsonl"]) as publisher:
        publisher.run()
    monkeypatch.setattr("eventide.live.stores.database_store.DatabaseStore.kept_from", lambda self: 5)
    code, _, err = run("city.db", "--check", "out.jsonl")
    assert code == 0
    assert "15 steps" in err
    assert "steps before 5 are not kept in the store, and were not compared" in err


def test_after_a_restored_backup_a_longer_file_is_to_be_kept(run):
    feed = ev.MemoryFeed([[number, 2, 3] for number in range(20)])
    for until, how in ((4, {}), (12, {"after_restore": True})):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=BINS)
        with ev.Publisher(feed, mechanism, "city.db", ["out.jsonl"], **how) as publisher:
            publisher.run(until=until)
    lines = Path("out.jsonl").read_text().splitlines(keepends=True)
    Path("out.jsonl").write_text("".join([*lines[:4], lines[3].replace('"step":3', '"step":4'), *lines[4:]]))
    code, _, err = run("city.db", "--check", "out.jsonl")
    assert (code, "keep the file" in err) == (2, True)


def test_steps_that_a_restored_backup_lost_are_passed_over_and_the_rest_is_compared(run):
    """A check that fails for ever is one that nobody looks at."""
    feed = ev.MemoryFeed([[number, 2, 3] for number in range(20)])
    for until, how in ((4, {}), (8, {}), (12, {"after_restore": True})):
        if how:
            shutil.copy("backup.db", "city.db")
        mechanism = ev.Uniform(epsilon=1, window=2, bins=BINS)
        with ev.Publisher(feed, mechanism, "city.db", ["out.jsonl"], **how) as publisher:
            publisher.run(until=until)
        if until == 4:
            shutil.copy("city.db", "backup.db")
    code, _, err = run("city.db", "--check", "out.jsonl")
    assert (code, "8 steps" in err, "steps 4 to 7 were lost" in err) == (0, True, True)
    lines = Path("out.jsonl").read_text().splitlines(keepends=True)
    Path("out.jsonl").write_text("".join([*lines[:9], lines[8], *lines[10:]]))
    code, _, err = run("city.db", "--check", "out.jsonl")
    assert (code, "differs from the store at step 9" in err) == (2, True)


def test_what_cannot_be_compared_is_refused(run):
    made().close()
    Path("other.csv").write_text("something,else\n")
    Path("releases.parquet").touch()
    assert "does not begin with the columns" in run("city.db", "--check", "other.csv")[2]
    assert "only these are compared" in run("city.db", "--check", "releases.parquet")[2]
    assert "give either --out" in run("city.db")[2]


def table_rows():
    connection = sqlite3.connect("releases.sqlite")
    found = connection.execute("SELECT step, start, bin, value, scale FROM releases ORDER BY step, bin").fetchall()
    connection.close()
    return found


def test_a_table_gets_what_it_lacks_while_the_store_is_in_use(run):
    store = made(STEPS[:2])
    assert run("city.db", "--out", "releases.sqlite")[::2] == (0, "2 steps written to releases.sqlite\n")
    assert run("city.db", "--out", "releases.sqlite")[::2] == (0, "0 steps written to releases.sqlite\n")
    store.commit(Commit(2, [], line(*STEPS[2]), b"", None, None))
    assert run("city.db", "--out", "releases.sqlite")[::2] == (0, "1 step written to releases.sqlite\n")
    store.close()
    assert table_rows() == [
        (step, f"2026-03-01T00:{step}0:00+00:00", *cells)
        for step, _, values, scale in STEPS
        for cells in zip(BINS, values, scale, strict=True)
    ]


def test_a_wrong_ending_is_told_all_that_would_do(run):
    made(STEPS[:1]).close()
    code, _, told = run("city.db", "--out", "releases.xlsx")
    assert (code, "ends in none of .jsonl, .csv, .parquet, .delta, .sqlite;" in told) == (2, True)


def test_a_table_of_another_store_is_refused(run):
    made().close()
    run("city.db", "--out", "releases.sqlite")
    before = table_rows()
    for path in Path().glob("city.db*"):
        path.unlink()
    made([(step, True, [9, 9, 9], [1, 1, 1]) for step in range(3)]).close()
    code, _, said = run("city.db", "--out", "releases.sqlite")
    assert code == 5
    assert "holds another release of step 2" in said
    assert table_rows() == before
    code, _, said = run("city.db", "--out", "city.sqlite", "--layout", "wide")
    assert (code, "leave --layout wide out" in said) == (2, True)
