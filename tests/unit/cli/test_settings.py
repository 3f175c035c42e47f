"""Mechanisms on the command line: every verb that takes one reads `--set` and module:Class in the same way."""

from __future__ import annotations

import json
import shlex
import sys

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from eventide import Publisher, cli
from eventide.bench import choose, describe
from eventide.cli.choose_result import publishing
from eventide.cli.settings import import_from_here, parse_settings, written_settings
from eventide.errors import InputError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.mechanisms.publishing import why_not_published
from eventide.mechanisms.registry import build_mechanism, find_mechanism

OWN = '''
import numpy as np
import eventide as ev


class Steady(ev.Mechanism):
    """A look every few steps."""

    def __init__(self, epsilon, window, bins, *, every=2, **common):
        self.every = every
        super().__init__(epsilon, window, bins, **common)

    def is_sampling_point(self, step):
        return np.full((self.replicas, 1), step.index % self.every == 0)

    def budget_allocation(self):
        return ev.share(self.nano_epsilon, 1, -(-self.window // self.every)).reshape(1, 1)


class Unframed:
    def __init__(self, epsilon, window, bins, seed=None):
        self.bins = bins

    def release(self, counts):
        return np.zeros(self.bins)
'''
STUDY = """
seed = 1
repetitions = 2
metrics = ["mae"]
[[mechanisms]]
name = "uniform"
[[streams]]
generator = "constant"
length = 20
[[privacy]]
window = 4
epsilon = 1.0
"""
TO = ["--out", "out.parquet", "--processes", 1]
DESCRIBED = ["--level", "300", "--steps", "40", "--epsilon", "1", "--window", "8", "--repetitions", "1", "--json"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.delitem(sys.modules, "steady_ones", raising=False)
    (tmp_path / "steady_ones.py").write_text(OWN)
    (tmp_path / "small.toml").write_text(STUDY)
    return tmp_path


def run(*words):
    return CliRunner().invoke(cli.main, [*map(str, words)])


VERBS = {
    "audit": lambda name, *more: ["audit", name, "--epsilon", 1, "--window", 2, "--bins", 1, "--runs", 100, *more],
    "choose": lambda name, *more: ["choose", *DESCRIBED, "--mechanism", name, *more],
    "bench": lambda name, *more: ["bench", "small.toml", "--with", name, *TO, *more],
}


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_takes_a_class_of_ones_own_with_its_parameters(here, verb):
    result = run(*VERBS[verb]("steady_ones:Steady", "--set", "every=3"))
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--set", "k"], "--set k must read NAME=VALUE"),
        (["--set", "=3"], "--set =3 must read NAME=VALUE"),
        (["--set", "epsilon=3"], "--set epsilon=... is not possible"),
        (["--set", "k=2", "--set", "k=3"], "--set k=... was given twice"),
    ],
)
def test_every_verb_refuses_the_same_settings(here, verb, words, says):
    result = run(*VERBS[verb]("hybrid", *words))
    assert result.exit_code == 2
    assert says in result.stderr


@pytest.mark.parametrize("verb", ["choose", "bench"])
@pytest.mark.parametrize(
    ("name", "words", "says"),
    [
        ("steady_ones:Nobody", [], "cannot find steady_ones:Nobody"),
        ("no_such_module:Class", [], "cannot find no_such_module:Class"),
        ("steady_ones.py:Steady", [], "give steady_ones:Steady in the folder of that file"),
        ("../here/steady_ones:Steady", [], "give steady_ones:Steady in the folder of that file"),
        ("steady_ones", [], "module:Class of your own"),
        ("steady_ones:Unframed", [], "is no subclass of eventide.Mechanism"),
        ("hybrid", ["--set", "q=1"], "'q'"),
        ("hybrid", ["--set", "k=0"], "k is 0"),
        ("magic", [], "no mechanism 'magic'"),
    ],
)
def test_what_is_no_mechanism_or_no_parameter_is_refused(here, verb, name, words, says):
    result = run(*VERBS[verb](name, *words))
    assert result.exit_code == 2
    assert says in result.stderr


def test_what_a_choice_fixes_is_not_set():
    for setting in ("sensitivity=2", "filter=kalman"):
        assert "fixed here" in run("choose", *DESCRIBED, "--mechanism", "ba", "--set", setting).stderr


@pytest.mark.parametrize("words", [["choose", *DESCRIBED], ["bench", "small.toml", *TO]])
def test_a_setting_of_nothing_is_refused(here, words):
    assert "--set is for a mechanism that" in run(*words, "--set", "k=2").stderr


def test_settings_are_json_or_text_and_are_written_as_they_are_read():
    parameters = {"a": 5, "b": 0.25, "c": True, "d": None, "e": [1, 2.5], "f": "median", "g": "7", "h": "true", "i": ""}
    words = written_settings(parameters)
    assert words[::2] == ["--set"] * len(parameters)
    assert parse_settings(words[1::2]) == parameters
    assert written_settings({"k": 3, "smoother": "median"}) == ["--set", "k=3", "--set", "smoother=median"]


