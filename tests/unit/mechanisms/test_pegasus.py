"""PeGaSus against numbers worked out by hand; that it groups at all; and that its groups are private."""

import io
import zipfile

import numpy as np
import pytest
from scipy import stats

import eventide as ev
from eventide.errors import InputError
from eventide.filters.base import Filter
from eventide.mechanisms.pegasus import PeGaSus


class Joins(Filter):
    """Releases whether the step joined the open group: the grouping itself."""

    def step(self, measured):
        return measured.joins


def released(counts, **parameters):
    pegasus = PeGaSus(**{"epsilon": 1.0, "window": 1, "bins": 1} | parameters)
    return ev.run(pegasus, np.reshape(counts, (-1, 1))).values[..., 0]


@pytest.mark.slow
@pytest.mark.parametrize("variant", [{}, {"smoother": "james-stein", "max_group": 2}])
def test_contract(variant):
    assert ev.check_mechanism(PeGaSus, **variant)


@pytest.mark.slow
def test_contract_behind_a_filter():
    assert ev.check_mechanism(PeGaSus, filter=ev.filters.Truncate())


def test_without_noise_a_group_closes_where_it_drifts_and_where_it_is_full():
    """Counts   10 30 12 40 11 11 20 13 14
    groups    [------) x [-------)[---    a group of deviation 5 / 0.2 = 25 closes, at most 4 steps fit
    """
    found = released([10, 30, 12, 40, 11, 11, 20, 13, 14], noise=ev.noise.Zero(), max_group=4)
    assert found.tolist() == [10, 20, 12, 40, 11, 11, 11, 12, 14]


def test_without_noise_a_constant_stream_is_one_group():
    joins = released([500] * 100, noise=ev.noise.Zero(), max_group=512, filter=Joins())
    assert joins.tolist() == [0] + [1] * 99


@pytest.mark.parametrize(("window", "sensitivity"), [(1, 1), (4, 1), (1, 2)])
def test_unit_noise_shows_every_scale(window, sensitivity):
    """A count is off by 1 / 0.8; a group closes where deviation + 4 / 0.2 reaches 5 / 0.2 + 2 / 0.2, so at 15."""
    scale = window * sensitivity
    setting = {"window": window, "sensitivity": sensitivity, "noise": ev.noise.Unit()}
    noise = scale / 0.8
    assert released([0, 15 * scale - 1], **setting) == pytest.approx([noise, noise + (15 * scale - 1) / 2])
    assert released([0, 15 * scale], **setting) == pytest.approx([noise, noise + 15 * scale])


def test_parts_of_epsilon_follow_the_share():
    pegasus = PeGaSus(epsilon=1, window=4, bins=2, group_share=0.5, noise=ev.noise.Unit())
    release = pegasus.release([0, 0])
    assert release.scale.tolist() == [8, 8]
    assert release.spent == 0.25
    assert pegasus.noise_range() == (8, 8)


@pytest.mark.parametrize(("epsilon", "window"), [(1, 1), (100, 10), (0.1, 120)])
def test_grouping_is_alive(epsilon, window):
    """On a constant stream groups hold several steps, whatever the noise; public code never passes one."""
    joins = released([500] * 100, epsilon=epsilon, window=window, filter=Joins(), seed=4, replicas=20)
    assert joins.size / (joins.size - joins.sum()) > 3


def test_grouping_pays_on_a_quiet_stream():
    stream, many = [500] * 150, {"seed": 5, "replicas": 20}
    quiet, measured = released(stream, **many), released(stream, filter=ev.filters.Repeat(), **many)
    assert np.abs(quiet - 500).mean() < 0.7 * np.abs(measured - 500).mean()


