"""The research code of PBD and PBA: samples cost what they say, books are kept, and the public code keeps none."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

BENCHMARK = Path(__file__).parents[3] / "benchmarks" / "personalised.py"


@pytest.fixture(scope="module")
def personalised():
    return SimpleNamespace(**runpy.run_path(str(BENCHMARK)))


def test_a_sample_costs_each_kind_of_people_what_they_offered(personalised):
    offered, threshold = np.array([0.1, 0.4, 0.7, 1.5]), 0.7
    inside = personalised.kept(offered, threshold)
    cost = np.log1p(inside * np.expm1(threshold))  # of a measurement of a sample
    assert cost == pytest.approx(np.minimum(offered, threshold))


def test_the_threshold_has_the_least_expected_error(personalised):
    random = np.random.default_rng(1)
    offered, people = np.array([0.05, 0.3, 0.3, 0.9]), np.array([3, 5, 8, 40])
    chosen, error = personalised.best_threshold(offered, people)
    simulated = {}
    for threshold in (0.05, 0.3, 0.9):
        sample = random.binomial(people, personalised.kept(offered, threshold), (40_000, 4)).sum(axis=1)
        simulated[threshold] = np.mean((sample + random.laplace(0, 1 / threshold, 40_000) - people.sum()) ** 2)
    assert chosen == min(simulated, key=simulated.get)
    assert error == pytest.approx(simulated[chosen], rel=0.05)


@pytest.mark.parametrize(("name", "least", "most"), [("pbd", 0, 1), ("pba", 0, 1), ("pba as coded", 3, 99)])
def test_only_the_forms_that_keep_books_stay_within_the_epsilon_of_everybody(personalised, name, least, most):
    kinds = personalised.Kinds(np.array([0.4, 0.8, 1.0]), np.array([20, 5, 10]), np.array([300.0, 300, 400]))
    totals = np.random.default_rng(3).poisson(500, (120, 2))
    _, _, window = personalised.run(totals, kinds, name, 5)
    assert least < window <= most + 1e-9


def test_real_streams_that_are_not_there_are_skipped(personalised, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["personalised.py", "--data", "nowhere", "--steps", "3", "--repetitions", "1"])
    monkeypatch.setitem(personalised.main.__globals__, "figures", lambda *_: {})
    monkeypatch.setitem(personalised.main.__globals__, "gains", lambda *_: [])
    personalised.main()
    assert "stream tdrive_beijing is skipped: there is no folder nowhere" in capsys.readouterr().err