def test_a_mechanism_more_takes_part_in_a_study_and_is_part_of_its_text(here):
    assert run(*VERBS["bench"]("steady_ones:Steady", "--with", "hybrid")).exit_code == 0
    table = pq.read_table("out.parquet")
    assert set(table["mechanism"].to_pylist()) == {"uniform", "steady_ones:Steady", "hybrid"}
    alone = run("bench", "small.toml", "--out", "alone.parquet", "--processes", 1)
    assert alone.exit_code == 0
    before, after = ({row["mechanism"]: row["mean"] for row in each} for each in _rows("alone.parquet", "out.parquet"))
    assert before["uniform"] == after["uniform"]
    assert b"steady_ones:Steady" in b"".join(table.schema.metadata.values())
    assert "must be a number" in run(*VERBS["bench"]("hybrid", "--set", "k=null")).stderr


def _rows(*paths):
    return [pq.read_table(path).to_pylist() for path in paths]


@pytest.mark.slow
def test_what_cannot_be_published_is_not_recommended():
    calm = describe(level=400, steps=40, bins=4)
    for given in ({"accounting": "fixed-bin", "groups": 2}, {"pan_private": "single"}):
        with pytest.raises(InputError, match=r"ba .* cannot be published: .*"):
            choose(calm, epsilon=1, window=8, mechanisms=["ba"], parameters=given, repetitions=1)
    large = np.full((1100, 1), 10**9)
    tiny = choose(large, epsilon=1e-6, window=1100, mechanisms=["hybrid"], repetitions=1)
    assert "uniform" not in [trial.label for trial in tiny.candidates], "a step's budget is below a billionth"
    assert str(tiny)


def test_what_is_recommended_a_publisher_takes(here):
    import_from_here()
    calm = describe(level=400, amplitude=300, season=16, steps=64)
    choice = choose(calm, epsilon=1, window=8, mechanisms=["steady_ones:Steady", "hybrid"], repetitions=2)
    for trial in choice.candidates:
        parameters = {"epsilon": 1, "window": 8, "bins": 1, **trial.parameters}
        with Publisher(MemoryFeed(calm.counts[:3]), build_mechanism(trial.mechanism, parameters)) as publisher:
            assert publisher.run() == 3


def test_the_command_that_publishes_is_printed_with_its_settings(here):
    words = ["--mechanism", "steady_ones:Steady", "--set", "every=4", "--sensitivity", 2]
    document = json.loads(run("choose", *DESCRIBED, *words).stdout)
    printed = shlex.split(document["publish"])
    assert printed[:7] == ["eventide", "publish", "COUNTS", "--epsilon", "1", "--window", "8"]
    assert printed[-4:] == ["--sensitivity", "2", "--out", "private.csv"]
    best = document["recommended"]
    named = printed[printed.index("--mechanism") : printed.index("--sensitivity")]
    assert named == ["--mechanism", best["mechanism"], *written_settings(best["parameters"])]
    repeated = shlex.split(document["repeat"])
    assert repeated[repeated.index("--set") + 1] == "every=4"
    assert repeated[repeated.index("--mechanism") + 1] == "steady_ones:Steady"


def test_a_recommended_parameter_is_a_setting_of_the_command():
    wave = describe(level=4000, amplitude=3000, season=400, steps=400)
    choice = choose(wave, epsilon=1, window=64, mechanisms=["hybrid"], repetitions=3)
    assert choice.recommended.parameters
    assert f"--mechanism hybrid --set k={choice.recommended.parameters['k']} --out" in publishing(choice)


def test_one_finder_of_mechanisms_serves_all():
    assert find_mechanism("eventide.mechanisms.hybrid:Hybrid") is find_mechanism("hybrid")
    assert why_not_published(build_mechanism("hybrid", {"epsilon": 1, "window": 4, "bins": 1})) is None
    with pytest.raises(InputError, match="takes no 'q'"):
        build_mechanism("hybrid", {"epsilon": 1, "window": 4, "bins": 1, "q": 2})
    with pytest.raises(InputError, match="needs epsilon"):
        build_mechanism("eventide.mechanisms.hybrid:Hybrid", {"window": 4, "bins": 1})


@pytest.mark.parametrize(("word", "json"), [("True", "true"), ("False", "false"), ("None", "null")])
def test_a_word_of_python_is_answered_with_that_of_json(word, json):
    with pytest.raises(InputError, match=rf"values are written as JSON; give as_published={json}$"):
        parse_settings([f"as_published={word}"])
    assert parse_settings(written_settings({"name": word})[1::2]) == {"name": word}
