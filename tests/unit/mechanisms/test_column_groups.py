"""Groups of bins for BD and BA: who is grouped, what each group may spend, and what people who move pay for it."""

import math

import numpy as np
import pytest

import eventide as ev
from eventide.mechanisms import contract
from eventide.mechanisms.column_groups import ColumnGroups, group_count
from eventide.privacy.amounts import NANO
from eventide.privacy.noise import Seeded, Source

BOTH = [ev.BudgetDistribution, ev.BudgetAbsorption]
FIXED = {"accounting": "fixed-bin"}


def bursts(shape, seed=3, height=400):
    generator = np.random.default_rng(seed)
    return generator.poisson(3, shape) + height * (generator.random(shape) < 0.2)


def test_how_many_groups():
    assert [group_count("auto", size) for size in (1, 499, 1000, 25_936, 89_997)] == [1, 1, 2, 51, 179]
    assert (group_count(None, 9), group_count(1, 9), group_count(9, 9), group_count(np.int64(4), 9)) == (1, 1, 9, 4)
    for bad in (0, -1, 10, 2.5, "many", True):
        with pytest.raises(ev.InputError):
            ev.BudgetDistribution(epsilon=1, window=2, bins=9, groups=bad)
    with pytest.raises(ev.InputError, match="accounting"):
        ev.BudgetAbsorption(epsilon=1, window=2, bins=9, groups=2, accounting="moving-bin")


def test_bins_are_ordered_by_the_root_mean_square_of_their_releases():
    groups = ColumnGroups(2, (2, 5))
    assert groups.sizes.tolist() == [2, 3]
    assert groups.partition.labels.tolist() == [[0, 0, 1, 1, 1]]
    released = np.array([[9.0, -1, 5, -8, 0], [0, 1, 2, 3, 4]])
    for step in range(1, 10):
        groups.observe(released, step)
        assert groups.partition.labels.shape == (1, 5)
    groups.observe(released * 0, 10)
    assert groups.partition.labels.tolist() == [[1, 0, 1, 1, 0], [0, 0, 1, 1, 1]]
    for step in range(11, 21):  # what was seen before the last regrouping is forgotten
        groups.observe(released[:, ::-1], step)
    assert groups.partition.labels.tolist() == [[0, 1, 1, 0, 1], [1, 1, 1, 0, 0]]
    assert ColumnGroups(3, (1, 8)).sizes.tolist() == [2, 3, 3]


def test_a_group_has_the_least_of_its_bins():
    groups = ColumnGroups(2, (2, 4))
    groups.observe(np.array([[1.0, 9, 2, 8], [4, 3, 2, 1]]), 10)
    least = groups.least(np.array([[10, 20, 30, 40], [1, 2, 3, 4]]))
    assert least.tolist() == [[10, 20], [3, 1]]
    assert groups.partition.spread(least).tolist() == [[10, 20, 10, 20], [1, 1, 3, 3]]
    assert groups.partition.spread(np.array([[True, False], [False, False]])).dtype == np.bool_


def test_a_restored_grouping_goes_on():
    groups, other = ColumnGroups(2, (1, 4)), ColumnGroups(2, (1, 4))
    for step in range(8, 15):
        groups.observe(np.array([[4.0, 1, 3, step]]), step)
    other.restore(groups.snapshot())
    assert other.partition.labels.tolist() == groups.partition.labels.tolist() == [[1, 0, 0, 1]]
    for grouping in (groups, other):
        grouping.observe(np.array([[0.0, 9, 0, 0]]), 20)
    assert other.partition.labels.tolist() == groups.partition.labels.tolist() == [[0, 1, 0, 1]]


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
def test_one_group_is_the_plain_mechanism(cls, accounting):
    stream = bursts((60, 4))
    plain = ev.run(cls(epsilon=1, window=5, bins=4, seed=8), stream)
    one = cls(epsilon=1, window=5, bins=4, seed=8, groups=1, accounting=accounting)
    run = ev.run(one, stream)
    assert np.array_equal(run.values, plain.values)
    assert np.array_equal(run.spent, plain.spent)
    assert one.guarantee.unit == "one person"


def test_groups_follow_from_the_releases_alone():
    mech = ev.BudgetAbsorption(epsilon=2, window=5, bins=12, groups=4, replicas=3, seed=4)
    told = ColumnGroups(4, (3, 12))
    different = set()
    for step, counts in enumerate(bursts((45, 12)), start=1):
        told.observe(mech.release(counts).values, step)
        assert mech._groups.partition.labels.tolist() == told.partition.labels.tolist()
        different.add(told.partition.labels.tobytes())
    assert len(different) > 3


