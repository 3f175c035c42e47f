"""The plan as users meet it: errors per query, exact budgets, the text, and names that load late."""

import subprocess
import sys

import numpy as np
import pytest

from eventide import windows
from eventide.errors import BudgetExceeded, InputError
from eventide.windows import Query
from eventide.windows.planners import registry

QUERIES = [Query(15, 5), Query(20, 10, name="ten"), Query(350, 350), Query(15, 5)]


def discrete(epsilon):
    """The variance of discrete Laplace noise of scale 1 / epsilon."""
    q = np.exp(-epsilon)
    return 2 * q / (1 - q) ** 2


def test_errors_of_the_queries_in_the_order_given():
    plan = windows.plan(QUERIES, planner="base")
    assert plan.query_errors == pytest.approx(np.array([54, 36, 18, 54]) / 18 * discrete(1 / 3), rel=1e-6)
    assert plan.workload_error == pytest.approx(9 * discrete(1 / 3), rel=1e-6)
    assert plan.cost == pytest.approx(162)  # with 2 / epsilon^2 = 18 for a slot


@pytest.mark.parametrize("planner", registry.PLANNERS)
@pytest.mark.parametrize(("epsilon", "window", "sensitivity"), [(1, 1, 1), (8, 1, 1), (8, 3, 2)])
def test_the_errors_of_a_plan_are_those_that_its_answers_state(planner, epsilon, window, sensitivity):
    queries = [Query(4, 2), Query(12, 4)]
    plan = windows.plan(queries, epsilon, planner)
    due = plan.start(window=window, sensitivity=sensitivity).push_many(np.zeros(12, dtype=int))
    stated = [due.variance[(due.query == query) & (due.begin < 4)].mean() for query in range(2)]
    errors = plan.errors(window, sensitivity)
    if planner != "binary":  # which reckons over windows that begin later as well
        assert errors == pytest.approx(stated)
    assert plan.workload_error <= plan.cost


def test_a_query_beyond_the_horizon_has_no_error_and_is_reported():
    plan = windows.plan(QUERIES, horizon=100)
    assert np.isnan(plan.query_errors).tolist() == [False, False, True, False]
    assert plan.workload_error == pytest.approx(np.nansum(plan.query_errors))
    assert "no window ends by the horizon: 350 every 350" in plan.explain()
    assert "leave the horizon out" not in plan.explain()  # it ends before a cycle is over


def test_a_horizon_that_reaches_over_a_cycle_is_better_left_out():
    queries = [Query(4, 2), Query(6, 6), Query(60, 6)]
    assert "leave the horizon out: the plan then repeats" in windows.plan(queries, horizon=600).explain()
    assert np.isfinite(windows.plan(queries).query_errors).all()


def test_errors_scale_with_epsilon_squared():
    whole, tenth = (windows.plan(QUERIES, epsilon=epsilon) for epsilon in (1, 0.1))
    assert tenth.cost == pytest.approx(100 * whole.cost, rel=1e-5)


@pytest.mark.parametrize("planner", registry.PLANNERS)
@pytest.mark.parametrize("epsilon", [0.000001, "1/3", 0.3, 1, 1_000_000])
def test_budgets_sum_to_at_most_epsilon_on_every_tick(planner, epsilon):
    plan = windows.plan(QUERIES, epsilon, planner)
    slots, ticks = plan.slots, np.arange(plan.scheme.length)[:, None]
    per_tick = ((slots.begin <= ticks) & (ticks < slots.end)) @ slots.budget
    assert per_tick.max() == slots.largest_sum() <= plan.budget
    assert per_tick.min() >= plan.budget - 20


def test_a_planner_that_overspends_is_caught(monkeypatch):
    honest = registry.design("base", windows.plan(QUERIES).workload, 10**9)
    honest.slots.budget[0] += 2
    monkeypatch.setattr("eventide.windows.plans.design", lambda *_: honest)
    with pytest.raises(BudgetExceeded, match=r"1\.00000|1 left"):
        windows.plan(QUERIES)


def test_explain_tells_levels_budgets_errors_and_other_planners():
    text = windows.plan(QUERIES, planner="sample-dp").explain().splitlines()
    assert text[0] == "plan by 'sample-dp': 4 queries, epsilon 1 for every tick; it repeats every 350 ticks"
    rows = [line.split() for line in text]
    assert ["1", "1", "350", "0.5"] in rows
    assert ["0", "70", "5", "0.5"] in rows
    assert ["15", "every", "5", "2", "4.85"] in rows
    assert ["ten", "1", "5.60"] in rows
    planners = [row[0] for row in rows[-5:]]
    assert planners == list(registry.PLANNERS)
    assert ["sample-dp", "86.19", "1"] in rows


def test_comparison_leaves_out_planners_that_cannot():
    assert set(windows.plan([Query(6, 3), Query(8, 4)]).compare()) == {"base", "binary", "emd", "best"}


@pytest.mark.parametrize(
    ("keywords", "says"),
    [
        ({"planner": "magic"}, "use one of base, binary, sample-dp, emd, best"),
        ({"epsilon": 0}, "between 0.000001 and 1000000"),
        ({"epsilon": float("nan")}, "not a number"),
        ({"horizon": -1}, "horizon is -1"),
    ],
)
def test_bad_arguments_are_refused(keywords, says):
    with pytest.raises(InputError, match=says):
        windows.plan(QUERIES, **keywords)


def test_importing_the_package_loads_no_numpy():
    code = "import sys, eventide.windows; assert 'numpy' not in sys.modules; eventide.windows.Query(5, 5)"
    subprocess.run([sys.executable, "-c", code], check=True)
