"""Queries and workloads: merging, cycle and horizon, cutting at the cycle, and what is refused."""

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.windows.workload import Query, Workload, cut_at_cycle


def test_windows_of_one_cycle():
    #  tick 0   3   4   6   8   9   12
    #  3    |---|-------|-------|---      every window begins inside [0, 12), ends may lie beyond
    workload = Workload.of([Query(6, 3), Query(8, 4)])
    windows = sorted(zip(workload.begin.tolist(), workload.end.tolist(), strict=True))
    assert windows == [(0, 6), (0, 8), (3, 9), (4, 12), (6, 12), (8, 16), (9, 15)]
    assert workload.length == 12
    assert workload.periodic
    assert workload.nodes.tolist() == [0, 3, 4, 6, 8, 9, 12]


def test_windows_up_to_a_horizon():
    workload = Workload.of([Query(6, 3), Query(8, 4), Query(15, 15)], horizon=11)
    windows = sorted(zip(workload.begin.tolist(), workload.end.tolist(), strict=True))
    assert windows == [(0, 6), (0, 8), (3, 9)]
    assert workload.dropped == (Query(15, 15),)
    assert workload.kind.tolist() == [0, 1, -1]
    assert not workload.periodic


def test_a_horizon_beyond_the_cycle_plans_one_cycle():
    workload = Workload.of([Query(6, 3), Query(8, 4)], horizon=1_000)
    assert workload.length == 12
    assert workload.end.max() == 12


def test_equal_queries_and_windows_are_merged_with_their_weight():
    workload = Workload.of([Query(8, 4), Query(8, 8), Query(8, 4), Query(8, 4, name="again")])
    begin, end, weight = workload.pieces
    found = dict(zip(zip(workload.nodes[begin], workload.nodes[end], strict=True), weight, strict=True))
    # 8 every 4 is asked three times and has the windows [0, 8) and [4, 12), the latter cut into [4, 8) and [0, 4)
    assert found == {(0, 8): 1.5 + 1.0, (4, 8): 1.5, (0, 4): 1.5}
    assert workload.steps.sizes == [4, 8]
    assert workload.steps.queries == [3, 1]
    assert workload.steps.slots == [6, 1]


def test_cut_at_the_cycle():
    #  cycle of 10:   [7, 34) = [7, 10) + 2 * [0, 10) + [0, 4),   [13, 20) = [3, 10)
    pieces = cut_at_cycle(np.array([7, 13]), np.array([34, 20]), 10)
    found = sorted(zip(pieces.owner, pieces.begin, pieces.end, pieces.count, strict=True))
    assert found == [(0, 0, 4, 1), (0, 0, 10, 2), (0, 7, 10, 1), (1, 3, 10, 1)]
    assert pieces.add_up((pieces.end - pieces.begin).astype(float), 2).tolist() == [27.0, 7.0]


@pytest.mark.parametrize(
    ("window", "step", "says"),
    [
        (15, 4, "use 12 or 16"),
        (3, 5, "use 5"),
        (0, 5, "window of a query is 0"),
        (15, 0, "step of a query is 0"),
        (-5, 5, "window of a query is -5"),
        (5, -5, "step of a query is -5"),
        (1.5, 1, "whole number of ticks"),
        (True, 1, "whole number of ticks"),
        ("15", 5, "whole number of ticks"),
        (10**18, 10**18, "at most 1,000,000,000,000"),
    ],
)
def test_bad_queries_are_refused(window, step, says):
    with pytest.raises(InputError, match=says):
        Query(window, step)


PRIMES = [1_000_003, 1_000_033, 1_000_037]
MANY_PRIMES = [p for p in range(2, 5_000) if all(p % d for d in range(2, int(p**0.5) + 1))]


@pytest.mark.parametrize(
    ("queries", "horizon", "says"),
    [
        ([], None, "no query"),
        ([(15, 5)], None, r"give each one as Query"),
        ([Query(5, 5, "a"), Query(10, 5, "a")], None, "2 queries are named 'a'"),
        ([Query(p, p) for p in PRIMES], None, r"10\^18.0 ticks .* give a horizon"),
        ([Query(p, p) for p in MANY_PRIMES], None, r"10\^2\d{3}\.\d ticks .* give a horizon"),
        ([Query(p, p) for p in [1, *PRIMES]], 10**8, "shorten the horizon"),
        ([Query(20, 10)], 5, "shortest window has 20"),
        ([Query(10, 10)], 0, "horizon is 0"),
        ([Query(10, 10)], 2.5, "horizon is 2.5"),
    ],
)
def test_bad_workloads_are_refused_and_the_message_says_what_to_do(queries, horizon, says):
    with pytest.raises(InputError, match=says):
        Workload.of(queries, horizon)


def test_a_horizon_makes_a_long_cycle_possible():
    workload = Workload.of([Query(p, p) for p in PRIMES], horizon=5_000_000)
    assert len(workload.begin) == 12
