"""Nested plans: closed-form variances against a dense network, budgets dealt exactly, better budgets."""

import numpy as np
import pytest
from window_oracles import random_plan

from eventide.errors import InputError
from eventide.privacy.amounts import NANO
from eventide.windows.schemes.nested import Level, Nested
from eventide.windows.schemes.scheme import noise_variance

NO_STEP = np.empty(0, dtype=np.int64)


def uniform_plan(atoms, blocks):
    levels = [Level(np.arange(0, atoms + 1, block), np.full(atoms // block, share)) for block, share in blocks]
    return Nested(np.arange(atoms + 1), levels, NANO, periodic=False)


def dense_variance(slots, begin, end):
    """The effective resistance between begin and end in the network of all slots that end in time."""
    used = slots[np.flatnonzero(slots.end <= end)]
    nodes, place = np.unique(np.concatenate([used.begin, used.end, [begin, end]]), return_inverse=True)
    u, v = place[: len(used)], place[len(used) : 2 * len(used)]
    laplacian = np.zeros((len(nodes), len(nodes)))
    strength = 1 / noise_variance(used.budget)
    for i, j, sign in ((u, u, 1), (v, v, 1), (u, v, -1), (v, u, -1)):
        np.add.at(laplacian, (i, j), sign * strength)
    probe = (nodes == end).astype(float) - (nodes == begin)
    return probe @ np.linalg.pinv(laplacian, hermitian=True) @ probe


def all_windows(nodes):
    begin, end = np.triu_indices(len(nodes), 1)
    return nodes[begin], nodes[end]


def variance(plan, *windows):
    begin, end = np.array(windows).T
    return plan.variance(begin, end, NO_STEP)


def test_two_levels_by_hand():
    plan = uniform_plan(12, [(1, 1), (4, 0.5)])
    windows = [(0, 4), (1, 4), (2, 4), (3, 4), (0, 3), (1, 3), (2, 11), (6, 9), (1, 12)]
    assert variance(plan, *windows) == pytest.approx([6.4, 9.6, 9.6, 6.4, 24, 16, 40, 17.6, 22.4], abs=1e-12)


def test_three_levels_by_hand():
    plan = uniform_plan(8, [(1, 1), (2, 1 / 3), (4, 0.25)])
    windows = [(0, 4), (1, 4), (1, 8), (3, 8), (5, 7), (2, 6), (1, 7)]
    expected = [12.8, 12.5333333, 25.3333333, 18.9333333, 14.6666667, 19.2, 31.2]
    assert variance(plan, *windows) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_closed_form_is_the_dense_network_of_the_slots_that_end_in_time(seed):
    plan = random_plan(np.random.default_rng(seed))
    begin, end = all_windows(plan.nodes)
    dense = [dense_variance(plan.slots, b, e) for b, e in zip(begin, end, strict=True)]
    assert plan.variance(begin, end, NO_STEP) == pytest.approx(dense, rel=1e-9)


@pytest.mark.parametrize("seed", range(5))
def test_windows_over_several_cycles_are_those_of_the_repeated_slots(seed):
    plan = random_plan(np.random.default_rng(seed), periodic=True)
    slots, cycle = plan.slots, plan.length
    shift = np.repeat(np.arange(3) * cycle, len(slots))
    repeated = slots[np.tile(np.arange(len(slots)), 3)]
    repeated = type(slots)(repeated.level, repeated.begin + shift, repeated.end + shift, repeated.budget)
    begin, end = all_windows(np.concatenate([plan.nodes, plan.nodes[1:] + cycle, plan.nodes[1:] + 2 * cycle]))
    chosen = np.random.default_rng(seed).permutation(len(begin))[:80]
    dense = [dense_variance(repeated, b, e) for b, e in zip(begin[chosen], end[chosen], strict=True)]
    assert plan.variance(begin[chosen], end[chosen], NO_STEP) == pytest.approx(dense, rel=1e-9)


@pytest.mark.parametrize("budget", [1_000, 999_999_937, 10**15])
def test_budgets_of_the_slots_over_a_tick_sum_to_epsilon_exactly(budget):
    random = np.random.default_rng(budget)
    for _ in range(20):
        plan = random_plan(random).with_budget(budget)
        ticks = np.arange(plan.length)[:, None]
        over = (plan.slots.begin <= ticks) & (ticks < plan.slots.end)
        assert (over @ plan.slots.budget == budget).all()
        assert plan.slots.largest_sum() == budget
        assert plan.slots.budget.min() > 0


def test_shares_are_rounded_down_and_atoms_get_the_rest():
    plan = uniform_plan(4, [(1, 1), (2, 0.5), (4, 1 / 3)]).with_budget(1_000)
    assert [budget.tolist() for budget in plan.budgets] == [[334] * 4, [333] * 2, [333]]


def test_a_plan_that_ends_answers_nothing_beyond_its_end():
    plan = uniform_plan(8, [(1, 1), (4, 0.5)])
    with pytest.raises(InputError, match="where no slot of the plan does"):
        variance(plan, (4, 12))


@pytest.mark.parametrize("seed", range(20))
def test_loads_say_how_the_error_grows_with_each_slots_variance(seed):
    """The error is homogeneous in the slots' variances, and its slope at one slot is the load of that slot."""
    random = np.random.default_rng(seed)
    plan = random_plan(random)
    begin, end = np.triu_indices(len(plan.nodes), 1)
    weight = random.uniform(0.1, 2, len(begin))
    error = weight @ plan.view(begin, end).variance
    loads, noise = np.concatenate(plan.loads(begin, end, weight)), noise_variance(np.concatenate(plan.budgets))
    released = np.isfinite(noise)
    assert loads[~released] == pytest.approx(0)
    assert loads[released] @ noise[released] == pytest.approx(error, rel=1e-9)
    slots = plan.slots
    slot, nudge = random.integers(len(slots)), 1e-4
    budget = slots.budget.copy()
    budget[slot] = round(budget[slot] * (1 - nudge))
    nudged = type(slots)(slots.level, slots.begin, slots.end, budget)
    dense = [
        weight @ [dense_variance(s, plan.nodes[b], plan.nodes[e]) for b, e in zip(begin, end, strict=True)]
        for s in (slots, nudged)
    ]
    growth = noise_variance(budget)[slot] - noise_variance(slots.budget)[slot]
    assert (dense[1] - dense[0]) / growth == pytest.approx(loads[released][slot], rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_better_budgets_never_raise_the_error(seed):
    random = np.random.default_rng(seed)
    plan = random_plan(random).simplified()
    begin, end = np.triu_indices(len(plan.nodes), 1)
    weight = random.uniform(0.1, 2, len(begin))
    errors = [weight @ plan.view(begin, end).variance]
    for _ in range(30):
        plan = plan.with_best_fractions(begin, end, weight)
        errors.append(weight @ plan.view(begin, end).variance)
    assert (np.diff(errors) <= 1e-7 * errors[0]).all()


def test_best_budgets_of_two_levels_are_found():
    """Windows that are whole blocks and single atoms: the best fraction is found by trying all."""
    begin, end, weight = np.array([0, 0, 1, 2, 3]), np.array([4, 1, 2, 3, 4]), np.array([20.0, 1, 1, 1, 1])

    def error(fraction):
        return weight @ uniform_plan(4, [(1, 1), (4, fraction)]).view(begin, end).variance

    plan = uniform_plan(4, [(1, 1), (4, 0.7)])
    for _ in range(100):
        plan = plan.with_best_fractions(begin, end, weight)
    tried = np.linspace(0, 0.99, 1000)
    errors = [error(fraction) for fraction in tried]
    assert weight @ plan.view(begin, end).variance <= min(errors) * (1 + 1e-6)
    assert 0.1 < tried[np.argmin(errors)] < 0.9


@pytest.mark.parametrize("seed", range(20))
def test_simplified_plans_have_no_twins_no_idle_levels_and_no_larger_variance(seed):
    plan = random_plan(np.random.default_rng(seed))
    simple = plan.simplified()
    begin, end = all_windows(plan.nodes)
    assert (simple.variance(begin, end, NO_STEP) <= plan.variance(begin, end, NO_STEP) * (1 + 1e-7)).all()
    intervals = list(zip(simple.slots.begin, simple.slots.end, strict=True))
    assert len(set(intervals)) == len(intervals)
    assert all(budget.any() for budget in simple.budgets)
    assert simple.slots.largest_sum() == NANO
