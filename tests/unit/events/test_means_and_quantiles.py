"""What one person changes in means, quantiles and signed sums, by trying all rows of small cases; and what is told."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from eventide.errors import InputError, StoreError
from eventide.events.cap_memory import CapMemory
from eventide.events.caps import Cap
from eventide.events.statistic_names import parse_statistic, statistic_of
from eventide.events.statistics import Told

KEYS = [bytes([number]) * 16 for number in range(6)]
BINS = 2
ANNA, BEN = np.uint64(11), np.uint64(2**63 + 5)
MEAN = parse_statistic("mean:fare", "fare=-1,4,1")
SIGNED = parse_statistic("sum:fare", "fare=-3,4,1")
BELOW = parse_statistic("sum:fare", "fare=-3,0,1")
QUANTILES = parse_statistic("quantiles:fare", edges="fare=0,1,2,9", quantiles=(0.25, 0.5))
VALUES = {MEAN: (-1, 0, 4), SIGNED: (-3, 1, 4), BELOW: (-3, -1, 0), QUANTILES: (0, 1, 2)}  # as they are counted
HIDDEN = {MEAN: 2 * 5, SIGNED: 7, BELOW: 3, QUANTILES: 2}  # how far one event moves with another value


def rows_of(statistic):
    cells = list(itertools.product(range(BINS), VALUES[statistic]))
    return [row for length in range(4) for row in itertools.combinations_with_replacement(cells, length)]


def tally_of(statistic, rows, most, key):
    tally = statistic.tally(BINS, most, key, users=True)
    for user, events in rows:
        bins, values = (np.array([event[at] for event in events], kind) for at, kind in ((0, np.int32), (1, np.int64)))
        tally.add(np.full(len(events), user), bins, values)
    return tally


@pytest.mark.parametrize("statistic", VALUES, ids=lambda each: f"{each.name} {each.grid}")
@pytest.mark.parametrize("most", [1, 2])
def test_rows_and_values_move_numbers_by_no_more_than_is_claimed(statistic, most):
    of_rows = of_values = 0
    for key in KEYS:
        found = {row: tally_of(statistic, [(ANNA, row)], most, key).counts(7) for row in rows_of(statistic)}
        assert min(numbers.min() for numbers in found.values()) >= 0  # as of counts
        of_rows = max(of_rows, *(numbers.sum() for numbers in found.values()))
        alike = {}
        for row in found:
            alike.setdefault(tuple(bin_ for bin_, _ in row), []).append(row)
        for one, other in (pair for rows in alike.values() for pair in itertools.combinations(rows, 2)):
            of_values = max(of_values, np.abs(found[one] - found[other]).sum())
    assert of_rows == statistic.sensitivity(most)
    assert of_values == most * HIDDEN[statistic]
    times = Fraction(HIDDEN[statistic] * most, statistic.sensitivity(most))
    again = "with epsilon as well" if times == 1 else f"with {float(times):.4g} times epsilon"
    told = f"only {again}, so less well" if times > 1 else again
    assert statistic.assumptions(most)[-1].endswith(f"their values are hidden {told}")


@pytest.mark.parametrize("statistic", VALUES, ids=lambda each: f"{each.name} {each.grid}")
def test_under_a_cap_nobody_changes_more_than_the_window_sensitivity(statistic):
    block, window, steps, limit = 3, 2, 4, Cap(1, 3)
    least, _, most = VALUES[statistic]
    rows = [(), ((0, most), (0, least)), ((1, most),), ((1, least),)]
    streams, largest = {}, 0
    for stream in itertools.product(rows, repeat=steps):
        memory = CapMemory(limit, KEYS[0])
        tallies = [tally_of(statistic, [(ANNA, row)], 1, KEYS[0]) for row in stream]
        streams[stream] = np.array([tally.capped_counts(step, memory)[0] for step, tally in enumerate(tallies)])
    for stream, begin, sides in itertools.product(
        streams, range(steps - window + 1), itertools.product("=+-", repeat=window)
    ):
        here, there = list(stream), list(stream)
        for step, side in enumerate(sides, begin):
            if side != "=":
                (here if side == "-" else there)[step] = ()
        largest = max(largest, int(np.abs(streams[tuple(here)] - streams[tuple(there)]).sum()))
    assert block == limit.block
    assert largest <= statistic.window_sensitivity(limit, window, 1)


def test_integer_arithmetic_agrees_with_a_rational_oracle():
    """Sums, means and medians of what counts, from the numbers that are measured, without noise."""
    rng = np.random.default_rng(5)
    texts = [f"{value:.3f}" for value in rng.normal(20, 60, 400)] + ["1e308", "-1e308", "5e-324", "1" + "0" * 30]
    unit, low, high = Fraction("0.05"), Fraction(-40), Fraction("100.3")
    cut = [min(max(Fraction(text), low), high) for text in texts]
    edges = "fare=-40,0,10,20,40,80,100.3"
    for name, told in (("sum:fare", "fare=-40,100.3,0.05"), ("mean:fare", "fare=-40,100.3,0.05")):
        statistic = parse_statistic(name, told)
        values, readable = statistic.grid.read(texts)
        assert readable.all()
        tally = statistic.tally(1, 1, KEYS[0], users=False)
        tally.add(None, np.zeros(len(values), np.int32), values)
        numbers = tally.counts(0).astype(float)[None]
        found = statistic.tell(Told(numbers, np.zeros_like(numbers)))[name].values[0]
        exact = sum(cut) if name == "sum:fare" else sum(cut) / len(cut)
        assert abs(Fraction(float(found)) - exact) <= unit * (len(cut) if name == "sum:fare" else 1)
    quantiles = parse_statistic("quantiles:fare", edges=edges, quantiles=(0.1, 0.5, 0.9))
    buckets, _ = quantiles.grid.read(texts)
    numbers = np.bincount(buckets, minlength=6)[None].astype(float)
    for part, told in zip((0.1, 0.5, 0.9), quantiles.tell(Told(numbers, np.zeros_like(numbers))).values(), strict=True):
        true = sorted(cut)[int(part * len(cut))]
        assert told.low[0] <= float(true) <= told.high[0]  # the bucket in which it lies
        assert told.low[0] <= told.values[0] <= told.high[0]


def test_no_data_is_no_mean_and_no_median_and_few_events_make_wide_intervals():
    numbers = np.array([[0.0, 2.0], [300.0, 1700.0], [2.0, 3.0]])
    told = parse_statistic("mean:fare", "fare=0,5,1").tell(Told(numbers, np.full(numbers.shape, 5.0)))["mean:fare"]
    assert np.isnan([told.values[0], told.low[0], told.high[0]]).all()  # two fifths of an event
    assert told.values[1:].tolist() == [0.75, 2.0]
    assert told.high[1] - told.low[1] < 0.1
    assert (told.low[2], told.high[2]) == (0, 5)
    buckets = np.array([[0.2, -3.0, 2.5], [0.0, 40.0, 10.0]])
    told = QUANTILES.tell(Told(buckets, np.ones(buckets.shape)))
    assert np.isnan(told["quantile:fare:0.5"].values).tolist() == [True, False]
    assert told["quantile:fare:0.5"].values[1] == pytest.approx(1.625)
    assert (told["quantile:fare:0.5"].low[1], told["quantile:fare:0.5"].high[1]) == (1, 2)


def test_intervals_hold_what_is_true_nine_times_in_ten():
    rng, times = np.random.default_rng(3), 4000
    for events in (3, 30, 300):
        values = np.rint(rng.gamma(2, 10, events)).clip(0, 100).astype(int)
        truth = np.array([values.sum(), (100 - values).sum()], float)
        noisy = truth + rng.laplace(0, 200, (times, 2))
        told = parse_statistic("mean:fare", "fare=0,100,1").tell(Told(noisy, np.full(noisy.shape, 200.0)))["mean:fare"]
        known = np.isfinite(told.values)
        held = (told.low[known] <= values.mean()) & (values.mean() <= told.high[known])
        assert held.mean() > 0.9
        edges = "fare=" + ",".join(map(str, range(0, 101, 5)))
        medians = parse_statistic("quantiles:fare", edges=edges)
        counts = np.bincount(medians.grid.read([str(value) for value in values])[0], minlength=20)
        noisy = counts + rng.laplace(0, 2, (times, 20))
        told = next(iter(medians.tell(Told(noisy, np.full(noisy.shape, 2.0))).values()))
        known, median = np.isfinite(told.values), np.sort(values)[events // 2]
        assert ((told.low[known] <= median) & (median <= told.high[known])).mean() > 0.85


def test_a_distribution_rises_whatever_the_noise():
    rng = np.random.default_rng(9)
    many = parse_statistic("quantiles:fare", edges="fare=0,1,2,3,4,5,6", quantiles=(0.1, 0.3, 0.5, 0.7, 0.9))
    noisy = rng.laplace(2, 20, (500, 6))
    told = np.stack([each.values for each in many.tell(Told(noisy, np.full(noisy.shape, 20.0))).values()])
    known = np.isfinite(told).all(axis=0)
    assert known.any()
    assert (np.diff(told[:, known], axis=0) >= 0).all()
    assert (told[:, known] >= 0).all()
    assert (told[:, known] <= 6).all()


def test_several_keep_what_each_counts_alone():
    told = ["people", "mean:fare", "quantiles:fare", "sum:tip"]
    several = parse_statistic(told, ["fare=-1,4,1", "tip=-3,4,1"], "fare=0,1,2,9", (0.25, 0.5))
    assert statistic_of(several.described()).names == several.names
    assert several.names == ("people", "mean:fare", "quantile:fare:0.25", "quantile:fare:0.5", "sum:tip")
    parts = several.parts
    rng = np.random.default_rng(2)
    users, bins = rng.choice([ANNA, BEN], 12), rng.integers(0, BINS, 12).astype(np.int32)
    values = np.stack([rng.integers(-1, 5, 12), rng.integers(0, 3, 12), rng.integers(-3, 5, 12)], axis=1)
    for cap in (None, Cap(3, 4)):
        every, alone = (
            several.tally(BINS, 2, KEYS[0], users=True),
            [p.tally(BINS, 2, KEYS[0], users=True) for p in parts],
        )
        every.add(users, bins, values)
        alone[0].add(users, bins)
        for tally, column in zip(alone[1:], values.T, strict=True):
            tally.add(users, bins, column)
        again = several.tally(BINS, 2, KEYS[0], users=True)
        again.join(every.to_bytes())
        if cap is None:
            wanted, found = [tally.counts(3) for tally in alone], again.counts(3)
        else:
            memories = [part.memory(cap, KEYS[0]) for part in parts]
            wanted = [tally.capped_counts(3, memory)[0] for tally, memory in zip(alone, memories, strict=True)]
            memory, other = several.memory(cap, KEYS[0]), several.memory(cap, KEYS[0])
            found, used = again.capped_counts(3, memory)
            other.take_again(used)
            assert other.parts[2].rooms(4, np.sort([ANNA, BEN])).tolist() == [1, 1]
        assert found.tolist() == np.concatenate(wanted).tolist()
        assert [part.stop - part.start for part in several.slices(BINS)] == [2, 4, 6, 4]
    with pytest.raises(StoreError, match="do not fit"):
        several.tally(BINS, 2, KEYS[0], users=True).join(alone[0].to_bytes())


def test_very_many_rows_of_one_person_change_what_one_may():
    many = 1_000_000
    for statistic, most in ((MEAN, 5), (SIGNED, 4), (QUANTILES, 1)):
        tally = tally_of(statistic, [(BEN, ((0, 1),))], 1, KEYS[0])
        before = tally.counts(0)
        tally.add(np.full(many, ANNA), np.zeros(many, np.int32), np.arange(many) % 3)
        assert np.abs(tally.counts(0) - before).sum() <= most
        assert len(tally.to_bytes()) < 2000


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (
            {"text": "quantiles:fare"},
            "needs the buckets of fare; give them with `edges`.*what is public.*edges that double",
        ),
        ({"text": "quantiles:fare", "edges": "fare=3,2,1"}, "are no buckets"),
        ({"text": "quantiles:fare", "edges": "fare=0,1,2", "quantiles": (0, 0.5)}, "above 0 and below 1"),
        ({"text": "people", "quantiles": (0.5,)}, "name the column as well"),
        ({"text": "people", "edges": "fare=0,1,2"}, "no quantiles of it are asked for"),
        ({"text": ["people", "people"]}, "named twice"),
        ({"text": "mean:fare", "between": ["fare=0,1", "fare=0,2"]}, "names fare twice"),
    ],
)
def test_what_does_not_go_together_is_refused(told, says):
    with pytest.raises(InputError, match=says):
        parse_statistic(**told)
