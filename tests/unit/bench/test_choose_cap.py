"""A cap is chosen on what it lets count, as a feed counts it, and by the error against what was there before it."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from plain_bounding import rank_message, siphash

from eventide import cli
from eventide.bench import choose_cap, describe_people, read_people
from eventide.bench.choose.choice import UNPAID
from eventide.bench.choose.choose_cap import counted_under
from eventide.bench.choose.history import MOST_BINS, MOST_STEPS
from eventide.bench.choose.people import People
from eventide.errors import InputError
from eventide.events.bounding_kernels import block_ends
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.siphash_kernels import key_words
from eventide.events.tally import UserTally

KEY = bytes(range(16))
WEEKS = {"people": 3000, "events_per_week": 0.3, "step": "1d", "steps": 90}
SMALL = {"epsilon": 1.0, "window": 30, "mechanisms": ["uniform"], "repetitions": 5}


@pytest.fixture(scope="module")
def seldom():
    return describe_people(**WEEKS)


@pytest.fixture(scope="module")
def choice(seldom):
    return choose_cap(seldom, **SMALL)


def people_of(step, person, bin_, steps):
    names = tuple(map(str, range(bin_.max() + 1)))
    return People(step, person, bin_, steps, "1h", names, "some events")


@pytest.mark.parametrize(("most", "cap"), [(1, Cap(1, 6)), (1, Cap(3, 6)), (2, Cap(2, 5)), (3, Cap(4, 24))])
def test_what_counts_is_what_a_feed_counts(most, cap):
    """With the key's own order and offsets, the events of a history count as those of a tally with a memory do."""
    chance, steps, users, size = np.random.default_rng(3), 40, 15, 3
    step = np.sort(chance.integers(steps, size=600))
    person, bins = chance.integers(users, size=600), chance.integers(size, size=600)
    alike = [(step == step[row]) & (person == person[row]) & (bins == bins[row]) for row in range(600)]
    occurrence = [int(same[:row].sum()) for row, same in enumerate(alike)]
    key, names = key_words(KEY), np.arange(users, dtype=np.uint64)
    rows = zip(person, step, bins, occurrence, strict=True)
    order = siphash(KEY, [rank_message(*map(int, row)) for row in rows])
    offsets = cap.block - 1 - block_ends(names, key, 0, cap.block)
    places = people_of(step, person, bins, steps).places(cap.block, most, offsets, order)
    found = people_of(step, person, bins, steps).counts(places < cap.events)
    memory = CapMemory(cap, KEY)
    for now in range(steps):
        tally = UserTally(size, most, KEY)
        tally.add(names[person[step == now]], bins[step == now].astype(np.int32))
        assert (found[now] == tally.capped_counts(now, memory)[0]).all()
    assert 0 < found.sum() < 600


