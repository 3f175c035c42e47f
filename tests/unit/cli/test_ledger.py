"""`eventide ledger`: what was spent, what is left and when it comes back, and exit codes that can be relied on."""

import json
import sqlite3

import pytest

from eventide.cli import main
from eventide.cli.ledger import bar_lines
from eventide.live.stores.base import Commit, StoreSetting
from eventide.live.stores.open_store import open_store
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry

SETTING = StoreSetting("riders", {"name": "ba"}, NANO, 4, 1, ("north", "south"), {"step": "10min"}, "secure")


@pytest.fixture
def run(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as ended:
            main(["ledger", *words])
        return ended.value.code, *capsys.readouterr()

    return call


def a_commit(step, entries, timed=True):
    start = f'"start": "2026-03-01T{step // 6:02d}:{step % 6}0:00+00:00", ' if timed else ""
    line = f'{{"step": {step}, {start}"fresh": true, "values": [3, 4], "scale": [2, 2]}}'
    return Commit(step, [Entry(step, *entry) for entry in entries], line.encode(), b"", None, None)


def made(charges, timed=True, **options):
    """A store with these charges in nano, step by step; a number is a point."""
    store = open_store("city.db", **options)
    store.begin(SETTING)
    for step, charged in enumerate(charges):
        entries = [("point", "", charged)] if isinstance(charged, int) else charged
        store.commit(a_commit(step, [entry for entry in entries if entry[2]], timed))
    return store


# step      0    1    2    3    4    | 5    6    7    8
# charge    .1   .2   .3   .4   0    |
# window    .1   .3   .6   1    .9   | .7   .4   0         of the 4 steps that end there
# left                               | .3   .6   1
def test_what_is_left_comes_back_when_charges_leave_the_window(run):
    made([NANO // 10, NANO // 5, 3 * NANO // 10, 2 * NANO // 5, 0]).close()
    code, out, _ = run("city.db", "--json")
    found = json.loads(out)
    assert code == 0
    assert found["charged"] == pytest.approx([0.1, 0.2, 0.3, 0.4, 0])
    assert found["in_windows"] == pytest.approx([0.1, 0.3, 0.6, 1.0, 0.9])
    assert [(one["step"], round(one["left"], 9)) for one in found["returns"]] == [(5, 0.3), (6, 0.6), (7, 1.0)]
    assert [one["start"] for one in found["returns"]] == [
        f"2026-03-01T{time}:00+00:00" for time in ("00:50", "01:00", "01:10")
    ]
    assert found["verification"] == {"holds": True, "problems": [], "worst_window": 1.0, "worst_window_ends": 3}
    assert (found["steps"], found["people"], found["epochs"][0]["window"]) == (5, "riders", 4)


def test_an_open_span_does_not_come_back(run):
    made([[("open", "x", NANO // 2)], 0, 0, NANO // 2, 0, 0]).close()
    found = json.loads(run("city.db", "--json")[1])
    assert [(one["step"], one["left"]) for one in found["returns"]] == [(6, 0.0), (7, 0.5)]


def test_a_person_reads_it_without_a_manual(run):
    made([NANO // 4] * 40).close()
    code, out, _ = run("city.db")
    assert code == 0
    assert out.startswith("All events of one person inside any 4 consecutive steps")
    assert "for this run only" not in out
    assert "█" * 37 in out
    assert "0.25  at step 40 (2026-03-01T06:40:00+00:00)" in out
    assert "Verified from the stored charges of 40 steps: no window was over epsilon; the fullest, 1, ends at" in out


def test_the_publishers_own_sentence_is_shown(run):
    store = made([1])
    store.promise("Every event on its own is hidden.")
    store.close()
    assert run("city.db")[1].startswith("Every event on its own is hidden.\n")


def test_a_store_for_tests_says_so(run):
    made([1], for_tests=True).close()
    assert run("city.db")[1].startswith("NOT PRIVATE (this store was made for tests): All events")


def test_steps_without_a_clock_have_no_times(run):
    made([1, 1, 1], timed=False).close()
    code, out, _ = run("city.db")
    assert code == 0
    assert "at step 3\n" in out


def test_a_window_over_epsilon_is_exit_code_4(run):
    made([0, NANO // 2, NANO // 2, 1, 0, 0]).close()
    code, out, _ = run("city.db")
    assert code == 4
    assert "NOT KEPT:\n  the window that ends at step 3 was charged 1 of 1, and 1 more windows are over" in out
    code, out, _ = run("city.db", "--json")
    assert code == 4
    assert not json.loads(out)["verification"]["holds"]


def test_epochs_are_told(run):
    made([1, 1, 1]).close()
    store = open_store("city.db")
    store.begin(SETTING._replace(window=6, epsilon=NANO // 2), new_epoch=True)
    store.commit(a_commit(3, []))
    store.close()
    code, out, _ = run("city.db")
    assert code == 0
    assert "nothing is measured before step 8" in out
    assert "from step 3: ba, epsilon 0.5, window 6, 2 bins, people 'riders', measured from 8" in out
    found = json.loads(run("city.db", "--json")[1])
    assert [(one["step"], one["left"]) for one in found["returns"]] == [(4, 0.0), (8, 0.5)]


def test_a_new_epoch_with_a_shorter_window_waits_for_the_longer_one(run):
    made([1, 1, 1]).close()
    store = open_store("city.db")
    store.begin(SETTING._replace(window=1), new_epoch=True)
    store.close()
    found = json.loads(run("city.db", "--json")[1])
    assert [(one["step"], one["left"]) for one in found["returns"]] == [(3, 0.0), (6, 1.0)]


@pytest.mark.parametrize(
    "statement", ["UPDATE step SET release = x'00' WHERE step = 1", "UPDATE step SET entries = '[]' WHERE step = 1"]
)
def test_damage_is_exit_code_5(run, statement):
    made([1, 1, 1]).close()
    connection = sqlite3.connect("city.db")
    connection.execute(statement)
    connection.commit()
    connection.close()
    code, out, err = run("city.db")
    assert (code, out) == (5, "")
    assert err.startswith("Error: ")
    assert "damaged" in err
    assert err.count("\n") == 1


def test_other_refusals(run, tmp_path):
    assert run("none.db")[0] == 2
    (tmp_path / "empty.db").touch()
    assert run("empty.db")[0] == 5
    open_store("new.db").close()
    code, _, err = run("new.db")
    assert code == 2
    assert "nothing was ever published" in err
    made([]).close()
    assert run("city.db")[0] == 0  # begun, and nothing spent yet


def test_it_works_while_a_writer_writes(run):
    store = made([NANO // 8] * 3)
    assert run("city.db")[0] == 0
    store.commit(a_commit(3, [("point", "", 5)]))
    assert json.loads(run("city.db", "--json")[1])["steps"] == 4
    store.close()


def test_bars_show_the_largest_of_each_stretch():
    (line,) = bar_lines([0, 0, 1, 9, 4, 8], top=8, width=3, height=1)
    assert line == " ▲█"
    assert bar_lines([], top=1, width=5, height=2) == ["", ""]
    (tiny,) = bar_lines([1e-9, 1], top=1, width=5, height=1)
    assert tiny == "▁█"
