"""Histograms of the last steps, tried in every way: the same truth, the same rounding, one recommendation."""

import json

import numpy as np
import pytest

from eventide.bench import choose_span, describe
from eventide.bench.choose.choose_span import candidates
from eventide.bench.run.histograms import HistogramRun
from eventide.cli import main
from eventide.errors import InputError
from eventide.streams.generators import level_shifts, sparse_poisson


def run(name, counts, span=6, epsilon=1.0, window=1, repetitions=3, **parameters):
    return HistogramRun(name, parameters, counts, span, epsilon, window, repetitions, 1)


@pytest.mark.parametrize(
    ("name", "parameters"), [("rg", {}), ("rg-window-baseline", {}), ("uniform", {}), ("plan", {"step": 1})]
)
def test_without_noise_to_speak_of_the_truth_comes_out(name, parameters):
    counts = np.tile([3, 40], (30, 1))
    errors = run(name, counts, epsilon=1e5, **parameters).errors()
    assert np.concatenate(errors).tolist() == [0] * 9


def test_a_plan_at_every_step_and_sums_of_uniform_are_the_baseline():
    counts = level_shifts(60, bins=4, level=30)
    found = [run(name, counts, window=4).errors().absolute.tolist() for name in ("rg-baseline", "uniform", "plan")]
    assert found[0] == found[1] == found[2]


def test_between_two_answers_the_last_one_stands():
    counts = np.arange(24).reshape(-1, 1)
    told = [float(each[0, 0]) for each in run("plan", counts, epsilon=1e5, repetitions=1, step=3).histograms()]
    assert np.rint(told[5:12]).tolist() == [15, 15, 15, 33, 33, 33, 51]


def test_counts_that_stand_still_under_much_noise_are_for_grouping():
    counts = level_shifts(150, bins=20, level=40, every=1000)
    choice = choose_span(counts, span=15, epsilon=0.05, window=1, mechanisms=["rg", "uniform"], repetitions=5)
    assert choice.best.mechanism == "rg"
    assert choice.best.how == "published"
    assert [trial.label for trial in choice.trials[1:]] == ["rg-baseline", "sum of uniform"]
    assert choice.verdict.startswith("Take rg for the last 15 steps: expect a bin of the histogram to be off by about ")
    assert choice.useful


def test_where_only_large_bins_can_be_seen_it_says_so():
    counts = np.concatenate([level_shifts(80, bins=20, level=300), sparse_poisson(80, bins=180, rate=0.01)], axis=1)
    choice = choose_span(counts, span=5, epsilon=0.004, window=1, mechanisms=["rg"], repetitions=5)
    assert choice.useful
    assert choice.verdict.startswith("Only large bins can be seen. Take rg")


def test_where_nothing_is_worth_publishing_it_says_so():
    counts = sparse_poisson(40, bins=20, rate=0.1)
    choice = choose_span(counts, span=5, epsilon=0.01, window=5, mechanisms=["rg"], repetitions=5)
    assert not choice.useful
    assert choice.verdict.startswith("Nothing here is worth publishing")


def test_a_plan_that_comes_seldom_says_how_seldom():
    choice = choose_span(
        describe(level=40, steps=90, bins=5), span=30, epsilon=0.02, window=1, mechanisms=["plan"],
        parameters={"step": 6}, repetitions=5,
    )  # fmt: skip
    assert choice.best.label == "plan step=6"
    assert "It comes every 6 steps, and its error counts what changes until the next one." in choice.reading


def test_the_same_arguments_give_the_same_choice():
    told = {"span": 4, "epsilon": 1, "window": 2, "mechanisms": ["rg"], "repetitions": 3}
    one, other = (choose_span(describe(level=20, steps=40, bins=3), **told) for _ in range(2))
    assert one.trials == other.trials


@pytest.mark.parametrize("span", [1, 7, 60])
def test_a_plan_is_asked_at_a_step_that_divides_the_span(span):
    asked = [each.parameters["step"] for each in candidates(None, span) if each.name == "plan"]
    assert all(span % step == 0 and span // step >= 5 for step in asked)
    assert bool(asked) == (span == 60)


def test_what_cannot_be_tried_is_refused():
    counts = level_shifts(20, bins=2, level=30)
    with pytest.raises(InputError, match="fewer than the window of 30"):
        choose_span(counts, span=30, epsilon=1, window=1)
    with pytest.raises(InputError, match="parameters belong to mechanisms that are named"):
        choose_span(counts, span=3, epsilon=1, window=1, parameters={"max_group": 2})


def command(*words):
    return main(["choose", *map(str, words)], standalone_mode=False)


def test_the_command_recommends_for_a_span(capsys, tmp_path):
    words = ("--level", 40, "--bins", 3, "--steps", 60, "--epsilon", 0.1, "--window", 1, "--span", "15min")
    command(*words, "--step", "1min", "--mechanism", "rg", "--repetitions", 5, "--out", tmp_path / "page.html")
    said = capsys.readouterr().out
    assert "for the last 15 steps" in said
    assert "--set span=15" in said
    assert "Which histogram of the last steps?" in (tmp_path / "page.html").read_text()


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("rg", "--mechanism rg --set span=4 --out private.jsonl"),
        ("plan", "--queries queries.toml --out private.csv  # queries.toml: [[query]] window = 4, step = 1"),
        ("uniform", "--mechanism uniform --filter none --out private.jsonl"),
    ],
)
def test_the_document_has_every_way_and_how_to_publish_it(capsys, name, published):
    words = ("--level", 400, "--steps", 40, "--epsilon", 1, "--window", 1, "--span", 4, "--repetitions", 2)
    command(*words, "--mechanism", name, "--json")
    document = json.loads(capsys.readouterr().out)
    assert {trial["mechanism"] for trial in document["trials"]} == {name, "rg-baseline"}
    from eventide.bench.choose.span_choice import SpanTrial
    from eventide.cli.choose_span_result import publishing

    choice = choose_span(
        describe(level=400, steps=40), span=4, epsilon=1, window=1, mechanisms=[name], repetitions=2, seed=1
    )
    own = next(trial for trial in document["trials"] if trial["mechanism"] == name)
    assert publishing(choice, SpanTrial(**own)).endswith(published)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--people", 10, "--events-per-week", 1, "--step", "1h"), "--span asks for a histogram of counts"),
        (("--level", 4, "--hide", 3), "with --span give --window alone"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(capsys, words, message):
    assert command("--epsilon", 1, "--window", 2, "--span", 3, *words) == 2
    assert message in capsys.readouterr().err
