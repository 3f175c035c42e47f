"""AdaPub against numbers worked out by hand, in the repaired form and as published."""

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.mechanisms.adapub import AdaPub


class Joins(Filter):
    """Releases whether the step joined the open group: the grouping itself."""

    def step(self, measured):
        return measured.joins


def released(counts, **parameters):
    counts = np.asarray(counts) if np.ndim(counts) == 2 else np.reshape(counts, (-1, 1))
    return ev.run(AdaPub(**{"epsilon": 1.0, "window": 1, "bins": counts.shape[1]} | parameters), counts).values


@pytest.mark.slow
@pytest.mark.parametrize("variant", [{}, {"as_published": True, "pivots": 2, "gains": [0.5, 0.3, 0.2]}])
def test_contract(variant):
    assert ev.check_mechanism(AdaPub, **variant)


def test_without_noise_a_constant_stream_is_one_group():
    joins = released([500] * 64, noise=ev.noise.Zero(), filter=Joins())
    assert joins.ravel().tolist() == [0] + [1] * 63


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize(("epsilon", "window"), [(1, 1), (100, 10), (0.1, 120)])
def test_grouping_is_alive(epsilon, window, as_published):
    """On a constant stream groups hold more than one step; in public code never."""
    setting = {"epsilon": epsilon, "window": window, "as_published": as_published}
    joins = released([500] * 100, filter=Joins(), seed=4, replicas=20, **setting)
    assert joins.size / (joins.size - joins.sum()) > (1.3 if as_published else 3)


def test_the_controller_raises_the_threshold():
    """From 1000 to 10 the relative error is 99: 99^2 / epsilon is above the deviation of 990, so 10 joins.

    From 1000 to 400 it is 1.5: the threshold stays at 5 / 0.2, and 400 stands alone.
    """
    assert released([1000, 10], noise=ev.noise.Zero()).ravel().tolist() == [1000, 505]
    assert released([1000, 400], noise=ev.noise.Zero()).ravel().tolist() == [1000, 400]


def test_the_controller_remembers_the_errors_of_its_group_only():
    """Group 1000, 10 with error 99 and deviation 990; 16 is off by 489 / 16 = 30.6.

    Weighed with the 99 that is 0.95 * 30.6 + 4.95 = 34, and 34^2 > 990; by itself 30.6^2 < 990. After 400 stood alone
    and began a group, 20 is off by 19: 19^2 < 380; weighed with the 99 as well it would be (17.6 + 2.5)^2 > 380.
    """
    setting = {"noise": ev.noise.Zero(), "smoother": "average"}
    assert released([1000, 10, 16], **setting).ravel().tolist() == [1000, 505, 342]
    assert released([1000, 10, 16], gains=(1.0, 0.0, 0.0), **setting).ravel().tolist() == [1000, 505, 16]
    assert released([1000, 10, 400, 400, 20], **setting).ravel().tolist() == [1000, 505, 400, 400, 20]
    adapub = AdaPub(epsilon=1, window=1, bins=1, **setting)
    ev.run(adapub, [[1000], [10]])
    assert ev.load(adapub.save(), AdaPub).release([16]).values.tolist() == [342]


def test_unit_noise_shows_every_scale():
    """Looks of scale 1 / 0.8; the test adds 4 / 0.2 to a deviation and 2 / 0.2 to its threshold, 5 / 0.2 at least."""
    assert released([1000, 1014], noise=ev.noise.Unit()).ravel() == pytest.approx([1001.25, 1008.25])
    assert released([1000, 1015], noise=ev.noise.Unit()).ravel() == pytest.approx([1001.25, 1016.25])


