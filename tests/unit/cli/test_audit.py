"""`eventide audit`: verdict, exit codes, page."""

import contextlib
import json
import sys

import pytest
from click.testing import CliRunner
from command_words import with_last

from eventide.audit import neighbouring_pairs
from eventide.cli import main

QUICK = ["--epsilon", "1", "--window", "1", "--bins", "1", "--runs", "4000"]
BROKEN = """
import numpy as np

class NoNoise:
    def __init__(self, epsilon, window, bins, seed):
        if bins > 2:
            raise ValueError("one or two bins only")

    def release(self, counts):
        return np.asarray(counts)
"""


def audit(*arguments):
    return CliRunner().invoke(main, ["audit", *with_last(*arguments)])


def test_a_sound_mechanism_ends_well(tmp_path):
    page = tmp_path / "audit.html"
    result = audit("uniform", *QUICK, "--json", "--out", str(page))
    document = json.loads(result.stdout)
    assert (result.exit_code, document["broken"], document["epsilon"]) == (0, False, 1)
    assert 0 < document["bound"] <= 1
    assert document["most_telling_transcript"] == pytest.approx(1)
    text = page.read_text()
    assert "Audit of uniform" in text
    assert f"{document['bound']:.3f}" in text
    assert 'src="http' not in text


def test_a_broken_one_of_somebody_elses_ends_with_exit_code_4(tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    result = audit("theirs:NoNoise", *QUICK)
    assert result.exit_code == 4
    assert "BROKEN" in result.stdout
    result = audit("theirs:NoNoise", *QUICK, "--bins", "3")
    assert result.exit_code == 2
    assert "cannot build what is to be attacked: ValueError: one or two bins only" in result.stderr


THEIRS = """
import numpy as np
from eventide.mechanisms.uniform import Uniform

class Keywords:
    def __init__(self, epsilon, window, bins, **keywords):
        self.size, self.random = bins, np.random.default_rng(keywords.pop("seed"))
        assert not keywords, keywords

    def release(self, counts):
        counts += self.random.geometric(0.5, self.size) - self.random.geometric(0.5, self.size)
        return counts

class Fails(Keywords):
    def release(self, counts):
        return self.noise / 0

class TooMany(Keywords):
    def release(self, counts):
        return [*counts, 1]

class NoNumber(Keywords):
    def release(self, counts):
        return counts * np.nan

class InTheFrame(Uniform):
    def budget_allocation(self):
        return undefined

class Greedy(Uniform):
    def budget_allocation(self):
        return np.array([[2 * self.nano_epsilon]])
"""


@pytest.fixture
def faulty(tmp_path, monkeypatch):
    (tmp_path / "faulty.py").write_text(THEIRS)
    monkeypatch.chdir(tmp_path)
    yield
    sys.modules.pop("faulty", None)


@pytest.mark.usefixtures("faulty")
def test_keywords_are_no_replicas_and_what_a_class_writes_into_changes_nothing():
    result = audit("faulty:Keywords", *QUICK, "--runs", "400", "--json")
    assert (result.exit_code, json.loads(result.stdout)["broken"]) == (0, False)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Fails", "in release\n    return self.noise / 0"),
        ("TooMany", "must return one number for each of 1 bins"),
        ("NoNumber", "no finite number"),
        ("InTheFrame", "in budget_allocation\n    return undefined"),
        ("Missing", "cannot find faulty:Missing"),
    ],
)
@pytest.mark.usefixtures("faulty")
def test_a_mistake_in_somebody_elses_class_is_theirs(name, says):
    result = audit(f"faulty:{name}", *QUICK)
    assert result.exit_code == 2
    assert says in result.stderr
    assert "a fault of eventide" not in result.stderr


@pytest.mark.usefixtures("faulty")
def test_what_the_ledger_refuses_is_named_and_not_attacked():
    result = audit("faulty:Greedy", *QUICK)
    assert result.exit_code == 3
    assert "faulty:Greedy was refused by the ledger, so that there is nothing to attack." in result.stderr