def test_errors_are_against_what_was_there_before_the_cap(seldom, choice):
    counted = counted_under(seldom, [Cap(2, 30)], 1, 5, seed=1)
    truth, capped = counted[None], counted[Cap(2, 30)]
    trial = next(trial for trial in choice.trials if trial.cap == Cap(2, 30))
    assert trial.left_out == pytest.approx(np.abs(truth - capped).mean())
    assert trial.missing == pytest.approx(1 - capped.sum() / truth.sum())
    assert trial.noise == pytest.approx(8, rel=0.1)  # the scale of the noise: 2 * 2 * 2 / epsilon
    assert max(trial.noise, trial.left_out) < trial.error < trial.noise + trial.left_out
    assert trial.low <= trial.error <= trial.high
    assert (truth[0] == np.bincount(np.unique(seldom.step * 3000 + seldom.person) // 3000, minlength=90)[:, None]).all()


def test_every_repetition_has_a_secret_of_its_own(seldom):
    capped = counted_under(seldom, [Cap(1, 30)], 1, 2, seed=1)[Cap(1, 30)]
    assert (capped[0] != capped[1]).any()
    assert (counted_under(seldom, [Cap(1, 30)], 1, 2, seed=1)[Cap(1, 30)] == capped).all()


def test_the_best_cap_is_named_with_what_it_leaves_out_and_what_is_best_without(choice):
    assert choice.best.cap is not None
    assert choice.best.error == min(trial.error for trial in choice.trials)
    assert choice.without.cap is None
    assert choice.without.noise == pytest.approx(30, rel=0.1)
    name = f"{choice.best.cap.events}/30d"
    assert choice.verdict.startswith(f"Take the cap {name} with uniform: expect")
    assert f"The best without a cap is uniform, off by {choice.without.error:.3g}" in choice.verdict
    assert f"at most {choice.best.cap.events} events in 30 days would count" in choice.reading[1]


def test_what_the_limit_in_a_step_leaves_out_before_any_cap_is_said():
    """Twenty events at once of everybody: 1 of 20 is left, and the cap leaves out few of those."""
    step, person = np.repeat(np.arange(40), 60), np.tile(np.repeat(np.arange(3), 20), 40)
    bursts = people_of(step, person, np.zeros(2400, np.int64), 40)
    choice = choose_cap(bursts, epsilon=1.0, window=10, caps=[Cap(1, 10)], mechanisms=["uniform"], repetitions=2)
    assert choice.beyond == 0.95
    assert choice.reading[0].startswith("At most 1 event of a person in a step counts, which leaves out 95 % of the")
    whole = replace(choice, beyond=0.0)
    assert not any("leaves out 95 %" in line for line in whole.reading)
    capped = replace(choice, trials=tuple(trial for trial in choice.trials if trial.cap))
    assert "of those that this limit leaves" in capped.reading[1]
    assert "of the events" in replace(capped, beyond=0.0).reading[0]


def test_caps_that_cannot_help_are_said_to_be_useless_and_not_tried(choice):
    assert {trial.cap.events for trial in choice.trials if trial.cap} == set(range(1, 8))
    assert choice.useless == tuple(Cap(events, 30) for events in range(8, 13))  # C = 4 * 8 >= 30
    assert "Useless, and not tried: 8/30d, 9/30d, 10/30d, 11/30d, 12/30d." in str(choice)


def test_where_everybody_acts_all_the_time_no_cap_helps():
    busy = people_of(np.repeat(np.arange(40), 50), np.tile(np.arange(50), 40), np.zeros(2000, np.int64), 40)
    found = choose_cap(busy, epsilon=50.0, window=8, mechanisms=["uniform"], repetitions=2)
    assert found.best is found.without
    assert found.verdict.startswith("No cap that was tried helps: without one uniform is off by")
    only = choose_cap(busy, epsilon=1.0, window=8, caps=[Cap(2, 8)], mechanisms=["uniform"], repetitions=1)
    assert only.useless == (Cap(2, 8),)
    assert [trial.cap for trial in only.trials] == [None]


def test_the_same_arguments_give_the_same_choice(seldom, choice):
    assert choose_cap(seldom, **SMALL).trials == choice.trials
    assert choose_cap(seldom, seed=2, **SMALL).trials != choice.trials


def test_behind_a_cap_tide_has_the_seasons_that_publishing_gives_it(seldom, monkeypatch):
    tried = []

    def released(mechanism, counts):
        tried.append((mechanism.window_sensitivity, mechanism.seasons))
        return SimpleNamespace(values=counts)

    monkeypatch.setattr(sys.modules["eventide.bench.choose.choose_cap"], "run", released)
    choose_cap(seldom, epsilon=1.0, window=30, caps=[Cap(1, 30)], mechanisms=["tide"], repetitions=1)
    assert tried == [(None, None), (4, (7.0,))]


def test_described_people_act_as_often_as_said_and_differ():
    made = describe_people(people=4000, events_per_week=2, step="1d", steps=70, season=7, bins=300)
    events = np.bincount(made.person, minlength=4000)
    assert events.mean() == pytest.approx(20, rel=0.05)
    assert (events < 5).mean() > 0.15  # many act seldom
    assert (events > 40).mean() > 0.1
    by_day = np.bincount(made.step, minlength=70).reshape(10, 7).sum(axis=0)
    assert by_day[0] == 0
    assert by_day[3] > 1.8 * by_day.mean()
    assert len(made.bins) == MOST_BINS
    assert made.notes == ("200 of the 300 bins were tried, drawn at random",)
    assert made.made_up


@pytest.fixture
def history(tmp_path, seldom):
    days = np.datetime64("2026-01-01") + seldom.step
    lines = [f"{day},p{person},{'ab'[person % 2]}" for day, person in zip(days, seldom.person, strict=True)]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["at,who,where", *lines, "2026-01-02,,a"]))
    return str(path)


def test_a_file_of_events_has_the_same_people(history, seldom):
    found = read_people(history, "1d", 30, "who", "at")
    assert (found.steps, found.bins) == (90, ("all events",))
    assert len(found.step) == len(seldom.step)  # and not the one without a person
    assert sorted(np.bincount(found.person)) == sorted(np.bincount(np.unique(seldom.person, return_inverse=True)[1]))
    assert (np.bincount(found.step) == np.bincount(seldom.step)).all()
    assert sorted(read_people(history, "1d", 30, "who", "at", "where").bins) == ["a", "b"]