def test_as_published_the_threshold_is_low_and_without_noise():
    """Without noise a deviation of 0 joins and one of 1 does not; with noise of 2 / 0.2 = 10 neither does.

    From 90 to 7 the threshold is (83 / 8.25)^2, 101.2: more than 83 + 10, less than 83 + 20. From 100 to 8 it is 98.9:
    less than 92 + 10, more than 92 + 5.
    """
    setting = {"as_published": True, "smoother": "average"}
    assert released([1000, 1000, 1001], noise=ev.noise.Zero(), **setting).ravel().tolist() == [1000, 1000, 1001]
    assert released([1000, 1000], noise=ev.noise.Zero(), as_published=True, filter=Joins())[1, 0] == 1
    assert released([1000, 1000], noise=ev.noise.Unit(), as_published=True, filter=Joins())[1, 0] == 0
    assert released([90, 7], noise=ev.noise.Unit(), **setting).ravel() == pytest.approx([91.25, 49.75])
    assert released([100, 8], noise=ev.noise.Unit(), **setting).ravel() == pytest.approx([101.25, 9.25])


def test_bins_of_one_cell_share_a_look():
    """Step 1: 0 and 4 lie within a twentieth of the range, so both are 2; step 2 measures each alone."""
    found = released([[0, 4, 900]] * 3, noise=ev.noise.Zero())
    assert found.tolist() == [[0, 4, 900], [1, 3, 900], [0, 4, 900]]
    adapub = AdaPub(epsilon=1, window=1, bins=2, noise=ev.noise.Unit(), filter=ev.filters.Repeat())
    adapub.release([5, 5])
    release = adapub.release([5, 5])
    assert release.values.tolist() == [5.625, 5.625]  # (10 + 1.25) / 2
    assert release.scale.tolist() == [0.625, 0.625]
    assert release.spent == 1.0


def test_bins_that_shared_looks_can_part():
    """As published they never do: equal releases fall into the same cell for ever."""
    stream = [[10, 10, 1000]] * 2 + [[0, 500, 1000]] * 20
    apart = released(stream, noise=ev.noise.Zero())[-1]
    assert apart[1] - apart[0] > 200
    together = released(stream, noise=ev.noise.Zero(), as_published=True)[-1]
    assert together[0] == together[1]


@pytest.mark.parametrize("step", [1, 7, 10**9])
def test_pivots_cut_the_range_evenly_and_differently_at_each_step(step):
    adapub = AdaPub(epsilon=1, window=1, bins=1001, seed=1)
    adapub._released = np.linspace(-3, 7, 1001)[None]
    labels = adapub._cells(step).labels
    assert labels.tolist() == np.sort(labels).tolist()
    assert np.bincount(labels[0]).max() < 100
    assert labels.tolist() != adapub._cells(step + 1).labels.tolist()


def test_equal_releases_are_one_cell():
    assert released([[5, 5, 5]] * 4, noise=ev.noise.Zero()).tolist() == [[5, 5, 5]] * 4


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("epsilon", [0.001, 100])
@pytest.mark.parametrize("window", [1, 10**7])
@pytest.mark.parametrize("count", [0, 10**9, 2**53])
def test_extremes(epsilon, window, count, as_published):
    adapub = AdaPub(epsilon=epsilon, window=window, bins=3, sensitivity=1000, as_published=as_published, seed=9)
    run = ev.run(adapub, np.array([[0, count, count]] * 4 + [[count, 0, count]] * 4))
    assert np.isfinite(run.values).all()
    assert adapub.ledger.worst_window() <= epsilon


def test_many_bins():
    adapub = AdaPub(epsilon=1, window=10, bins=100_000, seed=9)
    values = ev.run(adapub, np.full((3, 100_000), 10**9)).values
    assert np.abs(values.mean(axis=1) - 10**9).max() < 1
    assert adapub.holds_raw


@pytest.mark.parametrize("wrong", [{"pivots": 0}, {"least_value": 0}, {"gains": (1.0,)}, {"theta": -1}])
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        AdaPub(epsilon=1, window=1, bins=1, **wrong)


def test_guarantee():
    assert "proof" not in str(AdaPub(epsilon=1, window=120, bins=1).guarantee)
    disputed = AdaPub(epsilon=1, window=120, bins=1, as_published=True).guarantee
    assert "not covered by a proof" in str(disputed)
