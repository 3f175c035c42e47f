"""Trials of `choose`: the same in however many processes, and fewer repetitions where only a comparison is drawn."""

from __future__ import annotations

import pytest

from eventide.bench import choose as choosing
from eventide.bench import describe
from eventide.bench.choose import trials as under_test
from eventide.bench.choose.trials import Candidate, Publication, Trials

GIVEN = Publication(describe(level=50, steps=60).counts, 1.0, 5)
WANTED = [(Candidate("uniform", {}), GIVEN), (Candidate("sample", {}), GIVEN), (Candidate("ba", {}), GIVEN)]


@pytest.mark.slow
def test_trials_are_the_same_in_several_processes(monkeypatch):
    monkeypatch.setattr(under_test, "SHORT", 0)
    alone, together = (Trials(1, 4, 7, processes=processes).run(WANTED) for processes in (1, 2))
    assert alone == together
    assert [trial.mechanism for trial in together] == ["uniform", "sample", "ba"]


def test_short_trials_begin_no_process(monkeypatch):
    used = []
    here = under_test.in_processes
    monkeypatch.setattr(under_test, "in_processes", lambda work, cells, most: used.append(most) or here(work, cells, 1))
    trials = Trials(1, 4, 7, processes=2)
    trials.run(WANTED)
    monkeypatch.setattr(under_test, "SHORT", 0)
    trials.run(WANTED)
    assert used == [1, 2]


def test_other_windows_and_budgets_are_tried_with_fewer_repetitions(monkeypatch):
    asked = []
    run = Trials.run

    def noted(self, wanted, repetitions=None):
        asked.append((len({(given.epsilon, given.window) for _, given in wanted}), repetitions))
        return run(self, wanted, repetitions)

    monkeypatch.setattr(Trials, "run", noted)
    choice = choosing(describe(level=400, steps=60), epsilon=1, window=20, mechanisms=["ba"], repetitions=24)
    assert asked[:2] == [(1, None), (7, 6)]
    assert {trial.window for trial in choice.over_window} == {5, 10, 20, 40}
    assert {trial.epsilon for trial in choice.over_epsilon} == {0.25, 0.5, 1, 2, 4}
