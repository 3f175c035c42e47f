"""Several statistics: what somebody can lose by all of them, over everything that somebody can do in small cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import eventide as ev
from eventide.errors import BudgetExceeded, InputError, StateError
from eventide.events.caps import Cap
from eventide.events.statistic_names import parse_statistic
from eventide.events.timeline import Timeline
from eventide.filters.algorithms import NEWEST
from eventide.mechanisms.several import Several
from eventide.privacy.archive import unpack

KEY, ANNA = bytes(16), np.uint64(7)
NAMES, BETWEEN, EDGES = ["people", "mean:fare", "sum:fare", "quantiles:fare"], "fare=-1,2,1", "fare=-1,0,1,2"
STATISTIC = parse_statistic(NAMES, BETWEEN, EDGES)
TOLD = [part.described() | {"statistic": part.name, "mechanism": "uniform"} for part in STATISTIC.parts]
ROWS = [(), ((0, 2),), ((1, -1),), ((0, 2), (0, -1), (1, 2))]  # events of a step: bin and value


def made(epsilon=1, window=2, most=1, cap=None, told=TOLD, **more):
    bound = None if cap is None else STATISTIC.window_sensitivity(cap, window, most)
    return Several(epsilon, window, 2, statistics=told, most=most, window_sensitivity=bound, **more)


def numbers_of(stream, most, cap):
    """What a feed counts of one person's rows, step after step."""
    memory, found = None if cap is None else STATISTIC.memory(cap, KEY), []
    for step, row in enumerate(stream):
        tally = STATISTIC.tally(2, most, KEY, users=True)
        bins, fares = (np.array([event[at] for event in row], kind) for at, kind in ((0, np.int32), (1, np.int64)))
        tally.add(np.full(len(row), ANNA), bins, np.stack([fares, fares + 1], axis=1))  # buckets begin at -1
        found.append(tally.counts(step) if memory is None else tally.capped_counts(step, memory)[0])
    return np.array(found)


