"""What notebooks and consoles show of objects: the right numbers, names as text, little space, never a true count."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

import eventide as ev
from eventide import windows
from eventide.bench import load_study, read_results, run_study
from eventide.display.cards import MOST_ROWS, card
from eventide.display.drawings import TextTable
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.ledger import WindowLedger

EVIL = "<script>alert('&amp;')</script>"
SMALL = 8_000  # characters of a card, whatever it is about
STUDY = """\
seed = 1
repetitions = 2
metrics = ["mae"]

[[mechanisms]]
vary.name = ["uniform", "sample"]

[[streams]]
generator = "seasonal"
length = 30

[[privacy]]
window = 5
epsilon = 1.0
"""


class Reader(HTMLParser):
    """What a browser would make of a card: its texts, its tags, and where its attributes lead."""

    def __init__(self, markup):
        super().__init__()
        self.texts, self.open, self.tags, self.attributes = [], [], set(), {}
        self.feed(markup)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= dict(attributes)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def read(thing):
    reader = Reader(thing._repr_html_())
    assert reader.tags <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td", "p"}
    assert set(reader.attributes) <= {"style", "class"}
    assert "url" not in reader.attributes["style"]
    return reader.texts


def mechanism(bins, **settings):
    return ev.Uniform(epsilon=1, window=4, bins=bins, **settings)


@pytest.fixture
def results(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY)
    run_study(load_study(str(tmp_path / "study.toml")), tmp_path / "results.parquet")
    return read_results(tmp_path / "results.parquet")


def test_a_mechanism_shows_how_far_it_is_and_what_it_promises():
    mech = mechanism(["north", "south"])
    mech.release([3, 5])
    texts = read(mech)
    assert texts[:3] == ["Uniform", "budget", "epsilon 1, window 4"]
    for name, fact in {
        "bins": "2: north, south",
        "next step": "1",
        "left at this step": "0.75",
        "fullest window so far": "0.25 of 1",
        "noise": "secure",
    }.items():
        assert texts[texts.index(name) + 1] == fact
    assert texts[-1] == str(mech.guarantee)
    assert repr(mech) == "Uniform(epsilon=1, window=4, bins=2)"


def test_a_ledger_shows_its_fullest_account():
    ledger = WindowLedger(epsilon=1, window=2, replicas=3)
    ledger.charge(np.array([[100_000_000], [600_000_000], [0]]))
    assert repr(ledger) == "WindowLedger(epsilon=1, window=2, step=0, left=0.4, worst_window=0.6)"
    texts = read(ledger)
    assert texts[texts.index("left at this step") + 1] == "0.4"
    assert texts[texts.index("fullest window so far") + 1] == "0.6 of 1"
    assert "3; shown is the fullest" in texts
    assert "accounts" not in read(WindowLedger(epsilon=1, window=1))


def test_a_release_shows_its_values_and_what_they_cost():
    release = mechanism(2, noise=ev.noise.Zero()).release([3, 5])
    texts = read(release)
    assert texts[0] == "Release of step 0"
    assert texts[texts.index("measured") + 1] == "2 of 2 bins"
    assert texts[texts.index("spent") + 1] == "epsilon 0.25"
    assert texts[-6:] == ["0", "3", "4", "1", "5", "4"]
    assert repr(release) == "Release(step=0, fresh=True, spent=0.25, values=[3., 5.])"


def test_a_repeated_release_says_that_nothing_was_measured():
    sample = ev.Sample(epsilon=1, window=4, bins=2)
    sample.release([3, 5])
    texts = read(sample.release([3, 5]))
    assert texts[texts.index("measured") + 1] == "nothing"


def test_of_replicas_the_first_is_shown():
    mech = mechanism(1, replicas=3, noise=ev.noise.Zero())
    texts = read(mech.release([[7], [8], [9]]))
    assert "3; shown is the first" in texts
    assert texts[texts.index("0") + 1] == "7"
    run = ev.run(mech, np.array([[[7]], [[8]], [[9]]]))
    assert repr(run) == "Run(steps=1, bins=1, looks=3, replicas=3)"
    texts = read(run)
    assert "3; shown is the first" in texts
    assert texts[texts.index("0") + 1] == "7"


def test_the_text_of_a_release_is_one_short_line_however_many_replicas_there_are():
    release = mechanism(900, replicas=800).release(np.arange(900))
    assert len(repr(release)) < 1000
    assert "\n" not in repr(release)
    assert len(release._repr_html_()) < SMALL


def test_intervals_are_shown_where_a_filter_knows_them():
    assert "low" not in read(mechanism(2).release([3, 5]))
    known = mechanism(2, filter="posterior-median")
    assert {"low", "high"} <= set(read(known.release([3, 5])))
    assert {"low", "high"} <= set(read(ev.run(known, [[3, 5]])))


def test_a_run_shows_its_length_its_looks_and_its_last_values():
    mech = ev.Sample(epsilon=1, window=3, bins=["a", "b"], noise=ev.noise.Zero())
    ev.run(mech, [[1, 1]])
    run = ev.run(mech, [[2, 20], [3, 30], [4, 40], [5, 50]])
    texts = read(run)
    assert texts[texts.index("steps") + 1] == "4, from step 1"
    assert texts[texts.index("looks") + 1] == repr(run)[-2] == "1"
    assert texts[-4:] == ["a", "4", "b", "40"]
    assert read(ev.run(mech, np.empty((0, 2), dtype=int)))[0] == "Run"


def test_a_plan_shows_the_error_of_its_queries():
    plan = windows.plan([ev.Query(15, 5), ev.Query(20, 10, "often")], epsilon=2.0)
    texts = read(plan)
    first, second = np.sqrt(plan.query_errors)
    assert texts[-9:-1] == ["15 every 5", "15", "5", f"{first:.3g}", "often", "20", "10", f"{second:.3g}"]
    assert texts[-1] == str(plan.guarantee)
    assert repr(plan) == "Plan(queries=2, epsilon=2, planner='best')"


def test_a_guarantee_begins_with_what_must_not_be_overlooked():
    assert read(mechanism(1).guarantee) == ["w-event privacy", str(mechanism(1).guarantee)]
    assert read(mechanism(1, seed=1).guarantee)[0] == "Not private"
    disputed = Guarantee("w-event", 1.0, 2, "one person", 1, not_proven="a gap")
    assert read(disputed)[0] == "Not proven"
    broken = Guarantee("w-event", 1.0, 2, "one person", 1, refuted="a fault")
    assert read(broken) == ["Refuted", str(broken)]
    assert str(broken).startswith("REFUTED (a fault): its authors claim that all events of one person")


def test_results_show_who_is_best(results):
    texts = read(results)
    assert "Results are figures about mechanisms" in texts[-1]
    assert texts[texts.index("mechanism") + 1 :].count("1 of 1") == 1
    assert repr(results) == "Results(study='study', rows=2)"


def test_names_are_text_wherever_they_stand():
    mech = mechanism([EVIL, "b"])
    named = mech, ev.run(mech, [[1, 2]]), windows.plan([ev.Query(4, 2, EVIL)])
    for thing in named:
        assert "<script" not in thing._repr_html_()
        assert any(EVIL in text for text in read(thing))
    markup = card(EVIL, {EVIL: EVIL}, TextTable([EVIL], [[EVIL]]), [EVIL])
    assert "<script" not in markup
    assert Reader(markup).texts == [EVIL] * 6


def test_a_formula_in_a_name_is_left_alone():
    assert "mathjax_ignore" in mechanism(["$x$", "$y$"])._repr_html_()


@pytest.mark.parametrize("bins", [100_000, [f"{number} {'long ' * 50}" for number in range(100_000)]])
def test_cards_and_texts_are_small_however_many_bins_there_are(bins):
    mech = mechanism(bins)
    release = mech.release(np.arange(100_000))
    run = ev.run(mech, [np.arange(100_000)])
    for thing in (mech, mech.ledger, release, run, mech.guarantee):
        assert len(thing._repr_html_()) < SMALL
        assert len(repr(thing)) < 500
    assert "and 99,995 more" in " ".join(read(mech))
    assert f"The {MOST_ROWS} largest of 100,000 bins." in read(release)
    queries = [ev.Query(window * 2, 2, f"{window} {'long ' * 50}") for window in range(1, 500)]
    assert len(windows.plan(queries, planner="base")._repr_html_()) < SMALL


def test_the_largest_values_are_the_ones_shown():
    release = mechanism(50, noise=ev.noise.Zero()).release(np.arange(50) * 7 % 50)
    texts = read(release)
    shown = texts[texts.index("noise scale") + 1 : -1][1::3]
    assert shown == [str(value) for value in range(49, 49 - MOST_ROWS, -1)]


@pytest.mark.parametrize("name", ["uniform", "ba", "rg", "pegasus", "spas"])
def test_no_true_count_is_shown(name):
    """The noise is so large that no release is a true count by chance."""
    mech = ev.mechanism(name, epsilon=0.0001, bins=3, seed=4, **({} if name == "rg" else {"window": 2}))
    counts = [[7_654_321, 8_765_432, 9_876_543], [7_654_329, 8_765_439, 9_876_549]]
    run = ev.run(mech, counts)
    release = mech.release(counts[0])
    shown = [
        text for thing in (mech, mech.ledger, mech.guarantee, run, release) for text in (*read(thing), repr(thing))
    ]
    digits = {re.sub(r"\D", "", number) for text in shown for number in re.findall(r"[\d,]+", text)}
    assert digits.isdisjoint(str(count) for row in counts for count in row)