def test_a_module_that_cannot_be_imported_is_theirs(tmp_path, monkeypatch):
    (tmp_path / "unfinished.py").write_text("class Half:\n    def\n")
    monkeypatch.chdir(tmp_path)
    result = audit("unfinished:Half", *QUICK)
    assert result.exit_code == 2
    assert "unfinished cannot be imported: SyntaxError in unfinished.py, line 2" in result.stderr


def test_progress_is_told(monkeypatch):
    told = []

    @contextlib.contextmanager
    def counting(doing, unit):
        yield lambda done, of, at: told.append((done, of, at))

    monkeypatch.setattr("eventide.cli.audit.counting", counting)
    assert audit("uniform", *QUICK, "--runs", "200").exit_code == 0
    assert {at for _, _, at in told} >= {"round 1 of 1: exploring", "round 1 of 1: measuring", "replaying transcripts"}
    assert all(0 <= done < of for done, of, _ in told)


def test_parameters_reach_the_mechanism():
    assert audit("hybrid", *QUICK, "--set", "k=1").exit_code == 0
    result = audit("hybrid", *QUICK, "--set", "k=0")
    assert (result.exit_code, "k is 0" in result.stderr) == (2, True)


FLOATS = """
import numpy as np

class Right:
    def __init__(self, epsilon, window, bins, seed):
        self.scale, self.random = window / epsilon, np.random.default_rng(seed)

    def release(self, counts):
        return np.asarray(counts) + self.random.laplace(0, self.scale, len(counts))
"""


def test_an_attack_can_be_left_out_and_floating_point_noise_is_named(tmp_path, monkeypatch):
    (tmp_path / "floats.py").write_text(FLOATS)
    monkeypatch.chdir(tmp_path)
    one = [pair for pair in neighbouring_pairs(1, 1, 1, ()) if pair.name == "from nothing, + in one bin"]
    monkeypatch.setattr("eventide.audit.mechanisms.neighbouring_pairs", lambda *_: one)
    leaks = audit("floats:Right", *QUICK, "--runs", "1000")
    assert (leaks.exit_code, "best attack: grid of doubles" in leaks.stdout) == (4, True)
    assert "floating point gives itself away by its last bits, whatever its scale" in leaks.stdout
    assert '--without "grid of doubles" attacks the rest' in leaks.stderr
    rest = audit("floats:Right", *QUICK, "--runs", "1000", "--without", "grid of doubles")
    assert (rest.exit_code, "not tried: grid of doubles" in rest.stdout) == (0, True)
    unknown = audit("floats:Right", *QUICK, "--without", "grid of double")
    assert (unknown.exit_code, "grid of doubles" in unknown.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--confidence", "95"), "--confidence is 95; it lies between 0 and 1; 0.95 is 95 %"),
        (("--confidence", "1"), "--confidence is 1; it lies between 0 and 1\n"),
        (("--bins", "0"), "--bins is 0; it is at least 1"),
        (("--runs", "9"), "--runs is 9; it is at least 100"),
    ],
)
def test_a_rule_that_is_broken_is_the_only_one_told(arguments, says):
    result = audit("uniform", *QUICK, *arguments)
    assert (result.exit_code, says in result.stderr) == (2, True)


def test_what_is_known_of_a_published_form_is_said_besides():
    result = audit("dsat", *QUICK, "--set", "as_published=true")
    assert result.exit_code == 0
    assert "Whatever this audit found: as published, one noise on the threshold" in result.stderr
    assert "Whatever" not in audit("dsat", *QUICK).stderr


@pytest.mark.parametrize(
    "arguments",
    [["magic"], ["os:Nothing"], ["no_such_module:Class"], ["ba", "--set", "k"], ["ba", "--confidence", "2"]],
)
def test_bad_usage_is_explained(arguments):
    result = audit(*QUICK, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