@pytest.mark.parametrize(("most", "window", "rows", "cap"), [(1, 2, 4, None), (2, 2, 4, None), (1, 5, 2, Cap(1, 5))])
def test_nobody_loses_more_than_epsilon_by_all_of_them_together(most, window, rows, cap):
    """Noise of scale b hides a change of x with x / b: added up over all numbers of all steps."""
    mechanism, steps = made(window=window, most=most, cap=cap), window + 1
    parts = mechanism._parts._parts
    assert list(parts) == NAMES
    shares = [part.ledger.nano_epsilon // part.ledger.window / 10**9 for part in parts.values()]
    scales = zip(parts.values(), shares, strict=True)
    scale = np.concatenate([np.full(part.size, part.sensitivity / share) for part, share in scales])
    counted = {stream: numbers_of(stream, most, cap) for stream in itertools.product(ROWS[-rows:], repeat=steps)}
    counted |= {stream: numbers_of(stream, most, cap) for stream in itertools.product(((), ROWS[-1]), repeat=steps)}
    largest = 0.0
    for stream, begin, sides in itertools.product(list(counted), range(2), itertools.product("=+-", repeat=window)):
        here, there = list(stream), list(stream)
        for step, side in enumerate(sides, begin):
            if side != "=":
                (here if side == "-" else there)[step] = ()
        if {tuple(here), tuple(there)} <= counted.keys():
            apart = np.abs(counted[tuple(here)] - counted[tuple(there)])
            largest = max(largest, float((apart / scale).sum()))
    assert 0.5 < largest <= 1 + 1e-9  # the cases are hard ones


# People of slots of two steps beside events of every step.

BESIDE = [{"statistic": "events", "mechanism": "uniform", "part": "2"}]
BESIDE += [{"statistic": "people/2h/1h", "mechanism": "uniform", "part": "3"}]
KINDS = [frozenset(bins) for bins in ((), (0,), (1,), (0, 1))]  # the bins in which somebody is at a step


def beside(window=3, size=2, **more):
    return Several(1, window, size, statistics=BESIDE, **more)


def visits_of(stream, size, most):
    """What a feed counts of one person's bins, step after step: events, and behind them people of slots."""
    statistic = parse_statistic([each["statistic"] for each in BESIDE]).for_bins(size)
    memory, found = statistic.memory(None, KEY, None, most), []
    for step, inside in enumerate(stream):
        tally = statistic.tally(size, most, KEY, users=True)
        tally.add(np.full(len(inside), ANNA), np.array(sorted(inside), np.int32))
        found.append(tally.capped_counts(step, memory)[0])
    return np.array(found)


@pytest.mark.parametrize(
    ("size", "most", "window"),
    [(1, 1, 2), (2, 1, 3), *(pytest.param(2, *each, marks=pytest.mark.slow) for each in ((1, 1), (1, 2), (2, 3)))],
)
def test_nobody_loses_more_by_steps_and_slots_than_the_ledger_says_of_their_window(size, most, window):
    """All rows of one person in two slots of two steps, with rows added or removed at the steps of a window.

    steps   0 1 | 2 3
    spans   a a   b b       each is in every window that touches it
    """
    mechanism, kinds = beside(window, size, most=most), KINDS[: 2**size]
    mechanism.ledger.entries = entries = []
    for _ in range(4):
        mechanism.release([0] * 2 * size)
    points = [sum(each.amount for each in entries if (each.step, each.kind) == (at, "point")) for at in range(4)]
    spans = [sum(each.amount for each in entries if (each.step, each.kind) == (at, "open")) for at in (0, 2)]
    assert [each.step for each in entries if each.kind == "close"] == [1, 3]
    events, people = mechanism._parts._parts.values()
    assert (events.sensitivity, people.sensitivity) == (most, min(2 * most, size))
    a_step, a_slot = points[0] / events.sensitivity, spans[0] / people.sensitivity  # lost by a change of 1
    counted = {stream: visits_of(stream, size, most) for stream in itertools.product(kinds, repeat=4)}
    fullest = 0.0
    for stream, begin in itertools.product(counted, range(5 - window)):
        inside = range(begin, begin + window)
        held = sum(points[at] for at in inside) + sum(spans[slot] for slot in {at // 2 for at in inside})
        ways = [[stream[at], *(kinds[1:] if not stream[at] else [kinds[0]])] for at in inside]
        for changed in itertools.product(*ways):
            apart = np.abs(counted[stream] - counted[*stream[:begin], *changed, *stream[begin + window :]])
            lost = apart[:, :size].sum() * a_step + apart[:, size:].sum() * a_slot
            assert lost <= held <= 10**9
            fullest = max(fullest, lost / held)
    assert fullest > 1 - 1e-6  # somebody loses all of it


def test_a_slot_has_numbers_at_its_last_step_and_is_charged_from_its_first():
    mechanism = beside(noise=ev.noise.Zero())
    releases = [mechanism.release([at, 0, 5 * (at % 2), 0]) for at in range(6)]
    told = [each.statistics["people/2h"] for each in releases]
    assert [each.values[0] for each in told[1::2]] == [5] * 3
    assert all(np.isnan(each.values).all() and not each.fresh for each in told[::2])
    assert told[1].scale.tolist() == [2 * 2 / 0.6] * 2  # two bins change, and three steps meet two slots
    assert [each.spent for each in releases] == pytest.approx([0.4 / 3 + 0.6 / 2, 0.4 / 3] * 3, abs=1e-8)
    assert 1 - 1e-6 < mechanism.ledger.worst_window() <= 1


def test_a_slot_that_began_before_is_not_measured_and_its_steps_are_those_of_the_clock():
    hours = Timeline("2024-03-30", "1h", "Europe/Berlin")  # the second day has 23 hours
    told = [BESIDE[0], {"statistic": "people/1d/1h", "mechanism": "uniform", "slots": 8}]
    mechanism = Several(1, 168, 1, statistics=told, noise=ev.noise.Zero())
    mechanism.know_times(hours, origin=7)
    measured = [at + 7 for at in range(96) if mechanism.release([1, 1]).statistics["people/1d"].fresh]
    assert measured == [24 + 23 - 1, 24 + 23 + 24 - 1, 24 + 23 + 48 - 1]
    short = Several(1, 25, 1, statistics=[BESIDE[0], {"statistic": "people/1d/1h", "mechanism": "uniform"}])
    with pytest.raises(InputError, match="a window meets 3 slots of people/1d on these clocks"):
        short.know_times(hours, origin=0)


def test_the_ledger_refuses_more_slots_than_were_planned():
    """Three steps meet two slots: where each may spend the whole part of both, the second has no room."""
    mechanism = Several(1, 3, 2, statistics=[BESIDE[0], BESIDE[1] | {"slots": 1}])
    for _ in range(2):
        mechanism.release([0] * 4)
    with pytest.raises(BudgetExceeded):
        mechanism.release([0] * 4)


@pytest.mark.parametrize("name", ["uniform", "sample", "hybrid", "ba"])
def test_a_saved_state_goes_on_inside_a_slot(name):
    told = [each | {"mechanism": name} for each in BESIDE]
    one = Several(1, 4, 2, statistics=told, noise=ev.noise.Seeded(5))
    for at in range(3):
        one.release([at, 0, 5, 0])
    other = ev.load(one.save())
    for at in range(9):
        wanted, found = one.release([at, 3, 5, 0]), other.release([at, 3, 5, 0])
        assert repr(found.statistics) == repr(wanted.statistics)
    assert one.ledger.worst_window() == other.ledger.worst_window() <= 1


def test_slots_stand_behind_a_statistic_of_every_step_and_have_no_cap():
    with pytest.raises(InputError, match="the first statistic must be one that every step has"):
        Several(1, 3, 2, statistics=BESIDE[::-1])
    with pytest.raises(InputError, match="no window sensitivity in common"):
        beside(window=9, window_sensitivity=2)


def test_each_may_have_a_filter_of_its_own():
    told = [BESIDE[0] | {"filter": "repeat"}, {"statistic": "people", "mechanism": "uniform", "filter": "none"}]
    parts = Several(1, 3, 2, statistics=told, filter="truncate")._parts._parts
    assert [type(part.filter).__name__ for part in parts.values()] == ["Repeat", "NoneType"]


@pytest.mark.parametrize(("given", "chosen", "expected"), [(None, {}, NEWEST), (2, {}, 2), (2, {"algorithm": 3}, 3)])
def test_tide_has_the_algorithm_of_all_statistics_unless_one_has_its_own(given, chosen, expected):
    told = [each | {"mechanism": "tide", "parameters": chosen} for each in TOLD[:2]]
    mechanism = made(told=told, algorithm=given)
    for several in (mechanism, ev.load(mechanism.save(), Several)):
        assert [part.algorithm for _, part in several.each_statistic()] == [expected] * 2


def test_what_was_saved_before_there_was_an_algorithm_has_the_first():
    mechanism = made(told=[TOLD[0] | {"mechanism": "tide"}], algorithm=1)
    document = unpack(mechanism.save())
    assert "algorithm" not in document["parameters"]  # as it was written then
    assert ev.load(mechanism.save(), Several).algorithm == 1


def test_what_is_not_there_is_refused():
    with pytest.raises(InputError, match="there is no statistic to publish"):
        made(told=[])
    with pytest.raises(InputError, match="pegasus cannot publish people"):
        made(told=[{"statistic": "people", "mechanism": "pegasus"}])
    with pytest.raises(InputError, match="have no levels"):
        made(levels={"all": ["a", "a"]})
    with pytest.raises(InputError, match="a statistic would get less than"):
        made(epsilon=0.000002, told=[*TOLD[:2], TOLD[3]])
    with pytest.raises(StateError, match="a mechanism of its own"):
        made().budget_allocation()
    with pytest.raises(InputError, match="3 counts were given for the 16 numbers of a step"):
        made().release([1, 2, 3])


def test_replicas_are_as_runs_alone():
    numbers = np.arange(16)
    several = made(replicas=3, noise=ev.noise.Zero()).release(numbers)
    alone = made(noise=ev.noise.Zero()).release(numbers)
    assert several.values.tolist() == [alone.values.tolist()] * 3
    for name, told in several.statistics.items():
        assert np.array_equal(told.values, np.stack([alone.statistics[name].values] * 3), equal_nan=True)


@pytest.mark.slow
def test_tide_follows_means_medians_and_sums_below_0_in_large_units():
    """Sums of some thousand units, with a rhythm: errors far below those of equal looks, and intervals that hold."""
    chance, steps = np.random.default_rng(4), 168 * 4
    hour = np.arange(steps)
    events = chance.poisson(300 * (1 + 0.5 * np.sin(2 * np.pi * hour / 24)))
    told = [
        {"statistic": "mean:fare", "between": "fare=0,100,0.1", "parameters": {"seasons": [24]}},
        {"statistic": "sum:fare", "between": "fare=-100,100,0.1", "parameters": {"seasons": [24]}},
    ]
    fares = [chance.normal(20, 15, number).clip(-100, 100) for number in events]
    spread = [parse_statistic(each["statistic"], each["between"]).grid for each in told]
    means, sums = np.array([each.clip(0).mean() for each in fares]), np.array([each.sum() for each in fares])
    mechanism = Several(1, 168, 1, statistics=told, seed=3, filter="truncate")
    released = []
    for each in fares:
        above = np.rint(each.clip(0) / float(spread[0].unit)).astype(int)
        signed = np.rint(each / float(spread[1].unit)).astype(int)
        released.append(
            mechanism.release([above.sum(), (1000 - above).sum(), signed.clip(0).sum(), (-signed).clip(0).sum()])
        )
    later = slice(168, None)
    mean = np.array([each.values[0] for each in released])
    total = np.array([each.statistics["sum:fare"].values[0] for each in released])
    assert np.abs(mean - means)[later].mean() < 0.5 * 100  # a look of its own: 168 x 2 x 100 / 300
    assert np.abs(total - sums)[later].mean() < 0.2 * 2 * 168 * 100
    low, high = (np.array([getattr(each, end)[0] for each in released]) for end in ("low", "high"))
    assert ((low <= means) & (means <= high))[later].mean() > 0.75
    ends = [np.array([getattr(each.statistics["sum:fare"], end)[0] for each in released]) for end in ("low", "high")]
    assert ((ends[0] <= sums) & (sums <= ends[1]))[later].mean() > 0.75
    assert mechanism.ledger.worst_window() <= 1