def test_a_local_change_is_seen_and_the_calm_groups_keep_their_release():
    """Window 2, epsilon 2: a first look gets 1/2 and a second 1/4, so its noise is 4 a bin.

    10 more in one of 4 bins is less than the noise of 4 bins, 16, but more than that of 2.
    """
    stream = [[0, 0, 0, 0], [10, 1, 1, 0]]
    plain = ev.run(ev.BudgetDistribution(epsilon=2, window=2, bins=4, noise=ev.noise.Zero()), stream)
    assert plain.values[1].tolist() == [0, 0, 0, 0]
    mech = ev.BudgetDistribution(epsilon=2, window=2, bins=4, groups=2, noise=ev.noise.Zero())
    mech.release(stream[0])
    release = mech.release(stream[1])
    assert release.values.tolist() == [10, 1, 0, 0]
    assert release.fresh_bins.tolist() == [True, True, False, False]
    assert release.scale.tolist() == [4, 4, 2, 2]
    assert release.spent == 0.75  # a distance of 1/2 and a look of 1/4, both once for all groups


def test_moving_groups_of_ba_share_one_clock():
    """Window 4, epsilon 8: a unit is 1. Group 0 changes at step 2 and takes 2 units, so step 3 is silent for both."""
    mech = ev.BudgetAbsorption(epsilon=8, window=4, bins=2, groups=2, noise=ev.noise.Zero())
    run = ev.run(mech, [[0, 0], [0, 0], [9, 0], [50, 50], [50, 50], [0, 50]])
    assert run.values.tolist() == [[0, 0], [0, 0], [9, 0], [9, 0], [50, 50], [0, 50]]
    assert run.spent.tolist() == [2, 1, 3, 0, 2, 2]


@pytest.mark.parametrize("cls", BOTH)
def test_fixed_bin_groups_are_mechanisms_of_their_own(cls):
    """Until the first regrouping, groups do what separate mechanisms on their bins do."""
    stream = bursts((10, 6), height=4000)
    mech = cls(epsilon=6, window=4, bins=6, groups=3, noise=ev.noise.Unit(), **FIXED)
    together = ev.run(mech, stream)
    for first in (0, 2, 4):
        alone = cls(epsilon=6, window=4, bins=2, noise=ev.noise.Unit())
        assert np.array_equal(ev.run(alone, stream[:, first : first + 2]).values, together.values[:, first : first + 2])
        assert mech.ledger.worst_window()[first] == alone.ledger.worst_window()
    assert len({tuple(column) for column in together.values.T}) > 1


def looks_of(mech):
    """Nano-epsilon of the look of each bin at this step."""
    drawn = [np.broadcast_to(draw.charges, draw.shape)[0] for draw in mech.meter.journal if draw.kind == "counts"]
    return drawn[0] if drawn else np.zeros(mech.size, dtype=np.int64)


