"""The published planners against their formulas, the worked examples, and figures measured independently."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from eventide.bench.study.workloads import general, special
from eventide.errors import InputError
from eventide.privacy.amounts import NANO
from eventide.windows.planners import binary, emd, sample_dp
from eventide.windows.planners import every_step as base
from eventide.windows.schemes.scheme import noise_variance, query_errors, workload_error
from eventide.windows.workload import Query, Workload

EXAMPLE = Workload.of([Query(15, 5), Query(20, 10), Query(350, 350)])
FIGURE = Workload.of([Query(6, 3), Query(9, 3), Query(8, 4), Query(12, 6)])


def by_window(workload, scheme):
    return dict(zip(workload.window.tolist(), query_errors(workload, scheme), strict=True))


def test_all_steps_of_the_first_example():
    assert by_window(EXAMPLE, base.design(EXAMPLE, NANO)) == pytest.approx({15: 54, 20: 36, 350: 18})


def test_two_steps_are_best_in_the_first_example():
    plan = sample_dp.design(EXAMPLE, NANO)
    assert plan.steps == [5, 350]
    assert by_window(EXAMPLE, plan) == pytest.approx({15: 24, 20: 32, 350: 8})


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [([0, 2], "1/9"), ([0, 1], "2/9"), ([1, 2], "1/3"), ([0], "1/3"), ([0, 1, 2], "0")],
)
def test_earth_movers_distance_of_the_second_example(chosen, expected):
    assert emd.distance([3, 4, 6], [2, 1, 1], chosen) == Fraction(expected)


def test_distance_of_a_single_step_is_zero():
    assert emd.distance([7], [3], [0]) == 0
    assert emd.cut_sequence([7], [3]) == [(0, [0])]


def test_cuts_of_the_third_example():
    assert emd.cut_sequence([3, 4, 6], [2, 1, 1]) == [(Fraction(1, 3), [0]), (Fraction(1, 9), [0, 2]), (0, [0, 1, 2])]


def test_cuts_follow_the_definition_literally():
    """Against the published procedure written out with rationals, on random steps with many ties."""
    random = np.random.default_rng(5)
    for _ in range(20):
        steps = sorted(random.choice(np.arange(1, 40), 8, replace=False).tolist())
        queries = random.integers(1, 4, 8).tolist()
        cuts = [0, 8]
        for _, chosen in emd.cut_sequence(steps, queries)[1:]:
            options = [sorted([*cuts, i]) for i in range(1, 8) if i not in cuts]
            groups = [list(pairwise(option)) for option in options]
            picks = [[max(range(a, b), key=lambda i: (queries[i], i)) for a, b in group] for group in groups]
            distances = [emd.distance(steps, queries, pick) for pick in picks]
            first = distances.index(min(distances))
            assert chosen == picks[first]
            cuts = options[first]


def test_layers_and_chains_of_the_fourth_example():
    cover = emd.representative_cover(FIGURE, [0, 2], NANO)
    shortest = np.unique(cover.slots.begin[cover.slots.level == 0]).tolist()
    assert shortest == [0, 3, 4, 6, 8, 9]
    variance = cover.variance(np.array([0, 4, 8]), np.array([8, 12, 16]), np.array([4, 4, 4]))
    assert variance == pytest.approx([16, 16, 32])
    assert by_window(FIGURE, cover)[8] == pytest.approx(64 / 3)


def test_the_whole_figure():
    assert workload_error(FIGURE, base.design(FIGURE, NANO)) == pytest.approx(162)
    for chosen, expected in [([0, 1, 2], 135), ([0, 2], 73.333333), ([0], 35)]:
        assert workload_error(FIGURE, emd.representative_cover(FIGURE, chosen, NANO)) == pytest.approx(expected)
    assert workload_error(FIGURE, emd.design(FIGURE, NANO)) == pytest.approx(35)


SPECIAL = [
    (109400, 103950, 15, 25650, [20, 320, 2560], 19622.25, [40, 640, 10240]),
    (118800, 113400, 15, 25880, [20, 640], 29670.75, [20, 1280, 5120]),
    (106800, 106537.5, 15, 23382, [20, 320, 2560], 25604, [20, 2560]),
    (120600, 112050, 15, 29646, [20, 320, 2560], 22181, [20, 640]),
    (101800, 90699, 14, 23580, [20, 160, 1280], 21250, [40, 80, 320, 2560, 10240]),
]


@pytest.mark.parametrize("seed", range(5))
def test_special_workloads(seed):
    at_base, at_binary, levels, at_dp, dp_steps, at_emd, emd_steps = SPECIAL[seed]
    workload = Workload.of(special(seed))
    assert workload_error(workload, base.design(workload, NANO)) == pytest.approx(at_base)
    tree = binary.design(workload, NANO)
    assert workload_error(workload, tree) == pytest.approx(at_binary)
    assert tree.slots.level.max() + 1 == levels
    plan = sample_dp.design(workload, NANO)
    assert workload_error(workload, plan) == pytest.approx(at_dp)
    assert plan.steps == dp_steps
    cover = emd.design(workload, NANO)
    assert workload_error(workload, cover) == pytest.approx(at_emd)
    again = emd.representative_cover(workload, [workload.steps.sizes.index(step) for step in emd_steps], NANO)
    assert [s.tolist() for s in (cover.slots.begin, cover.slots.end)] == [
        s.tolist() for s in (again.slots.begin, again.slots.end)
    ]


GENERAL = [
    (99200, 92093.450, 9841.4946),
    (117400, 105978.049, 12474.5521),
    (108600, 95604.465, 8984.6999),
    (110400, 122162.165, 14410.9163),
    (108000, 105280.149, 12660.6955),
]


@pytest.mark.parametrize("seed", range(5))
def test_general_workloads(seed):
    at_base, at_binary, at_emd = GENERAL[seed]
    workload = Workload.of(general(seed), 5_000)
    assert workload_error(workload, base.design(workload, NANO)) == pytest.approx(at_base)
    assert workload_error(workload, binary.design(workload, NANO)) == pytest.approx(at_binary, rel=1e-7)
    assert workload_error(workload, emd.design(workload, NANO)) == pytest.approx(at_emd, rel=1e-7)


def test_sizes_of_a_general_workload():
    workload = Workload.of(general(0), 5_000)
    assert len(workload.nodes) == 950
    assert len(workload.pieces[0]) == 7524


def test_means_over_ten_seeds():
    on_special = [Workload.of(special(seed)) for seed in range(10)]
    on_general = [Workload.of(general(seed), 5_000) for seed in range(10)]

    def mean(workloads, planner, **keywords):
        return np.mean([workload_error(w, planner.design(w, NANO, **keywords)) for w in workloads])

    planners = (base, binary, sample_dp, emd)
    assert [mean(on_special, p) for p in planners] == pytest.approx([111_340, 104_844, 25_457, 23_091], rel=1e-4)
    assert [mean(on_general, p) for p in (base, binary, emd)] == pytest.approx([108_480, 104_305, 11_885], rel=1e-4)
    assert mean(on_general, binary, leaf=1) == pytest.approx(171_730, rel=1e-4)


@pytest.mark.parametrize("planner", [base, sample_dp, emd, binary])
def test_chains_tile_their_windows_with_slots_that_end_in_time(planner):
    workload = Workload.of([Query(8, 4), Query(24, 8), Query(48, 16)], horizon=48)
    plan = planner.design(workload, NANO)
    for begin, end, step in zip(workload.begin, workload.end, workload.step[workload.owner], strict=True):
        chain = plan.slots[plan.chain(begin, end, step)]
        order = np.argsort(chain.begin)
        assert chain.begin[order].tolist() == [begin, *chain.end[order][:-1]]
        assert chain.end.max() == end
        variance = plan.variance(np.array([begin]), np.array([end]), np.array([step]))
        assert noise_variance(chain.budget).sum() == pytest.approx(variance[0])


def test_many_layers_win_where_windows_are_single_slots():
    workload = Workload.of([Query(1, 1)] + [Query(5, 5)] * 10)
    assert workload_error(workload, emd.design(workload, NANO)) == pytest.approx(88)


@pytest.mark.parametrize("queries", [general(0), special(0)])
def test_loads_of_a_cover_add_up_to_its_error_and_better_budgets_lower_it(queries):
    workload = Workload.of(queries, 5_000)
    begin, end, weight = workload.pieces
    windows = workload.nodes[begin], workload.nodes[end], weight
    for chosen in ([0, 2], [0, 3, 5]):
        cover = emd.representative_cover(workload, chosen, NANO)
        cost, load = cover.chains(*windows)
        assert load @ noise_variance(cover.slots.budget) == pytest.approx(weight @ cost)
        better = cover.rebalanced(*windows, NANO)
        of_level = np.array([load[cover.slots.level == level].sum() for level in range(len(chosen))])
        assert weight @ better.chains(*windows)[0] <= 2 * np.cbrt(of_level).sum() ** 3 * (1 + 1e-7)
        assert better.slots.largest_sum() <= NANO


def test_a_long_window_of_a_repeating_cover_adds_up_its_cycles():
    cover = emd.design(FIGURE, NANO)
    parts = cover.variance(np.array([8, 0, 0, 8]), np.array([12, 12, 4, 52]), np.full(4, 4))
    assert parts[3] == pytest.approx(parts[0] + 3 * parts[1] + parts[2])


def test_sample_dp_says_which_steps_it_needs():
    with pytest.raises(InputError, match="divide each other; use 'best' or 'emd'"):
        sample_dp.design(FIGURE, NANO)


def test_binary_says_when_a_tree_is_too_large():
    with pytest.raises(InputError, match="leaves of 10 ticks; use 'best'"):
        binary.design(Workload.of([Query(10**9, 10**9)]), NANO)


def test_a_window_that_was_not_planned_is_refused():
    with pytest.raises(InputError, match="where no slot of the plan does"):
        emd.design(FIGURE, NANO).variance(np.array([1]), np.array([4]), np.array([3]))
