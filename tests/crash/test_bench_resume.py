"""kill -9 in the middle of a study, again and again: what is finished stays finished, and the results are the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

STUDY = """\
seed = 9
repetitions = 40
metrics = ["mae", "mre", "season_kept"]

[[mechanisms]]
vary.name = ["uniform", "sample", "bd", "ba"]

[[streams]]
generator = "seasonal"
length = 300
vary.amplitude = [10, 1000]

[[streams]]
generator = "level-shifts"
length = 200
bins = 20

[[privacy]]
window = 20
vary.epsilon = [0.1, 0.5, 1.0]
"""
BATCHES = 24
COMMAND = [sys.executable, "-c", "from eventide.cli.bench import command; command()", "study.toml"]


@pytest.fixture
def whole(tmp_path, monkeypatch):
    """The results of a run that nobody disturbs."""
    monkeypatch.chdir(tmp_path)
    Path("study.toml").write_text(STUDY)
    subprocess.run([*COMMAND, "--out", "whole.parquet", "--processes", "1"], check=True, capture_output=True)
    return Path("whole.parquet").read_bytes()


def finished(partial: Path) -> int:
    """How many batches the journal holds."""
    try:
        return max(0, partial.read_bytes().count(b"\n") - 1)
    except FileNotFoundError:
        return 0


def kill_after(process: subprocess.Popen[bytes], batches: int, pause: float) -> None:
    """Wait until so many batches are finished, and a moment longer, and kill without a warning."""
    partial = Path("results.parquet.partial")
    while process.poll() is None and finished(partial) < batches:
        time.sleep(0.002)
    time.sleep(pause)
    process.kill()
    process.wait()


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_killed_at_random_points_the_results_are_the_same(whole, processes):
    arguments = [*COMMAND, "--out", "results.parquet", "--processes", str(processes)]
    results, partial, journal = Path("results.parquet"), Path("results.parquet.partial"), Path("journal")
    chance, kills = random.Random(processes), 0
    while kills < 2:
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        kill_after(process, finished(partial) + chance.randrange(1, 5), chance.uniform(0, 0.05))
        if results.exists():  # it was done before we came to kill it: once more from the beginning
            results.unlink()
            journal.unlink(missing_ok=True)
            kills = 0
            continue
        assert process.returncode == -signal.SIGKILL
        kills += 1
        if not journal.exists():
            os.link(partial, journal)  # shows what the journal comes to hold, also after it is removed
    kept = journal.read_bytes().rpartition(b"\n")[0]
    subprocess.run(arguments, check=True, capture_output=True)
    assert results.read_bytes() == whole
    assert not partial.exists()
    assert journal.read_bytes().startswith(kept)
    assert finished(journal) == BATCHES  # none was run twice
