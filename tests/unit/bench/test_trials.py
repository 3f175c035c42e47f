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


def noted(monkeypatch):
    """Every lot of trials: how many, under how many settings, and with how many repetitions."""
    asked = []
    run = Trials.run

    def note(self, wanted, repetitions=None):
        asked.append((len(wanted), len({(given.epsilon, given.window) for _, given in wanted}), repetitions))
        return run(self, wanted, repetitions)

    monkeypatch.setattr(Trials, "run", note)
    return asked


def test_other_windows_and_budgets_are_tried_with_fewer_repetitions(monkeypatch):
    asked = noted(monkeypatch)
    choice = choosing(describe(level=400, steps=60), epsilon=1, window=20, mechanisms=["ba"], repetitions=24)
    assert [lot[1:] for lot in asked[:2]] == [(1, None), (7, 3)]
    assert asked[2][2] == 6
    assert {trial.window for trial in choice.over_window} == {5, 10, 20, 40}
    assert {trial.epsilon for trial in choice.over_epsilon} == {0.25, 0.5, 1, 2, 4}


def test_what_is_compared_runs_more_often_where_a_few_runs_differ(monkeypatch):
    asked = noted(monkeypatch)
    steady = Publication(describe(level=50, steps=60, bins=40).counts, 1.0, 5)
    wanted = [(Candidate("uniform", {}), GIVEN), (Candidate("uniform", {}), steady)]
    compared = Trials(1, 50, 7).compare(wanted, 12)
    assert asked == [(2, 1, 3), (1, 1, 12)]
    few, many = (Trials(1, 50, 7).run(wanted, repetitions) for repetitions in (3, 12))
    assert few[0].high - few[0].low > 0.05 * few[0].error
    assert few[1].high - few[1].low <= 0.05 * few[1].error
    assert compared == [many[0], few[1]]
