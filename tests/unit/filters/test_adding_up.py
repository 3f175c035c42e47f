"""Adding up: against dense weighted least squares, and exact sums whatever the numbers are."""

import numpy as np
import pytest

from eventide.filters.adding_up import AddingUp, Estimate

BINS = 23
CHAIN = [np.arange(BINS) // 4, np.arange(BINS) // 8, np.zeros(BINS, dtype=np.int64)]
CROSSED = [np.arange(BINS) % 5, np.arange(BINS) * 7 % 3, np.zeros(BINS, dtype=np.int64)]
SHAPES = {"a chain": CHAIN, "crossed": CROSSED}


def estimates(labels, generator, replicas=3, mean=50.0):
    sizes = [BINS, *(int(each.max()) + 1 for each in labels)]
    return [
        Estimate(generator.normal(mean, 30, (replicas, k)), generator.uniform(0.5, 90, (replicas, k))) for k in sizes
    ]


def adder(labels):
    return np.concatenate([np.eye(BINS), *(np.eye(int(each.max()) + 1)[each].T for each in labels)])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("common", [0.0, 0.4])
def test_it_is_weighted_least_squares(shape, common):
    """The dense oracle: x that makes (y - x)' C^-1 (y - x) + sum of squares of groups / variance smallest."""
    labels = SHAPES[shape]
    bins, *groups = estimates(labels, np.random.default_rng(4))
    fitted = AddingUp(labels).fit(bins, groups, common=common)
    above = adder(labels)[BINS:]
    for replica in range(3):
        deviation = np.sqrt(bins.variance[replica])
        covariance = np.diag(deviation**2)
        for each in labels:
            covariance += common * np.outer(deviation, deviation) * (each[:, None] == each[None, :])
        values = np.concatenate([each.values[replica] for each in groups])
        precision = np.diag(1 / np.concatenate([each.variance[replica] for each in groups]))
        prior = np.linalg.inv(covariance)
        oracle = np.linalg.solve(
            prior + above.T @ precision @ above, prior @ bins.values[replica] + above.T @ precision @ values
        )
        np.testing.assert_allclose(fitted[replica], oracle, rtol=1e-8)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("whole", [True, False])
def test_releases_add_up_exactly_and_stay_near(shape, whole):
    labels, generator = SHAPES[shape], np.random.default_rng(7)
    adding = AddingUp(labels)
    for mean in (0.0, 3.0, 50.0, 1e6, 1e13):
        bins, *groups = estimates(labels, generator, mean=mean)
        fitted = adding.fit(bins, groups, natural=whole)
        values = adding.rounded(fitted, whole=whole)
        assert np.abs(values - fitted).max() <= 1
        if whole:
            assert (values >= 0).all()
            assert (values == np.rint(values)).all()
        for each, sums in zip(labels, adding.sums(values), strict=True):
            for group in range(int(each.max()) + 1):
                backwards = sum(values[:, each == group].T[::-1])  # in any order
                assert np.array_equal(sums[:, group], backwards)
        assert np.abs(adding.sums(values)[-1] - adding.sums(fitted)[-1]).max() <= 1  # the total is hardly rounded


def test_a_unit_goes_to_the_largest_remainder_and_nothing_to_a_zero():
    adding = AddingUp([np.zeros(4, dtype=np.int64)])
    assert adding.rounded(np.array([[0.0, 0.2, 0.7, 0.1]]), whole=True).tolist() == [[0, 0, 1, 0]]
    assert adding.rounded(np.array([[3.0, 4.0, 0.0, 2.0]]), whole=True).tolist() == [[3, 4, 0, 2]]


def test_a_sure_total_moves_the_bins_and_negative_ones_are_held_at_zero():
    adding = AddingUp([np.zeros(3, dtype=np.int64)])
    bins = Estimate(np.array([[1.0, 10.0, 10.0]]), np.array([[9.0, 9.0, 9.0]]))
    total = [Estimate(np.array([[6.0]]), np.array([[0.0]]))]
    np.testing.assert_allclose(adding.fit(bins, total, natural=True), [[0, 3, 3]], atol=1e-5)


def test_what_was_never_measured_follows_the_rest():
    adding = AddingUp([np.array([0, 0, 1]), np.zeros(3, dtype=np.int64)])
    bins = Estimate(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 1.0, 1.0]]))
    nothing = [Estimate(np.zeros((1, k)), np.full((1, k), np.inf)) for k in (2, 1)]
    np.testing.assert_allclose(adding.fit(bins, nothing), bins.values, atol=1e-6)
