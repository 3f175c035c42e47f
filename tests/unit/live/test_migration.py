"""A store of the first version loses the positions of all steps but the last, and nothing else; nor if it is killed."""

import json
import os
import sqlite3
from contextlib import closing

import pytest
from landed import copied, eventide, kept
from live_stores import SETTING, a_commit, in_a_child, listing
from old_stores import make_old_file, mark_of, position_of, release_of

from eventide.errors import StoreError
from eventide.live.stores.open_store import open_store
from eventide.privacy.ledger import Entry

STEPS = 120
OF_ALL_KINDS = {"counts-ba", "events-csv", "input", "killed", "queries-two-epochs", "restored"}


@pytest.fixture
def old(tmp_path):
    return make_old_file(tmp_path / "city.db", STEPS)


def check_content(store):
    """Whatever an old store held is there, whoever reads it."""
    store.verify()
    assert list(store.releases()) == [(step, release_of(step)) for step in range(STEPS)]
    assert list(store.entries()) == [Entry(step, "point", "", 100) for step in range(STEPS)]
    assert store.epochs()[0].guarantee == "Nobody is told apart."
    assert store.kept() == [(STEPS, b"tally")]


def check_goes_on(path):
    with closing(open_store(path)) as store:
        check_content(store)
        standing = store.begin(SETTING)
        assert (standing.next_step, standing.snapshot, standing.recorded) == (STEPS, b"state", [])
        assert standing.position == position_of(STEPS - 1)
        store.commit(a_commit(STEPS))
        store.verify()


def marks_left(folder):
    """The steps whose positions are anywhere in the files of a folder."""
    content = b"".join(path.read_bytes() for path in folder.iterdir())
    return [step for step in range(STEPS) if mark_of(step) in content]


def test_no_old_position_is_left_in_the_file_or_its_log(old, tmp_path):
    assert marks_left(tmp_path) == list(range(STEPS))
    with closing(open_store(old)) as store:
        assert marks_left(tmp_path) == [STEPS - 1]
        check_content(store)
    check_goes_on(old)
    assert marks_left(tmp_path) == []


LONG = [pytest.param(point, marks=pytest.mark.slow) for point in ("migrating-step:100", "after-migration")]


@pytest.mark.parametrize("point", ["inside-migration", *LONG])
def test_killed_in_the_middle_it_goes_on(old, tmp_path, point, monkeypatch):
    with monkeypatch.context() as dying:
        dying.setenv("EVENTIDE_FAULT", point)
        in_a_child("open_store(path)", old, dies=-9)
    with closing(open_store(old, read_only=True)) as store:
        check_content(store)
    open_store(old).close()
    assert marks_left(tmp_path) == [STEPS - 1]
    check_goes_on(old)


def test_a_log_that_a_reader_held_is_cut_later(old, tmp_path, monkeypatch):
    monkeypatch.setattr("eventide.live.stores.sqlite_database.CUT_LOG_EVERY", 0)
    with closing(sqlite3.connect(old)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT * FROM head").fetchall()
        store = open_store(old)
        assert STEPS - 2 in marks_left(tmp_path)
    with closing(store):
        store.begin(SETTING)
        store.commit(a_commit(STEPS))
        assert marks_left(tmp_path) == []


def test_a_reader_takes_an_old_store_as_it_is(old, tmp_path):
    before = listing(tmp_path)
    with closing(open_store(old, read_only=True)) as store:
        check_content(store)
    assert {name: data for name, data in listing(tmp_path).items() if data} == before


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_reader_of_an_old_store_needs_no_right_to_write(everybodys_folder):
    path = make_old_file(everybodys_folder / "city.db", STEPS)
    path.chmod(0o644)
    code = """
os.setgid(65534); os.setuid(65534)
store = open_store(path, read_only=True)
store.verify()
print(store.next_step())
"""
    assert in_a_child(code, path) == f"{STEPS}\n"


@pytest.mark.parametrize(
    "place", [place for place in kept("stores/*") if place.name in OF_ALL_KINDS], ids=lambda place: place.name
)
def test_stores_of_landed_versions_are_read_as_they_are(place, tmp_path):
    folder = copied(place, tmp_path)
    ledger, data = json.loads((folder / "ledger.json").read_text()), (folder / "store.db").read_bytes()
    found = json.loads(eventide(folder, ["ledger", "STORE", "--json"]))
    assert (found["charged"], found["verification"]) == (ledger["charged"], ledger["verification"])
    eventide(folder, ["export", "STORE", "--out", "exported.jsonl"])
    steps = [json.loads(line)["step"] for line in (folder / "exported.jsonl").read_text().splitlines()]
    assert steps == [json.loads(line)["step"] for line in (folder / "released.jsonl").read_text().splitlines()]
    assert (folder / "store.db").read_bytes() == data


@pytest.mark.parametrize(
    "place", [place for place in kept("stores/events-*") if "landed-1" in place.parts], ids=lambda place: place.name
)
def test_stores_of_landed_versions_lose_their_old_positions(place, tmp_path):
    store = copied(place, tmp_path) / "store.db"
    query = "SELECT position FROM step WHERE position != 'null' ORDER BY step"
    with closing(sqlite3.connect(store)) as connection:
        positions = [text.encode() for (text,) in connection.execute(query)]
    open_store(store).close()
    assert len(set(positions)) > 1
    content = store.read_bytes()
    assert {text for text in positions if text in content} == {positions[-1]}


def test_a_reader_that_a_migration_overtook_says_what_to_do(old):
    with closing(open_store(old, read_only=True)) as reader:
        assert reader.release(3) == release_of(3)
        open_store(old).close()
        with pytest.raises(StoreError, match=r"brought to another version meanwhile.*start again"):
            reader.release(3)


def test_a_row_that_was_damaged_before_is_still_found(old):
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("UPDATE step SET release = x'00' WHERE step = 3")
        connection.execute("UPDATE step SET position = 'null' WHERE step = 5")
    with closing(open_store(old)) as store:
        for step in (3, 5):
            with pytest.raises(StoreError, match=f"damaged: step {step}"):
                store.release(step)
        assert store.release(4) == release_of(4)


def test_a_head_without_its_step_is_found_and_nothing_is_changed(old, tmp_path):
    with closing(sqlite3.connect(old, isolation_level=None)) as connection:
        connection.execute("UPDATE head SET step = 999")
    with pytest.raises(StoreError, match="damaged"):
        open_store(old)
    assert marks_left(tmp_path) == list(range(STEPS))
