"""Answers to window queries beside releases: one ledger, one commit, given again and never drawn again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError, StoreError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.publisher import window_queries
from eventide.live.stores.budget_report import budget_report
from eventide.live.stores.open_store import open_store
from eventide.live.stores.stored_releases import answered_names, stored_answers
from eventide.live.stores.verification import verify
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import unpack

BINS = ["north", "south"]
QUERIES = (ev.Query(4, 2, "four"), ev.Query(9, 3))
COUNTS = np.random.default_rng(3).integers(0, 50, (60, 2))
WINDOW = 5


@pytest.fixture(autouse=True)
def snapshots_often(monkeypatch):
    monkeypatch.setattr(window_queries, "SNAPSHOT_EVERY", 8)


def publisher(path, *, of="bins", mechanism="ba", noise=None, queries=QUERIES, share=0.4, counts=COUNTS, **options):
    noise = ev.noise.Zero() if noise is None else noise
    mech = ev.mechanism(mechanism, epsilon=0.6, window=WINDOW, bins=BINS, noise=noise)
    store = None if path is None else open_store(path, for_tests=noise != "secure")
    questions = None if queries is None else ev.Questions(queries, share, of)
    return ev.Publisher(MemoryFeed(counts), mech, store, questions=questions, **options)


def lines(path):
    with closing(open_store(path, read_only=True)) as store:
        store.verify()
        return [json.loads(line) for _, line in store.releases()]


def answers(path):
    with closing(open_store(path, read_only=True)) as store:
        names = answered_names(store)
        return names, [(step, answer) for step, due in stored_answers(store, names) for answer in due]


@pytest.mark.parametrize(("mechanism", "of"), [("ba", "bins"), ("rg", "total")])
def test_stopped_after_any_step_answers_go_on_as_if_nothing_had_happened(tmp_path, mechanism, of):
    with publisher(tmp_path / "whole.db", mechanism=mechanism, of=of) as whole:
        whole.run()
    chance, step = np.random.default_rng(9), 0
    while step < len(COUNTS):
        with publisher(tmp_path / "parts.db", mechanism=mechanism, of=of) as part:
            assert part.next_step == step
            part.run(until=min(len(COUNTS), step + int(chance.integers(1, 13))))
            step = part.next_step
    assert lines(tmp_path / "parts.db") == lines(tmp_path / "whole.db")
    assert part.worst_window() == whole.worst_window()


@pytest.mark.parametrize("of", ["bins", "total"])
def test_every_window_is_answered_when_it_ends(tmp_path, of):
    with publisher(tmp_path / "s.db", of=of) as publishing:
        publishing.run()
    names, found = answers(tmp_path / "s.db")
    counts = COUNTS if of == "bins" else COUNTS.sum(axis=1, keepdims=True)
    assert names == (tuple(BINS) if of == "bins" else ("total",))
    for step, answer in found:
        assert step == answer["end"] - 1
        np.testing.assert_allclose(answer["values"], counts[answer["begin"] : answer["end"]].sum(axis=0))
    expected = [(str(query), end) for query in QUERIES for end in range(query.window, 61, query.step)]
    assert sorted((answer["query"], answer["end"]) for _, answer in found) == sorted(expected)


def test_charges_of_releases_and_answers_are_in_one_ledger(tmp_path):
    with publisher(tmp_path / "s.db", mechanism="uniform") as publishing:
        publishing.run()
        assert publishing.worst_window() == pytest.approx(1)
        sentence = str(publishing.guarantee)
    assert "with epsilon 1." in sentence
    assert "Of this epsilon 0.4 is for answers to window queries: one part in 5 of that at each step." in sentence
    with closing(open_store(tmp_path / "s.db", read_only=True)) as store:
        found = budget_report(store)
        charged = {amount for step, _, _, amount in store.entries() if step == 30}
    assert found.guarantee == sentence
    assert found.verification.holds
    assert found.verification.worst == NANO
    assert charged == {120_000_000, 80_000_000}  # a fifth of 0.6 and of 0.4
    (epoch,) = found.document()["epochs"]
    assert (epoch["epsilon"], epoch["queries"]["epsilon"]) == (1, 0.4)


def test_the_verification_counts_what_answers_were_charged(tmp_path):
    """Under an epsilon that is smaller by a billionth there would be too much."""
    with publisher(tmp_path / "s.db", mechanism="uniform") as publishing:
        publishing.run()
    with closing(open_store(tmp_path / "s.db", read_only=True)) as store:
        (epoch,) = store.epochs()
        smaller = epoch._replace(setting=epoch.setting._replace(epsilon=epoch.setting.epsilon - 1))
        assert not verify(list(store.entries()), [smaller], store.next_step()).holds


def test_secure_answers_are_given_again_as_they_are(tmp_path):
    seen = []
    for until in (10, 10, 25, 25, 60):
        with publisher(tmp_path / "s.db", noise="secure", mechanism="uniform") as publishing:
            publishing.run(until=until)
        now = lines(tmp_path / "s.db")
        assert now[: len(seen)] == seen
        seen = now
    due = [answer for line in seen for answer in line.get("answers", ())]
    errors = [np.array(each["values"]) - COUNTS[each["begin"] : each["end"]].sum(axis=0) for each in due]
    assert np.abs(errors).mean() > 1


def plan_rows(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT step, part, state FROM plan ORDER BY step").fetchall()


def test_of_open_slots_only_the_present_ones_are_kept(tmp_path):
    for until in range(1, 25):
        with publisher(tmp_path / "s.db") as publishing:
            publishing.run(until=until)
        rows = plan_rows(tmp_path / "s.db")
        parts = [part for _, part, _ in rows]
        assert (parts.count("open"), parts.count("snapshot")) == (1, 1)
        assert parts.count("released") < 8
        (kept,) = [(step, unpack(state)) for step, part, state in rows if part == "open"]
        assert kept[0] == until - 1
        sums = kept[1]["_sums"]
        assert (sums <= COUNTS[max(0, until - 12) : until].sum(axis=0)).all()
        if until % 6 == 0:  # the end of every slot
            assert not sums.any()


def test_other_queries_are_a_new_epoch(tmp_path):
    with publisher(tmp_path / "s.db", counts=COUNTS[:11]) as publishing:
        publishing.run()
    other = (ev.Query(4, 2, "four"), ev.Query(6, 6, "six"))
    with pytest.raises(InputError, match=r"queries.queries \(2 before, 2 now: 1 new and 1 gone\)"):
        publisher(tmp_path / "s.db", queries=other)
    with pytest.raises(InputError, match=r"queries.epsilon \(0.4 before, 0.3 now\)"):
        publisher(tmp_path / "s.db", share=0.3)
    with pytest.raises(InputError, match="queries"):
        publisher(tmp_path / "s.db", queries=None)
    with publisher(tmp_path / "s.db", queries=other, new_epoch=True) as publishing:
        publishing.run()
    measured_from = 10 + WINDOW  # behind the last charge
    _, found = answers(tmp_path / "s.db")
    later = [answer for step, answer in found if step > 10]
    assert min(answer["begin"] for answer in later) == 16
    assert {answer["begin"] % 6 for answer in later if answer["query"] == "six"} == {0}
    for answer in later:
        np.testing.assert_allclose(answer["values"], COUNTS[answer["begin"] : answer["end"]].sum(axis=0))
    with closing(open_store(tmp_path / "s.db", read_only=True)) as store:
        assert store.epochs()[-1].measured_from == measured_from
        assert budget_report(store).verification.holds


@pytest.mark.parametrize(
    ("statement", "sentence"),
    [
        ("UPDATE plan SET state = x'00' WHERE part = 'open'", "damaged"),
        ("UPDATE plan SET state = x'00' WHERE part = 'released'", "damaged"),
        ("UPDATE plan SET part = 'open' WHERE part = 'snapshot'", "damaged"),
        ("DELETE FROM plan WHERE part = 'open'", "damaged"),
        ("DELETE FROM plan WHERE step = (SELECT MIN(step) FROM plan)", "damaged"),
        ("DELETE FROM plan", "does not reach its last step"),
    ],
)
def test_a_changed_state_of_the_plan_is_found(tmp_path, statement, sentence):
    with publisher(tmp_path / "s.db", counts=COUNTS[:13]) as publishing:
        publishing.run()
    with closing(sqlite3.connect(tmp_path / "s.db", isolation_level=None)) as connection:
        connection.execute(statement)
    with pytest.raises(StoreError, match=sentence):
        publisher(tmp_path / "s.db")


def test_a_run_without_a_store_answers_too():
    with publisher(None, counts=COUNTS[:4]) as publishing:
        publishing.run()
        answer = json.loads(publishing.store.release(3))["answers"][0]
        assert "for this run only" in str(publishing.guarantee)
    assert (answer["query"], answer["values"]) == ("four", COUNTS[:4].sum(axis=0).tolist())


def test_truncated_answers_are_whole_and_not_negative(tmp_path):
    mech = ev.Uniform(epsilon=1, window=3, bins=BINS, noise="secure")
    asked = ev.Questions(QUERIES, 0.01, truncate=True)
    with ev.Publisher(MemoryFeed(COUNTS), mech, tmp_path / "s.db", questions=asked) as publishing:
        publishing.run()
    values = np.array([answer["values"] for _, answer in answers(tmp_path / "s.db")[1]])
    assert (values >= 0).all()
    assert (values == np.rint(values)).all()
    assert (values == 0).any()


def test_questions_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="choose bins or total"):
        ev.Questions(QUERIES, 1, "some")
    with pytest.raises(InputError, match="could not be told apart"):
        publisher(None, queries=(ev.Query(4, 2), ev.Query(4, 2)))
    with pytest.raises(InputError, match=r"leaves less than 0\.000001"):
        publisher(None, share=0.000001)