def test_of_a_long_history_the_last_steps_are_tried(tmp_path):
    path = tmp_path / "long.csv"
    times = np.datetime64("2026-01-01T00") + np.arange(0, 3000, 10)
    path.write_text("\n".join(["timestamp,user", *(f"{time}:00,{row % 7}" for row, time in enumerate(times))]))
    found = read_people(path, "1h", 24, "user")
    assert found.steps == MOST_STEPS
    assert found.step.min() >= 0
    assert found.step.max() == MOST_STEPS - 1
    assert found.notes == ("the last 2,000 of the 2,991 steps were tried",)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"window": 91}, "has 90 steps, fewer than the window of 91"),
        ({"window": 0}, "window is 0"),
        ({"max_per_step": 0}, "max_per_step is 0"),
        ({"epsilon": 0}, "epsilon is 0"),
        ({"mechanisms": ["ba"]}, "ba cannot be published with a cap"),
        ({"mechanisms": None, "parameters": {"k": 2}}, "parameters belong to mechanisms that are named"),
        ({"caps": [Cap(1, 30)], "max_per_step": 2}, "more than the 1 of a block"),
    ],
)
def test_what_cannot_be_tried_is_refused(seldom, changed, message):
    with pytest.raises(InputError, match=message):
        choose_cap(seldom, **SMALL | changed)


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"people": 0}, "at least one"), ({"season": 1}, "is none"), ({"events_per_week": 1e9}, "10,000,000 events")],
)
def test_people_who_cannot_be_made_up_are_refused(changed, message):
    with pytest.raises(InputError, match=message):
        describe_people(**WEEKS | changed)


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cli.main(["choose", *map(str, words)])
    return ended.value.code, *capsys.readouterr()


QUICK = ("--epsilon", 1, "--window", "30d", "--step", "1d", "--mechanism", "uniform", "--repetitions", 2)
DESCRIBED = ("--people", 3000, "--events-per-week", 0.3, "--steps", 90)


def test_the_command_shows_errors_and_a_picture(capsys, history, tmp_path):
    out = tmp_path / "caps.html"
    code, said, _ = run(capsys, history, "--user", "who", "--time", "at", *QUICK, "--out", out)
    assert code == 0
    words = " ".join(said.split())
    assert "Take the cap" in words
    assert UNPAID in words
    assert "Useless, and not tried: 8/30d" in words
    assert "--user who --step 1d --time at --bin BIN --bins BINS --epsilon 1 --window 30d --cap" in words
    page = out.read_text(encoding="utf-8")
    body = page[page.index("<body>") : page.index("<script>")]
    assert "Which cap?" in body
    assert "it is as confidential as the history" in body
    assert "error from what is left out" in body
    assert '"what is left out"' in page
    assert '"noise of uniform"' in page


def test_the_document_has_every_trial(capsys):
    code, said, errors = run(capsys, *DESCRIBED, *QUICK, "--cap", "1/15d", "--cap", "3/30d", "--cap", "9/30d", "--json")
    assert (code, errors) == (0, "")
    document = json.loads(said)
    assert [trial["cap"] for trial in document["trials"]] == [None, "1/15d", "3/30d"]
    assert document["useless"] == ["9/30d"]
    assert document["best"] in document["trials"]
    assert document["warning"] is None
    again = json.loads(run(capsys, *shlex.split(document["repeat"])[2:], "--json")[1])
    assert again["repetitions"] == 10
    assert again["level"] == document["level"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*DESCRIBED, "--level", 5, *QUICK), "--level describes counts, and caps are for people"),
        (("--people", 9, *QUICK), "--people needs --events-per-week"),
        (("{history}", *DESCRIBED, *QUICK), "exclude each other; leave out --people"),
        (("{history}", "--user", "who", "--people", 9, *QUICK), "--user names a column of a HISTORY"),
        (("--user", "who", *QUICK), "--user names a column of a HISTORY"),
        (("{history}", "--cap", "2/7d", *QUICK), "--cap is for choosing a cap; name the column of people"),
        (("--people", 9, "--events-per-week", 1, "--epsilon", 1, "--window", 9), "choosing a cap needs --step"),
        ((*DESCRIBED, *QUICK, "--cap", "2/5h"), "are no whole number of steps of 1d"),
        (("{history}", "--user", "nobody", *QUICK), "say which ones are meant with --time"),
        ((*DESCRIBED, *QUICK, "--mechanism", "bd"), "bd cannot be published with a cap"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(capsys, history, words, message):
    code, said, errors = run(capsys, *(str(word).format(history=history) for word in words))
    assert code == 2
    assert said == ""
    assert message in errors
    assert errors.count("\n") == 1
