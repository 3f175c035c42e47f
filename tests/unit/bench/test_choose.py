"""A choice is the least error of an honest contest, says when nothing is worth publishing, and repeats itself."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eventide import cli
from eventide.bench import choose, describe
from eventide.bench.choose.choice import UNPAID
from eventide.bench.choose.choose import (
    candidates,
    coarser,
    fewer_bins,
    longer_steps,
    more_epsilon,
    smaller_window,
)
from eventide.bench.choose.history import MOST_BINS, MOST_STEPS, given_history, read_history
from eventide.bench.choose.trials import Publication
from eventide.cli.choose_result import build_page
from eventide.errors import InputError
from eventide.mechanisms import registry

ROOT = Path(__file__).parents[3]
SMALL = {"epsilon": 1.0, "window": 10, "mechanisms": ["hybrid"], "repetitions": 3}
DESCRIBED = ["--level", "300", "--steps", "60", "--mechanisms", "ba", "--repetitions", "2", "--epsilon", "1"]


def tried(choice, label):
    return next(trial for trial in choice.candidates if trial.label == label)


@pytest.fixture(scope="module")
def wave():
    return choose(describe(level=300, amplitude=100, season=30, steps=120, bins=2), hide=4, **SMALL)


@pytest.fixture(scope="module")
def drowned():
    return choose(describe(level=2, steps=160, bins=8), epsilon=0.5, window=40, mechanisms=["ba"], repetitions=4)


def test_the_recommended_candidate_has_the_least_error(wave):
    errors = [trial.error for trial in wave.candidates]
    assert errors == sorted(errors)
    assert wave.recommended is wave.candidates[0]
    assert all(trial.low <= trial.error <= trial.high for trial in wave.candidates)
    assert {trial.mechanism for trial in wave.candidates} == {"uniform", "sample", "hybrid"}


def test_a_choice_shows_itself_in_words(wave):
    assert repr(wave) == str(wave)


def test_level_and_movement_are_the_errors_of_zeros_and_medians():
    choice = choose([[0, 10], [4, 10], [2, 16]] * 10, epsilon=1, window=2, mechanisms=["sample"], repetitions=1)
    assert choice.level == 7
    assert choice.movement == pytest.approx(((2 + 2 + 0) + (0 + 0 + 6)) / 6)


def test_a_uniform_release_is_off_by_the_window_over_epsilon_times_the_sensitivity():
    stream = describe(level=50_000, steps=100, bins=100)
    once, thrice = (
        choose(stream, epsilon=2, window=10, mechanisms=["uniform"], repetitions=5, sensitivity=sensitivity)
        for sensitivity in (1, 3)
    )
    assert tried(once, "uniform").error == pytest.approx(5, rel=0.02)
    assert tried(thrice, "uniform").error == pytest.approx(15, rel=0.02)
    assert tried(once, "uniform").looks == pytest.approx(10)


def test_calm_streams_are_looked_at_rarely_and_restless_ones_always():
    calm = choose(np.full((100, 3), 500), **SMALL)
    restless = choose(np.random.default_rng(1).integers(0, 100_000, (100, 3)), **SMALL)
    assert calm.recommended.label == "sample"
    assert restless.recommended.label == "uniform"
    assert "take uniform" in str(calm)
    assert "take uniform" not in str(restless)


def test_other_settings_are_those_of_a_choice_made_there(wave):
    there = choose(wave.history, **(SMALL | {"window": 5, "epsilon": 1.0}))
    ours = next(trial for trial in wave.over_window if trial.label == "uniform" and trial.window == 5)
    assert ours == tried(there, "uniform")
    assert {trial.window for trial in wave.over_window} == {2, 4, 5, 10, 20, 30}
    assert {trial.epsilon for trial in wave.over_epsilon} == {0.25, 0.5, 1, 2, 4}
    assert tried(wave, "uniform") in wave.over_window
    assert tried(wave, "uniform") in wave.over_epsilon


def test_the_same_arguments_give_the_same_choice(wave):
    again = choose(wave.history, hide=4, **SMALL)
    assert again.candidates == wave.candidates
    assert (again.released == wave.released).all()
    assert choose(wave.history, seed=2, **SMALL).candidates != wave.candidates


def test_progress_ends_at_its_total(wave):
    told = []
    choose(wave.history, tell=lambda done, total: told.append((done, total)), **SMALL)
    assert [done for done, _ in told] == list(range(1, len(told) + 1))
    assert told[-1] == (len(told), len(told))


def test_a_useful_choice_says_what_to_expect_in_counts(wave):
    error = wave.recommended.error
    assert wave.useful
    assert wave.remedies == ()
    assert f"Take {wave.recommended.label}: expect" in wave.verdict
    assert f"off by about {error:.3g} ({100 * error / wave.level:.0f} % of its usual level" in wave.verdict


def test_what_drowns_in_noise_is_called_useless_and_remedies_have_figures(drowned):
    assert not drowned.useful
    assert drowned.verdict.startswith("Nothing here is worth publishing")
    assert "all zeros" in drowned.verdict
    assert len(drowned.remedies) == 5
    assert [remedy.share for remedy in drowned.remedies] == sorted(remedy.share for remedy in drowned.remedies)
    for remedy in drowned.remedies:
        assert f"{remedy}" in str(drowned)
        assert ("not enough" in str(remedy)) == (remedy.share > 0.5)


def test_a_remedys_figure_is_what_a_choice_made_with_it_finds(drowned):
    remedy = next(remedy for remedy in drowned.remedies if remedy.change.startswith("epsilon"))
    settings = {"epsilon": remedy.trial.epsilon, "window": 40, "mechanisms": [remedy.trial.mechanism]}
    there = [choose(drowned.history, repetitions=repetitions, **settings) for repetitions in (3, 4)]
    assert remedy.trial in [tried(each, remedy.trial.label) for each in there]


def test_remedies_change_the_plan_as_they_say():
    plan = Publication(np.arange(24).reshape(8, 3), epsilon=0.5, window=5)
    assert more_epsilon(plan, 4).publication.epsilon == 2
    assert smaller_window(plan, 4).publication.window == 1
    longer = longer_steps(plan, 2).publication
    assert longer.counts.tolist() == [[3, 5, 7], [15, 17, 19], [27, 29, 31], [39, 41, 43]]
    assert longer.window == 3  # steps 1 to 5 lie in the long steps 0, 1 and 2
    assert fewer_bins(plan, 2).publication.counts[:2].tolist() == [[1, 2], [7, 5]]
    assert coarser(plan, 2).publication.counts[0].tolist() == [8, 7]
    assert coarser(plan, 2).publication.window == 3
    assert coarser(plan, 4) is fewer_bins(plan, 4) is None
    assert longer_steps(plan, 4) is not None
    assert longer_steps(plan, 16) is None
    assert smaller_window(plan, 6) is None
    assert more_epsilon(plan._replace(epsilon=1e6), 4) is None


@pytest.mark.parametrize(("window", "touched"), [(1, 1), (2, 2), (4, 2), (5, 2), (6, 3), (9, 3), (10, 4)])
def test_long_steps_cover_every_sequence_of_short_ones(window, touched):
    begins = np.arange(4)
    most = max((begins + window - 1) // 4 + 1)
    assert longer_steps(Publication(np.ones((400, 1)), 1.0, window), 4).publication.window == touched == most


def test_advice_on_the_window_follows_what_is_to_be_hidden_and_the_season(wave):
    def advice(**changed):
        stream = describe(level=300, amplitude=100, season=12, steps=60)
        return " ".join(choose(stream, **(SMALL | {"mechanisms": ["sample"]} | changed)).window_advice)

    assert re.search(r"To hide 4 steps, w = 4 is enough: off by \d", " ".join(wave.window_advice))
    assert re.search(r"To hide 20 steps, w must be 20: off by \d", advice(hide=20))
    assert "To hide 100 steps, w must be 100." in advice(hide=100)
    assert "w = 10 hides what you asked for" in advice(hide=10)
    assert re.search(r"every 12 steps: .* think about w = 12: off by \d", advice(window=30))
    assert "think about" not in advice(window=12)
    assert "think about" not in advice(window=13)  # what a season touches that begins in the middle of a step


def test_a_look_a_window_is_one_look(wave):
    best = replace(wave.recommended, looks=1.0)
    assert "It measures anew once in " in " ".join(replace(wave, candidates=(best,), window=10).reading)


def test_no_weaker_promise_is_advised_for_nothing():
    stream = describe(level=300, amplitude=100, season=12, steps=60)
    found = choose(stream, **(SMALL | {"mechanisms": ["sample"], "window": 30}))
    alike = [replace(trial, error=found.recommended.error) for trial in found.over_window]
    assert "think about" in " ".join(found.window_advice)
    assert "think about" not in " ".join(replace(found, over_window=alike).window_advice)


def test_a_season_is_found_in_a_history():
    counts = 100 + np.round(80 * np.sin(np.arange(200) / 25 * 2 * np.pi)).astype(int)
    assert choose(counts[:, None], **SMALL).season == 25


def test_candidates_come_from_the_registry(monkeypatch):
    monkeypatch.setitem(registry.MECHANISMS, "newcomer", ("eventide.mechanisms.hybrid", "Hybrid"))
    names = {candidate.name for candidate in candidates(None, 10)}
    assert names == {name for name in registry.mechanism_names() if not name.startswith("rg")}
    assert "newcomer" in names
    assert [each.name for each in candidates(["newcomer", "rg"], 10)] == ["uniform", "sample", "newcomer", "rg"]


def test_no_candidate_runs_twice():
    for window in (1, 2, 9, 100):
        labels = [candidate.label for candidate in candidates(["hybrid"], window)]
        assert len(labels) == len(set(labels))
        assert f"hybrid k={round(window**0.5)}" not in labels


@pytest.mark.parametrize(
    ("history", "changed", "message"),
    [
        ([[5]] * 9, {}, "has 9 steps, fewer than the window of 10; give a longer one"),
        (np.zeros((20, 2), dtype=int), {}, "every count of the given counts is 0"),
        (np.zeros((0, 2), dtype=int), {}, "at least one step"),
        ([1, 2, 3], {}, "a matrix of counts"),
        ([[-1]] * 20, {}, "between 0 and 2"),
        ("nowhere.csv", {}, "nowhere.csv is not a file"),
        ([[5]] * 20, {"mechanisms": ["bb"]}, "no mechanism 'bb'"),
        ([[5]] * 20, {"window": 0}, "window is 0"),
        ([[5]] * 20, {"hide": 0}, "hide is 0"),
        ([[5]] * 20, {"epsilon": 0}, "epsilon is 0"),
        ([[5]] * 20, {"repetitions": 0}, "repetitions is 0"),
        ([[5]] * 20, {"sensitivity": 0}, "sensitivity is 0"),
    ],
)
def test_what_cannot_be_chosen_on_is_refused(history, changed, message):
    with pytest.raises(InputError, match=re.escape(message)):
        choose(history, **(SMALL | changed))


@pytest.mark.parametrize(
    "description",
    [
        {"level": -1},
        {"level": 0},
        {"level": float("nan")},
        {"level": 5, "amplitude": 3},
        {"level": 5, "amplitude": 3, "season": 1},
        {"level": 5, "steps": 0},
        {"level": 5, "steps": 10**9},
        {"level": 5, "bins": 0},
    ],
)
def test_a_description_of_nothing_is_refused(description):
    with pytest.raises(InputError, match=r"level|amplitude|described"):
        describe(**description)


def test_a_described_stream_is_a_wave_from_the_level_up():
    counts = describe(level=1000, amplitude=500, season=50, steps=200, bins=100).counts
    means = counts.mean(axis=1)
    assert means[::50] == pytest.approx(1000, rel=0.02)
    assert means[25::50] == pytest.approx(1500, rel=0.02)
    assert counts.std(axis=1)[0] == pytest.approx(1000**0.5, rel=0.3)


def test_wide_and_long_histories_are_cut_and_it_is_said():
    counts = np.arange(2100)[:, None] + np.arange(MOST_BINS + 50)
    kept = given_history(counts, window=10)
    assert kept.counts.shape == (MOST_STEPS, MOST_BINS)
    assert kept.counts[0, 0] >= 100
    assert (kept.counts[0] - 100 == np.array(kept.bins, dtype=int)).all()
    assert kept.notes == (
        "200 of the 250 bins were tried, drawn at random",
        "the last 2,000 of the 2,100 steps were tried",
    )
    assert given_history(counts, window=10).bins == kept.bins
    assert given_history(counts, window=1000).counts.shape[0] == 2100
    assert describe(level=5, bins=10**6).notes == ("200 of the 1,000,000 bins were tried, drawn at random",)


def test_wide_and_long_files_are_read_alike(tmp_path):
    wide, long = tmp_path / "wide.csv", tmp_path / "long.csv"
    wide.write_text("north,south\n1,2\n0,4\n5,0\n")
    long.write_text("t,bin,count\n0,north,1\n0,south,2\n1,south,4\n2,north,5\n")
    both = [read_history(path, 2) for path in (wide, long)]
    assert both[0].bins == both[1].bins == ("north", "south")
    assert (both[0].counts == both[1].counts).all()
    assert read_history(long, 2, ["south", "east", "north"]).counts[:, 1].tolist() == [0, 0, 0]


def test_neither_repr_nor_words_show_a_count():
    counts = np.full((40, 1), 7919)
    counts[3] = 104_729
    choice = choose(counts, **SMALL)
    assert "104729" not in repr(choice) + str(choice)


def run(capsys, *words):
    with pytest.raises(SystemExit) as ended:
        cli.main(["choose", *words])
    return ended.value.code, *capsys.readouterr()


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "history.csv"
    rows = np.random.default_rng(3).poisson([400, 40], (60, 2))
    path.write_text("north,<b>south\n" + "".join(f"{north},{south}\n" for north, south in rows))
    return str(path)


def test_the_command_prints_a_recommendation_and_that_nobody_paid(capsys, history):
    code, out, _ = run(capsys, history, "--epsilon", "1", "--window", "10", "--mechanisms", "ba", "--repetitions", "2")
    assert code == 0
    assert out.startswith("Take ")
    assert "(all zeros)" in out
    assert UNPAID in out
    assert "Error at other windows" in out
    assert "Error at other budgets" in out


def test_of_a_described_stream_nothing_is_unpaid(capsys):
    code, out, _ = run(capsys, *DESCRIBED, "--window", "10")
    assert code == 0
    assert "a made-up stream (level 300)" in out
    assert UNPAID not in out


def test_a_large_epsilon_is_said_to_hide_little(capsys):
    words = ["--level", "9", "--steps", "20", "--mechanisms", "ba", "--repetitions", "2", "--window", "2", "--epsilon"]
    assert "Epsilon 100 hides little of anybody" in run(capsys, *words, "100")[1]
    assert "hides little" not in run(capsys, *words, "1")[1]


def test_the_printed_commands_work(capsys, history):
    _, out, _ = run(
        capsys, history, "--epsilon", "1", "--window", "10", "--mechanisms", "sample", "--repetitions", "2", "--json"
    )
    first = json.loads(out)
    words = shlex.split(first["repeat"])
    assert words[:2] == ["eventide", "choose"]
    again = json.loads(run(capsys, *words[2:], "--json")[1])
    assert again["repetitions"] == 5 * first["repetitions"] == 10
    same = ("source", "epsilon", "window", "level", "seed", "steps", "bins")
    assert [again[key] for key in same] == [first[key] for key in same]
    assert [each["mechanism"] for each in again["candidates"]] == [each["mechanism"] for each in first["candidates"]]


def test_the_document_holds_figures_and_no_series(capsys, history):
    words = ["--epsilon", "1", "--window", "10", "--mechanisms", "hybrid", "--repetitions", "2", "--json"]
    code, out, err = run(capsys, history, *words)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["recommended"] == document["candidates"][0]
    assert document["warning"] == UNPAID
    assert document["verdict"].startswith(f"Take {document['recommended']['mechanism']}")
    assert not {"history", "released", "counts"} & document.keys()


@pytest.fixture
def visits(tmp_path):
    """Twenty hours; in each anna comes to the shop twice and five others come home."""
    rows = [f"2026-01-01T{hour:02}:{minute}:00Z,anna,shop" for hour in range(20) for minute in (10, 20)]
    rows += [f"2026-01-01T{hour:02}:30:00Z,u{number},home" for hour in range(20) for number in range(5)]
    (tmp_path / "visits.csv").write_text("\n".join(["at,who,page", *rows, ""]))
    (tmp_path / "pages.txt").write_text("home\nshop\n")
    return str(tmp_path / "visits.csv"), "--bins", str(tmp_path / "pages.txt")


EVENTS = ("--step", "1h", "--time", "at", "--user", "who", "--bin", "page")
TRIED = ("--epsilon", "1", "--window", "10h", "--mechanism", "sample", "--repetitions", "2")


@pytest.mark.parametrize(("most", "of_anna"), [(1, 1), (3, 2)])
def test_events_are_counted_and_bounded_as_they_are_published(capsys, visits, most, of_anna):
    code, out, _ = run(capsys, *visits, *EVENTS, *TRIED, "--max-per-step", str(most), "--json")
    document = json.loads(out)
    assert (code, document["steps"], document["bins"], document["window"]) == (0, 20, 2, 10)
    assert (document["level"], document["sensitivity"]) == ((5 + of_anna) / 2, most)
    assert document["warning"] == UNPAID
    told = "At most 1 event of a person in a step counts, which leaves out 14 % of the events"  # 20 of 140, of anna
    assert any(line.startswith(told) for line in document["reading"]) == (most == 1)
    source, _, pages = visits
    words = (
        f"eventide publish {source} --step 1h --time at --user who --bin page --bins {pages} --epsilon 1 --window 10"
    )
    assert document["publish"] is None or document["publish"].startswith(words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--time", "at", "--user", "who", "--bin", "page"), "counting events needs --step"),
        ((*EVENTS, "--cap", "2/7d"), "--cap is for choosing a cap; leave it out, or --bins"),
        ((*EVENTS, "--zone", "Europe/Atlantis"), "Atlantis"),
        ((*EVENTS[:-1], "user"), "has no column 'user'"),
    ],
)
def test_events_that_cannot_be_counted_are_refused(capsys, visits, words, message):
    code, out, err = run(capsys, *visits, *words, "--epsilon", "1", "--window", "10")
    assert (code, out, message in err) == (2, "", True), err


def test_wrong_bins_are_explained_to_who_publishes_nothing(capsys, visits, tmp_path):
    (tmp_path / "wrong.txt").write_text("Nord\nSud\n")
    words = (*visits[:-1], str(tmp_path / "wrong.txt"), *EVENTS, *TRIED)
    code, out, err = run(capsys, *words)
    assert (code, out) == (2, "")
    assert "rows were refused, so nothing can be tried. Most often: bin is not in the list" in err
    assert "Correct the list of bins" in err
    assert "published" not in err
    assert "--allow-refused" not in err


def test_columns_of_events_ask_for_all_bins(capsys, visits):
    code, _, err = run(capsys, visits[0], "--time", "at", *TRIED[:2], "--window", "10")
    assert (code, "--time is for events that are counted; give all bins with --bins" in err) == (2, True)
    code, _, err = run(capsys, visits[0], "--user", "who", "--zone", "UTC", *TRIED[:2], "--window", "10")
    assert (code, "--zone is for events that are counted; give all bins with --bins" in err) == (2, True)


def test_durations_are_steps(capsys):
    _, out, _ = run(capsys, *DESCRIBED, "--hide", "3h", "--step", "10min", "--json")
    assert json.loads(out)["hide"] == json.loads(out)["window"] == 19  # 18, and one more where it begins inside a step
    _, out, _ = run(capsys, *DESCRIBED, "--window", "2h", "--step", "10min", "--json")
    assert json.loads(out)["window"] == 12
    _, out, _ = run(capsys, *DESCRIBED, "--hide", "1h", "--step", "1d", "--json")
    assert json.loads(out)["window"] == 2  # it may begin in one day and end in the next


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["{history}", "--epsilon", "1"], "--window is missing"),
        (["--epsilon", "1", "--window", "5"], "nothing to try mechanisms on"),
        (["{history}", "--level", "5", "--epsilon", "1", "--window", "5"], "exclude each other"),
        (["{history}", "--steps", "5", "--epsilon", "1", "--window", "5"], "exclude each other"),
        (["{history}", "--epsilon", "1", "--window", "3h"], "--window 3h needs --step"),
        (["{history}", "--epsilon", "1", "--window", "3h", "--step", "1d"], "of 3h is shorter than a step of 1d"),
        (["{history}", "--epsilon", "1", "--window", "61"], "has 60 steps, fewer than the window of 61"),
        (["{history}", "--epsilon", "1", "--window", "0"], "window is 0"),
        (["{history}", "--epsilon", "1", "--window", "5", "--mechanisms", "none"], "no mechanism 'none'"),
        (["{history}", "--epsilon", "1", "--window", "5", "--bins", "1"], "do not fit the list of bins"),
        (["missing.csv", "--epsilon", "1", "--window", "5"], "missing.csv is not a file"),
        (["{history}", "--epsilon", "1", "--window", "5", "--out", "{history}"], "is the file that is read"),
        (["--level", "5", "--bins", "bins.txt", "--epsilon", "1", "--window", "5"], "must be a number"),
        (["--level", "5", "--steps", "0", "--epsilon", "1", "--window", "5"], "a described stream has from 1"),
        (["--level", "1e300", "--epsilon", "1", "--window", "5"], "together 1,000,000,000,000 at most"),
        (["--level", "nan", "--epsilon", "1", "--window", "5"], "numbers from 0 up"),
    ],
)
def test_bad_usage_is_one_sentence_and_code_2(capsys, history, words, message):
    code, out, err = run(capsys, *(word.format(history=history) for word in words))
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


def test_negative_counts_are_refused_without_being_shown(capsys, tmp_path):
    path = tmp_path / "negative.csv"
    path.write_text("a\n" + "5\n" * 20 + "-7919\n")
    code, _, err = run(capsys, str(path), "--epsilon", "1", "--window", "5")
    assert code == 2
    assert "row 21" in err
    assert "7919" not in err


@pytest.mark.parametrize("place", ["nowhere/page.html", "."])
def test_a_page_that_cannot_be_written_is_refused_before_anything_is_tried(capsys, tmp_path, monkeypatch, place):
    monkeypatch.setattr("eventide.bench.choose", lambda *_, **__: pytest.fail("something was tried"))
    code, _, err = run(capsys, *DESCRIBED, "--window", "10", "--out", str(tmp_path / place))
    assert code == 2
    assert "cannot write" in err


def test_help_says_that_the_choice_is_a_query(capsys):
    code, out, _ = run(capsys, "--help")
    assert code == 0
    assert "tells something about it, and no budget covers that" in " ".join(out.split())


def test_the_page_is_whole_and_escapes_names(history):
    choice = choose(history, **SMALL)
    page = build_page(choice, "eventide choose 'a <b> file' --repetitions 9")
    body = page[page.index("<body>") : page.index("<script")]
    assert "{{" not in body
    assert "<b>" not in body
    assert "&lt;b&gt; file" in body
    assert UNPAID.split(":")[0] in body
    assert "as confidential as the history" in body


@pytest.mark.slow
def test_the_how_to_runs(capsys, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "how-to" / "choose.md").read_text(encoding="utf-8")
    monkeypatch.chdir(ROOT)
    for code in re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, "choose.md", "exec"), {})
    shells = re.findall(r"^```sh\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    commands = [line for block in shells for line in block.replace("\\\n", "").splitlines()]
    assert len(commands) >= 2
    for command in commands:
        words = shlex.split(command)[2:]
        if "--out" in words:
            words[words.index("--out") + 1] = str(tmp_path / "choice.html")
        shorter = ["--steps", "150"] if "--level" in words else []
        shorter += [] if "--mechanism" in words else ["--mechanism", "ba"]
        assert run(capsys, *words, *shorter, "--repetitions", "1")[0] == 0
    assert (tmp_path / "choice.html").stat().st_size > 10**6
