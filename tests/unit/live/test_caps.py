"""A window sensitivity on the way from a mechanism to a store: kept, verified, told, and waited for when it changes."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from fractions import Fraction

import hypothesis.strategies as some
import numpy as np
import pytest
from click.testing import CliRunner
from command_words import with_last
from hypothesis import given
from live_stores import SETTING, a_commit, filled

import eventide as ev
from eventide.cli import main
from eventide.errors import BudgetExceeded, InputError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores.base import Epoch
from eventide.live.stores.budget_report import budget_report
from eventide.live.stores.epochs import read_setting, setting_text
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.privacy.amounts import NANO
from eventide.privacy.capped_ledger import CappedLedger
from eventide.privacy.ledger import Entry
from eventide.service.populations.claims import claims_of

CAPPED = SETTING._replace(sensitivity=2, window=6, window_sensitivity=5)
COUNTS = np.random.default_rng(3).integers(0, 50, (40, 2))


def publisher(path, *, mechanism="uniform", bound=5, counts=COUNTS, questions=None, **options):
    mech = ev.mechanism(
        *(mechanism,), epsilon=1, window=6, bins=["north", "south"], sensitivity=2, window_sensitivity=bound,
        noise=ev.noise.Zero(),
    )  # fmt: skip
    store = None if path is None else open_store(path, for_tests=True)
    return ev.Publisher(MemoryFeed(counts), mech, store, questions=questions, **options)


# Verification, which knows entries and settings only.


@given(some.lists(some.tuples(some.integers(0, 4), some.integers(0, 500)), min_size=1, max_size=40), some.data())
def test_what_a_ledger_let_through_costs_nobody_more_than_epsilon(asked, data):
    ledger = CappedLedger("0.000003", window=6, sensitivity=2, window_sensitivity=5)
    ledger.entries = entries = []
    for action, amount in asked:
        try:
            if action < 2:
                ledger.charge(amount)
            elif not ledger.open_spans(str(action)).any():
                ledger.open_span(amount, str(action))
            else:
                ledger.close_span(lane=str(action))
        except BudgetExceeded:
            pass
        ledger.advance()
    found = verify(entries, [Epoch(0, 0, 0, CAPPED._replace(epsilon=3000))], ledger.step)
    assert found.holds
    assert found.worst == round(ledger.worst_window() * NANO)
    changed = data.draw(some.lists(some.integers(0, 2), min_size=ledger.step, max_size=ledger.step))
    while sum(changed) > 5:
        changed[max(range(ledger.step), key=changed.__getitem__)] -= 1
    assert lost(entries, changed, sensitivity=2) <= 3000


def lost(entries, changed, sensitivity):
    """What the proof says that a person loses: points by the change of their step, runs by their largest."""
    total, opened = Fraction(0), {}
    for entry in entries:
        if entry.kind == "point":
            total += Fraction(entry.amount * changed[entry.step], sensitivity)
        elif entry.kind == "open":
            opened[entry.lane] = entry
        else:
            begun = opened.pop(entry.lane)
            total += Fraction(begun.amount * max(changed[begun.step : entry.step + 1]), sensitivity)
    for begun in opened.values():
        total += Fraction(begun.amount * max(changed[begun.step :]), sensitivity)
    return total


def test_a_step_over_its_part_is_found_and_said():
    most = NANO * 2 // 5
    entries = [Entry(0, "point", "", most), Entry(1, "open", "run", 1), Entry(1, "point", "", most - 1)]
    epochs = [Epoch(0, 0, 0, CAPPED)]
    assert verify(entries, epochs, 3).holds
    assert verify(entries, epochs, 3).worst == NANO
    found = verify([*entries, Entry(2, "point", "", most), Entry(3, "point", "", NANO // 2)], epochs, 4)
    assert found.problems == ["by the charges of step 2 one person can lose 1 of 1, and 1 more steps are over"]
    assert (found.worst, found.worst_end) == (-(-(NANO // 2 + 1) * 5 // 2), 3)


def test_no_number_is_too_large_for_it():
    huge = CAPPED._replace(window_sensitivity=10**9)
    found = verify([Entry(0, "point", "", 2**61)], [Epoch(0, 0, 0, huge)], 1)
    assert found.worst == 2**61 * 10**9 // 2
    assert not found.holds


# What a store keeps.


def test_a_setting_without_one_reads_as_it_always_did():
    assert "window_sensitivity" not in setting_text(SETTING)
    assert read_setting(setting_text(SETTING)) == SETTING
    assert read_setting(setting_text(CAPPED)) == CAPPED


def test_a_store_keeps_the_promise_and_the_charges_of_steps(tmp_path):
    with publisher(tmp_path / "city.db") as whole:
        whole.run()
        assert (whole.epsilon, whole.worst_window()) == (1, 1)
        assert "the counts change by at most 5, over all steps and bins together" in str(whole.guarantee)
        assert "trusted to keep these bounds" in str(whole.guarantee)
    with closing(open_store(tmp_path / "city.db", read_only=True)) as store:
        setting, entries = store.epochs()[0].setting, list(store.entries())
        report = budget_report(store)
    assert (setting.epsilon, setting.window, setting.sensitivity, setting.window_sensitivity) == (NANO, 6, 2, 5)
    assert "window_sensitivity" not in setting.mechanism["parameters"]
    assert [entry.amount for entry in entries] == [NANO * 2 // 5] * len(COUNTS)
    assert report.verification.holds
    assert (report.verification.worst, report.returns[0].left) == (NANO, 1.0)
    assert report.document()["epochs"][0]["window_sensitivity"] == 5


@pytest.mark.parametrize("mechanism", ["uniform", "dsat"])
def test_it_goes_on_where_it_stopped(tmp_path, mechanism):
    with publisher(tmp_path / "whole.db", mechanism=mechanism) as whole:
        whole.run()
        expected = [line for _, line in whole.store.releases()]
    for until in (7, 20, None):
        with publisher(tmp_path / "parts.db", mechanism=mechanism) as part:
            part.run(until)
            found = [line for _, line in part.store.releases()]
    assert found == expected
    assert part.worst_window() == whole.worst_window() <= 1


# Epochs: with w = 6 counts change within 11 steps, of which the last charged is the first.


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (CAPPED, CAPPED._replace(window_sensitivity=4), "window_sensitivity (5 before, 4 now)"),
        (CAPPED, CAPPED._replace(window_sensitivity=None), "window_sensitivity (5 before, nothing now)"),
        (CAPPED._replace(window_sensitivity=None), CAPPED, "window_sensitivity (nothing before, 5 now)"),
    ],
)
def test_another_bound_is_another_epoch_that_waits_for_two_windows(tmp_path, before, after, said):
    filled(tmp_path / "city.db", setting=before).close()
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="--new-epoch") as refusal:
        store.begin(after)
    assert said in str(refusal.value)
    assert store.begin(after, new_epoch=True).measured_from == 4 + 11
    for step in range(5, 16):
        store.commit(a_commit(step, charge=100 if step == 15 else 0))
    assert verify(store.entries(), store.epochs(), 16).holds
    epochs, early = store.epochs(), Entry(14, "point", "", 100)
    store.close()
    epochs[1] = epochs[1]._replace(measured_from=14)
    found = verify([Entry(4, "point", "", 100), early], epochs, 16)
    assert found.problems == [
        "a window of 11 steps with those behind it holds step 4 of one epoch and step 14 of a later one"
    ]


def test_after_a_restore_two_windows_count_as_spent(tmp_path):
    path = tmp_path / "city.db"
    filled(path, 3, setting=CAPPED).close()
    shutil.copy(path, tmp_path / "backup.db")
    with closing(open_store(path)) as store:
        store.begin(CAPPED)
        for step in range(3, 9):
            store.commit(a_commit(step))
    shutil.copy(tmp_path / "backup.db", path)
    with closing(open_store(path)) as store:
        store.begin(CAPPED, after_restore=True)
        assert store.after_restore(9).measured_from == 8 + 11
    with closing(open_store(path)) as store:
        store.begin(CAPPED, after_restore=True)
        assert store.after_restore(9, longest_window=20).measured_from == 8 + 39


# Window queries beside releases.


def test_answers_have_their_part_of_every_step(tmp_path):
    questions = ev.Questions((ev.Query(4, 2, "four"), ev.Query(9, 3)), "0.25")
    with publisher(tmp_path / "whole.db", questions=questions) as whole:
        whole.run()
        expected = [line for _, line in whole.store.releases()]
        assert whole.epsilon == 1.25
        assert 1 < whole.worst_window() <= 1.25
        assert "Of this epsilon 0.25 is for answers to window queries." in str(whole.guarantee)
    for until in (11, None):
        with publisher(tmp_path / "parts.db", questions=questions) as part:
            part.run(until)
            assert [line for _, line in part.store.releases()] == expected[: part.next_step]
            report = budget_report(part.store)
    assert part.worst_window() == whole.worst_window()
    assert report.verification.holds
    assert 1 < report.verification.worst / NANO <= 1.25
    totals = report.charged() * NANO
    assert totals.max() <= 1.25 * NANO * 2 / 5
    assert totals.min() > NANO * 2 // 5  # the plan measures at every step too


# What is refused.


def test_events_are_not_bounded_by_trust(tmp_path):
    (tmp_path / "events.csv").write_text("timestamp,user,bin\n2026-01-01T00:00:00Z,ann,a\n")
    mechanism = ev.Uniform(1, 6, ["a"], window_sensitivity=3)
    with pytest.raises(InputError, match="window_sensitivity is for ready-made counts"):
        ev.Publisher(str(tmp_path / "events.csv"), mechanism, step="1h", user="user")


def test_streams_of_a_service_do_not_share_people_with_counts(tmp_path):
    with (
        closing(filled(tmp_path / "city.db", setting=CAPPED._replace(steps={}))) as store,
        pytest.raises(InputError, match="steps that have no times; give each stream of a service a store of its own"),
    ):
        claims_of(store)


# The command line.


def called(*words):
    ended = CliRunner().invoke(main, with_last(*words))
    return ended.exit_code, ended.stdout, ended.stderr


@pytest.fixture
def counts(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text("\n".join(["north,south", *(f"{a},{b}" for a, b in COUNTS)]))
    return path


def published(counts, *words):
    settings = ("--epsilon", 1, "--window", 6, "--sensitivity", 2, "--mechanism", "uniform")
    return called("publish", counts, *settings, "--out", counts.with_suffix(".jsonl"), *words)


def test_counts_are_published_and_the_ledger_shows_what_one_person_lost(counts):
    store = counts.with_suffix(".db")
    code, _, said = published(counts, "--window-sensitivity", 5, "--store", store)
    assert code == 0, said
    assert "One person lost in any 6 steps at most 1 of epsilon 1." in said
    assert "the counts change by at most 5, over all steps and bins together. The counts are trusted" in said
    lines = [json.loads(line) for line in counts.with_suffix(".jsonl").read_text().splitlines()]
    assert {scale for line in lines for scale in line["scale"]} == {5}  # C / epsilon, not 12
    code, out, _ = called("ledger", store)
    assert code == 0
    assert "epsilon that one person lost in 6 steps" in out
    assert "window 6, window sensitivity 5, 2 bins" in out
    assert (
        "Verified from the stored charges of 40 steps: nobody lost more than epsilon in a window; the most is 1." in out
    )
    report = json.loads(called("ledger", store, "--json")[1])
    assert report["charged"] == [0.4] * 40
    assert report["in_windows"] == [1.0] * 40


def test_a_store_that_cost_somebody_too_much_has_exit_code_4(tmp_path):
    with closing(filled(tmp_path / "city.db", 0, setting=CAPPED)) as store:
        line = b'{"step": 0, "fresh": true, "values": [3, 4], "scale": [2, 2]}'
        store.commit(a_commit(0, charge=NANO * 2 // 5 + 1)._replace(release=line))
    code, out, _ = called("ledger", tmp_path / "city.db")
    assert code == 4
    assert "by the charges of step 0 one person can lose 1 of 1" in out


def test_a_dry_run_says_what_would_be_lost(counts):
    code, _, said = published(counts, "--window-sensitivity", 5, "--dry-run")
    assert code == 0, said
    assert "one measurement: 5. One person would lose in any 6 steps at most 1 of epsilon." in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--window-sensitivity", 12), "so it brings nothing"),
        (("--window-sensitivity", 5, "--mechanism", "ba"), "ba cannot be published with a cap"),
        (("--window-sensitivity", 5, "--time", "t", "--bins", 2, "--step", "1h"), "for events give --cap"),
    ],
)
def test_what_does_not_go_together_is_refused(counts, words, says):
    code, _, said = (
        published(counts, *words)
        if "--time" not in words
        else called("publish", counts, "--epsilon", 1, "--window", 6, *words)
    )
    assert code == 2, said
    assert says in " ".join(said.split())


def test_queries_alone_do_not_take_it(counts, tmp_path):
    (tmp_path / "q.toml").write_text("[[query]]\nwindow = 4\nstep = 2\n")
    words = ("--epsilon", 1, "--queries", tmp_path / "q.toml", "--window-sensitivity", 5)
    code, _, said = called("publish", counts, *words, "--out", tmp_path / "answers.csv")
    assert code == 2
    assert "give --queries-epsilon to answer queries besides" in " ".join(said.split())
