"""`eventide audit`: verdict, exit codes, page."""

import json

import pytest
from click.testing import CliRunner

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
    return CliRunner().invoke(main, ["audit", *arguments])


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
    assert "cannot build what is to be attacked: one or two bins only" in result.stderr


def test_parameters_reach_the_mechanism():
    assert audit("hybrid", *QUICK, "--set", "k=1").exit_code == 0
    result = audit("hybrid", *QUICK, "--set", "k=0")
    assert (result.exit_code, "k is 0" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    "arguments",
    [["magic"], ["os:Nothing"], ["no_such_module:Class"], ["ba", "--set", "k"], ["ba", "--confidence", "2"]],
)
def test_bad_usage_is_explained(arguments):
    result = audit(*QUICK, *arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith("Error: ")