def test_the_second_step_joins_as_often_as_the_scales_say():
    """P(query noise - threshold noise < 5 / e): accepted at the true scales, refused at scales 30 % off."""
    replicas, budget = 200_000, 0.2
    pegasus = PeGaSus(epsilon=1, window=1, bins=1, replicas=replicas, filter=Joins(), seed=6)
    joined = int(ev.run(pegasus, np.full((2, 1), 500)).values[:, 1].sum())

    def plausible(factor):
        noise = np.arange(-3000, 3001)
        query, threshold = (stats.dlaplace.pmf(noise, budget / (factor * scale)) for scale in (4, 2))
        difference = np.convolve(query, threshold)  # both are symmetric; entry i is the difference i - 6000
        return stats.binomtest(joined, replicas, difference[: 6000 + round(5 / budget)].sum()).pvalue

    assert plausible(1) > 1e-20
    assert plausible(1.3) < 1e-20
    assert plausible(0.7) < 1e-20


def test_bins_have_noise_and_groups_of_their_own():
    pegasus = PeGaSus(epsilon=1, window=1, bins=2, replicas=20_000, seed=7)
    values = ev.run(pegasus, np.full((6, 2), 500)).values[:, 5]
    assert abs(np.corrcoef(values.T)[0, 1]) < 0.05
    stream = [[10, 10], [11, 90], [12, 10]]
    found = ev.run(PeGaSus(epsilon=1, window=1, bins=2, noise=ev.noise.Zero()), stream).values
    assert found.tolist() == [[10, 10], [10.5, 90], [11, 10]]


def test_true_counts_are_held_while_a_group_is_open_and_no_longer():
    pegasus = PeGaSus(epsilon=1, window=1, bins=1, noise=ev.noise.Zero())
    assert not pegasus.holds_raw
    ev.run(pegasus, [[54321], [54322]])
    assert pegasus.holds_raw
    pegasus.release([98765])  # closes the group and stands alone
    assert not pegasus.holds_raw
    restored = ev.load(pegasus.save(), PeGaSus)
    assert not restored.holds_raw
    held = pegasus._groups.snapshot()
    assert not held["_deviation"].any()
    assert not np.isin([54321, 54322, 98765], held["_counts"]["_rows"]).any()
    assert "54321" not in repr(pegasus._groups) + repr(pegasus)
    with zipfile.ZipFile(io.BytesIO(pegasus.save())) as archive:
        assert b"54321" not in archive.read("state.json")


def test_without_a_budget_for_the_test_no_group_opens():
    """Noise of a test that costs nothing is no noise: its answers would be the truth."""
    joins = released([500] * 20, epsilon=1e-6, window=300, filter=Joins(), seed=8)
    assert not joins.any()
    pegasus = PeGaSus(epsilon=1e-6, window=300, bins=1, seed=8)
    assert ev.run(pegasus, [[500]] * 3).fresh.all()
    assert not pegasus.holds_raw


@pytest.mark.parametrize("epsilon", [0.001, 100])
@pytest.mark.parametrize("window", [1, 10**7])
@pytest.mark.parametrize("count", [0, 10**9, 2**53])
def test_extremes(epsilon, window, count):
    pegasus = PeGaSus(epsilon=epsilon, window=window, bins=3, sensitivity=1000, max_group=3, seed=9)
    run = ev.run(pegasus, np.array([[0, count, count]] * 4 + [[count, 0, count]] * 4))
    assert np.isfinite(run.values).all()
    assert pegasus.ledger.worst_window() <= epsilon


def test_many_bins():
    pegasus = PeGaSus(epsilon=1, window=10, bins=100_000, seed=9)
    values = ev.run(pegasus, np.full((3, 100_000), 10**9)).values
    assert np.abs(values.mean(axis=1) - 10**9).max() < 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_share": 0},
        {"group_share": 1},
        {"theta": -1},
        {"theta": float("nan")},
        {"smoother": "mode"},
        {"max_group": 1},
        {"max_group": 513},
        {"max_group": 2.5},
    ],
)
def test_wrong_parameters_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        PeGaSus(epsilon=1, window=1, bins=1, **wrong)


def test_guarantee():
    guarantee = PeGaSus(epsilon=1, window=120, bins=1).guarantee
    assert (guarantee.notion, guarantee.epsilon, guarantee.unit) == ("w-event", 1.0, "one person")
    assert "proof" not in str(guarantee)
