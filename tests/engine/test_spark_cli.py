"""`eventide publish --engine spark` means the same as without it."""

import json
import shlex
import subprocess
import sys

import pytest
from command_words import with_last
from live_stores import make_twin
from spark_cluster import environment

from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.engine
EVENTS = """timestamp,user,bin
2024-03-30T00:00:05Z,17,north
2024-03-30T00:00:07Z, 17 ,north
2024-03-30T00:01:07Z,"anna",south
never,ben,south
2024-03-30T00:01:30Z,"torn,south
2024-03-30T00:02:30Z,ben,nowhere
2024-03-30T00:02:59Z,ben,north
"""
AGAIN = EVENTS + "2024-03-30T00:02:07Z,anna,north\n"  # who counted a minute before
RIDES = "timestamp,user,bin,fare\n" + "".join(
    f"2024-03-30T00:0{number % 3}:0{number % 10}Z,user {number % 7},{'north' if number % 3 else 'south'},{fare}\n"
    for number, fare in enumerate([*range(0, 90, 4), "x", "nan", "1e308", "", "5e-324", "1" + "0" * 30])
)
OBJECTS = """{"timestamp": 1711756805, "user": 17, "bin": "north"}
{"timestamp": "2024-03-30T00:00:07Z", "user": 17.0, "bin": "north"}
not json
{"timestamp": "2024-03-30T00:02:07Z", "user": "anna", "bin": "south"}
"""


@pytest.mark.parametrize(
    ("name", "text", "more"),
    [
        ("events.csv", EVENTS, ["--levels", "levels.csv"]),
        pytest.param("events.jsonl", OBJECTS, [], marks=pytest.mark.nightly),
        ("events.jsonl", OBJECTS, ["--mechanism", "rg", "--set", "span=2"]),
        pytest.param("events.csv", AGAIN, ["--cap", "1/5min"], marks=pytest.mark.nightly),
        (
            "rides.csv",
            RIDES,
            shlex.split("--statistic sum:fare --between fare=0,120,0.5 --max-per-step 2 --cap 2/9"),
        ),
        (
            "rides.csv",
            RIDES,
            shlex.split(
                "--statistic people --statistic mean:fare --between fare=0,120,0.5 --statistic quantiles:fare "
                "--edges fare=0,20,50,120 --max-per-step 2 --cap 2/9"
            ),
        ),
    ],
)
def test_a_file_is_published_as_on_one_machine(tmp_path, name, text, more):
    (tmp_path / name).write_text(text)
    (tmp_path / "levels.csv").write_text("bin\nnorth\nsouth\n")
    (tmp_path / "bins.txt").write_text("north\nsouth\n")
    open_store(tmp_path / "one.db").close()
    make_twin(tmp_path / "one.db", tmp_path / "spark.db")  # the same key, so the same events are kept
    documents = []
    for store, *engine in (["one.db"], ["spark.db", "--engine", "spark"]):
        options = f"--epsilon 1000000 --window 9 --step 1min --start 2024-03-30 --until 2024-03-30T00:03 --user user \
            --bins bins.txt --mechanism uniform --json --out {store}.jsonl --store {store}".split()
        command = [sys.executable, "-m", "eventide", *with_last("publish", name, *options, *more, *engine)]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        documents.append(json.loads(done.stdout))
        assert not any(word in done.stderr for word in (" WARN ", " INFO ", "log level", "log4j", "Stage"))
    assert (tmp_path / "one.db.jsonl").read_text() == (tmp_path / "spark.db.jsonl").read_text()
    alone, spark = (document["operators_only"] for document in documents)
    assert alone | {"left_out_of_each": {}, "cut_to_range": {}} == spark  # which executors do not tell
    assert ('"total"' in (tmp_path / "spark.db.jsonl").read_text()) == ("--levels" in more)
    assert ('"window_values"' in (tmp_path / "spark.db.jsonl").read_text()) == ("rg" in more)


def test_rows_that_mostly_cannot_be_read_stop_the_first_run_and_leave_nothing_in_the_way(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS)
    options = shlex.split(
        "--epsilon 1000000 --window 3 --step 1min --start 2024-03-30 --until 2024-03-30T00:03 --user user "
        "--bins bins.txt --mechanism uniform --out out.csv --store spark.db --engine spark"
    )
    command = [sys.executable, "-m", "eventide", "publish", "events.csv", *options]
    for bins, code in (("South\n", 2), ("north\nsouth\n", 0)):
        (tmp_path / "bins.txt").write_text(bins)
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == code, done.stderr
        if code:
            assert "Most often: bin is not in the list (column 'bin'). Correct the list of bins" in done.stderr
            assert not (tmp_path / "spark.db.spark").exists()
    assert [row.split(",")[2:] for row in (tmp_path / "out.csv").read_text().splitlines()] == [
        ["north", "south"], ["1", "0"], ["0", "1"], ["1", "0"]
    ]  # fmt: skip


def test_what_spark_needs_is_asked_for(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "bins.txt").write_text("north\nsouth\n")
    command = shlex.split(
        "publish events.csv --epsilon 1 --window 3 --step 1min --bins bins.txt --user user --engine spark"
    )
    done = subprocess.run([sys.executable, "-m", "eventide", *command], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, "--store is missing" in done.stderr) == (2, True)


def test_spark_draws_from_an_account(tmp_path):
    (tmp_path / "events.csv").write_text(EVENTS)
    (tmp_path / "bins.txt").write_text("north\nsouth\n")
    create_account(tmp_path / "people.account", "everybody", 1, "4min")
    options = shlex.split(
        "--epsilon 0.6 --window 5 --step 1min --start 2024-03-30 --until 2024-03-30T00:03 --user user --bins bins.txt "
        "--mechanism uniform --account people.account --engine spark"
    )
    for name, code in (("one", 0), ("two", 3)):  # the second finds no room
        rest = ["--out", f"{name}.jsonl", "--store", f"{name}.db"]
        command = [sys.executable, "-m", "eventide", "publish", "events.csv", *options, *rest]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, text=True)
        assert done.returncode == code, done.stderr
    with open_account(tmp_path / "people.account", read_only=True) as account:
        found = account_report(account)
    assert (found.problems, [tenure.settled for tenure in found.tenures]) == ([], [True])
    assert found.worst == 600_000_000