def test_regrouped_bins_of_bd_keep_their_budgets():
    """A look gets half of the least that any bin of the group has left, whatever groups the bins were in before."""
    mech = ev.BudgetDistribution(epsilon=1, window=15, bins=6, groups=3, noise=Seeded(6), **FIXED)
    history, mixed = [np.zeros(6, dtype=np.int64)], 0
    for counts in bursts((80, 6)):
        labels, mech.meter.journal = mech._groups.partition.labels[0], []
        left = NANO // 2 - np.sum(history[-14:], axis=0)
        mech.release(counts)
        looks = looks_of(mech)
        for group in range(3):
            members = labels == group
            mixed += len(set(left[members])) > 1
            assert set(looks[members]) <= {left[members].min() // 2} or not looks[members].any()
        history.append(looks)
    assert mixed > 20
    assert mech.ledger.worst_window().max() <= 1


def test_regrouped_bins_of_ba_keep_their_silence():
    """After a look that took n units a bin is left alone for n - 1 steps, whatever group it is in by then."""
    mech = ev.BudgetAbsorption(epsilon=1, window=15, bins=6, groups=3, noise=Seeded(6), **FIXED)
    unit = NANO // 30
    silent_until, absorbed = np.full(6, -1), 0
    for index, counts in enumerate(bursts((200, 6))):
        mech.meter.journal = []
        mech.release(counts)
        units = looks_of(mech) // unit
        assert (silent_until[units > 0] < index).all()
        assert (units <= np.clip(index - silent_until, 0, 15)).all()
        silent_until = np.where(units > 0, index + units - 1, silent_until)
        absorbed += (units > 1).sum()
    assert absorbed > 20
    assert mech.ledger.worst_window().max() <= 1


class Scripted(Source):
    """Noise that a test dictates, draw by draw: any whole numbers are possible noise."""

    name = "scripted"

    def __init__(self):
        self.next = []

    def laplace(self, numerator, charges, shape):
        return np.where(charges > 0, self.next.pop(0), 0)

    def binomial(self, counts, percent):
        raise AssertionError


def log_probability(noise, charge):
    """Of one discrete Laplace draw with sensitivity 1."""
    ratio = math.exp(-charge / NANO)
    return math.log((1 - ratio) / (1 + ratio)) - abs(noise) * charge / NANO


def log_above(level, charge):
    """Of a draw above `level` >= 0; and of one not above it."""
    above = math.exp(-(level + 1) * charge / NANO) / (1 + math.exp(-charge / NANO))
    return math.log(above), math.log1p(-above)


def hopping_log_ratio(accounting):
    """How much likelier one transcript is with somebody who is in bin 0 at step 8, in bin 1 at step 9, and so on.

    BD with window 8, epsilon 4 and 8 groups of one bin. In the transcript exactly the bin of that person looks at each
    of the 8 steps, and the release is above the count; between steps 0 and 8 nothing looks. The probability of every
    decision and every value, given what was released before, is known exactly.
    """
    source = Scripted()
    mech = ev.BudgetDistribution(epsilon=4, window=8, bins=8, groups=8, accounting=accounting, noise=source)
    ratio, paid = 0.0, 0
    for step in range(16):
        bin = step - 8
        labels, before = mech._groups.partition.labels[0].copy(), mech._released[0].copy()
        nobody = np.full((1, 8), -(10**6))
        distance = nobody.copy()
        if bin >= 0:
            distance[0, labels[bin]] = 10**6
        source.next = [distance, np.full((1, 8), 7 if bin >= 0 else 0)]
        mech.meter.journal = []
        release = mech.release([100] * 8)
        if bin < 0:
            assert release.fresh == (step == 0)
            continue
        assert np.flatnonzero(release.fresh_bins).tolist() == [bin]
        test = int(mech._distance_share[0, 0])
        look = int(np.broadcast_to(mech._planned, (1, 8))[0, labels[bin]])
        threshold = NANO // look
        apart = [abs(count - before[bin]) for count in (100, 101)]
        assert max(apart) <= threshold
        without, with_person = (log_above(threshold - distance, test)[0] for distance in apart)
        ratio += with_person - without
        ratio += log_probability(release.values[bin] - 101, look) - log_probability(release.values[bin] - 100, look)
        paid += test + looks_of(mech)[bin]
    assert ratio == pytest.approx(paid / NANO)
    return ratio


def test_published_groups_do_not_protect_people_who_move():
    assert hopping_log_ratio("fixed-bin") == pytest.approx(2.5 * 4)  # 8 steps, 1/16 and 1/4 of epsilon at each
    assert 3 < hopping_log_ratio("moving") <= 4
    promise = ev.BudgetDistribution(epsilon=4, window=8, bins=8, groups=8, accounting="fixed-bin").guarantee
    assert "one person who stays in one bin" in str(promise)


def test_shifted_budget_counts_the_bins_of_a_group():
    """Two groups of 8 bins and a window of 2: distances get epsilon / 8 a step, looks share 3/4 of epsilon."""
    mech = ev.BudgetDistribution(epsilon=1, window=2, bins=16, groups=2, shift_budget=True, noise=ev.noise.Unit())
    assert mech.release([0] * 16).spent == pytest.approx(3 / 8 + 1 / 8)
    many = ev.BudgetDistribution(epsilon=1, window=2, bins=16, groups=8, shift_budget=True, noise=ev.noise.Unit())
    assert many.release([0] * 16).spent == pytest.approx(1 / 4 + 1 / 4)  # two bins a group are too few


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("parameters", [{"groups": 2}, {"groups": 3, "filter": ev.filters.Truncate()}])
def test_contract_of_moving_groups(cls, parameters):
    assert ev.check_mechanism(cls, **parameters)


PER_ACCOUNT = {
    "check_no_window_is_over_epsilon",
    "check_goes_on_after_save_and_load",
    "check_bad_input_changes_nothing",
}


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("groups", [2, 3])
def test_contract_of_fixed_bins(cls, groups):
    """The suite, but for what compares the ledger of a single account; that is below."""

    def make(**more):
        return cls(**{"epsilon": 1, "window": 4, "bins": 3, "noise": Seeded(11), "groups": groups, **FIXED} | more)

    for check in contract.CHECKS:
        if check.__name__ not in PER_ACCOUNT:
            check(make)
    stream = bursts((40, 3))
    for cut in (0, 1, 5, 15, 20):
        mech = make()
        ev.run(mech, stream[:cut])
        loaded = ev.load(mech.save())
        left = mech.ledger.left()
        with pytest.raises(ev.InputError):
            mech.release([-1, 0, 0])
        assert np.array_equal(mech.ledger.left(), left)
        assert np.array_equal(ev.run(mech, stream[cut:]).values, ev.run(loaded, stream[cut:]).values)
        assert np.array_equal(mech.ledger.worst_window(), loaded.ledger.worst_window())
        assert mech.ledger.worst_window().max() <= 1


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("accounting", ["moving", "fixed-bin"])
@pytest.mark.parametrize(("epsilon", "window"), [(1e-6, 10**7), (0.001, 1), (1e6, 3), (100, 10**7)])
def test_extremes(cls, accounting, epsilon, window):
    mech = cls(epsilon, window, bins=1500, groups="auto", accounting=accounting, sensitivity=10**6, noise="secure")
    for height in (0, 10**9, 2**53, 0, 0):
        release = mech.release([height] * 750 + [0] * 750)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert np.max(mech.ledger.worst_window()) <= epsilon
