"""The distribution of the noise, with the power to see a scale that is 30 % off.

A test accepts above p = 10^-20, so a right sampler never fails it by chance.
"""

import itertools
import math
import ssl
import sys
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from eventide.privacy import coins, noise

ACCEPT = 1e-20
SCALES = [Fraction(scale) for scale in ("0.1", "0.5", "1", "3.7", "10", "120", "2400", "1000000")]
OFF = [Fraction("0.7"), Fraction("1.3")]


def draws(source, scale, count):
    numerator, charge = scale.as_integer_ratio()
    return source.laplace(numerator, np.array([charge]), (count,))


def laplace_cdf(x, scale):
    q = math.exp(-1 / scale)
    return q**-x / (1 + q) if x < 0 else 1 - q ** (x + 1) / (1 + q)


def cell_edges(scale, count):
    """Whole numbers between which lie cells of at least thirty expected draws: so many that none stays empty."""
    quantiles = np.concatenate([np.geomspace(30 / count, 0.5, 40)[:-1], [0.5], 1 - np.geomspace(30 / count, 0.5, 40)])
    side = np.log(2 * np.minimum(quantiles, 1 - quantiles)) * float(scale)
    edges, below = [], 0
    for edge in sorted({int(x) for x in np.where(quantiles < 0.5, side, -side)} | {-1, 0}):
        share = laplace_cdf(edge, scale)
        if min(share - below, 1 - share) * count >= 30:
            edges, below = [*edges, edge], share
    return edges


def chi_square(observed, probabilities):
    """The p-value of counts under probabilities."""
    expected = observed.sum() * np.asarray(probabilities)
    return stats.chi2.sf(((observed - expected) ** 2 / expected).sum(), len(observed) - 1)


def laplace_p(drawn, scale, edges):
    """How well draws agree with the discrete Laplace of this scale on the cells (.., e0], (e0, e1], ..., (en, ..)."""
    observed = np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1)
    return chi_square(observed, np.diff([0, *(laplace_cdf(edge, scale) for edge in edges), 1]))


@pytest.mark.parametrize("scale", SCALES, ids=float)
@pytest.mark.parametrize("make", [noise.Secure, lambda: noise.Seeded(11)], ids=["secure", "seeded"])
def test_laplace_has_its_scale_and_no_other(make, scale):
    count = 3_000_000 if scale < Fraction(1, 5) else 100_000
    drawn, edges = draws(make(), scale, count), cell_edges(scale, count)
    assert laplace_p(drawn, scale, edges) > ACCEPT
    for off in OFF:
        assert laplace_p(drawn, scale * off, edges) < ACCEPT


@pytest.mark.parametrize("scale", [Fraction(1), Fraction("3.7"), Fraction(120), Fraction(2400)], ids=float)
def test_few_draws_at_a_time_have_the_scale_too(scale):
    """Many draws look their digits up in a table, few toss a coin for each; both have the same distribution."""
    few, edges = coins.MANY - 1, cell_edges(scale, 4 * (coins.MANY - 1))
    drawn = np.concatenate([draws(noise.Secure(), scale, few) for _ in range(4)])
    assert laplace_p(drawn, scale, edges) > ACCEPT
    for off in OFF:
        assert (
            laplace_p(np.concatenate([draws(noise.Secure(), scale * off, few) for _ in range(4)]), scale, edges)
            < ACCEPT
        )


def test_numbers_on_a_border_are_settled_with_the_probability_left():
    _, even = coins._coins_and_table(120, 1)
    border = coins.border_expansions(120, 1, even.digits, 80)[6]
    left = border % 2**64 / 2**64
    lines = iter([(border >> 64).to_bytes(2, sys.byteorder) * 100_000])
    below = int((even.draw(100_000, lambda count: next(lines, None) or ssl.RAND_bytes(count)) == 6).sum())
    observed = np.array([below, 100_000 - below])
    assert chi_square(observed, [left, 1 - left]) > ACCEPT
    assert all(chi_square(observed, [left * off, 1 - left * off]) < ACCEPT for off in (0.7, 1.3))


@pytest.mark.parametrize("make", [noise.Secure, lambda: noise.Seeded(12)], ids=["secure", "seeded"])
def test_each_cell_of_a_mixed_array_has_its_own_scale(make):
    scales = [Fraction(1), Fraction(10), Fraction(120), Fraction(10)]
    charges = np.array([10**9 * 12 // scale for scale in scales], np.int64)
    drawn = make().laplace(12 * 10**9, charges, (50_000, 4))
    for column, scale in zip(drawn.T, scales, strict=True):
        edges = cell_edges(scale, 50_000)
        assert laplace_p(column, scale, edges) > ACCEPT
        assert all(laplace_p(column, scale * off, edges) < ACCEPT for off in OFF)
    assert abs(np.corrcoef(drawn.T)[np.triu_indices(4, 1)]).max() < 10 / math.sqrt(50_000)


def correlation_p(digits):
    """The p-value of all pairwise correlations being 0."""
    correlations = np.corrcoef(digits)[np.triu_indices(len(digits), 1)]
    return stats.chi2.sf(digits.shape[1] * (correlations**2).sum(), correlations.size)


def test_digits_are_pairwise_uncorrelated():
    """The sign of a draw that is not 0, and the digits of what is beyond 1; those rarer than one in 50 say little."""
    _, *expansions = coins.laplace_expansions(120, 1, 72)
    usable = [k for k, expansion in enumerate(expansions) if expansion > 2**72 // 50]
    drawn = coins.laplace(120, 1, 100_000, ssl.RAND_bytes)
    drawn = drawn[drawn != 0]
    digits = np.array([drawn > 0, *((np.abs(drawn) - 1) >> k & 1 for k in usable)])
    assert correlation_p(digits) > ACCEPT
    for one, other in itertools.combinations(range(len(digits)), 2):
        tied = digits.copy()
        tied[one, :15_000] = tied[other, :15_000]  # 15 % of the draws share this pair of digits
        assert correlation_p(tied) < ACCEPT


def test_neighbouring_draws_are_uncorrelated():
    drawn = draws(noise.Secure(), Fraction(10), 300_000)
    assert correlation_p(np.array([drawn[lag : lag - 20 or None] for lag in range(20)])) > ACCEPT
    smeared = drawn[1:] + drawn[:-1] // 8
    assert correlation_p(np.array([smeared[lag : lag - 20 or None] for lag in range(20)])) < ACCEPT


def test_ties_are_settled_with_the_probability_left():
    """Once the first byte is equal, heads has the probability that the further digits of p say."""
    coin = coins.Coins(lambda bits: coins.laplace_expansions(37, 10, bits)[2:3])
    lines = iter([bytes(coin.first_byte[0]) * 100_000])
    heads = int(coin.toss(100_000, lambda count: next(lines, None) or ssl.RAND_bytes(count)).sum())
    left = int(coin.next_word[0]) / 2**64
    observed = np.array([heads, 100_000 - heads])
    assert chi_square(observed, [left, 1 - left]) > ACCEPT
    assert all(chi_square(observed, [left * off, 1 - left * off]) < ACCEPT for off in (0.7, 1.3))


@pytest.mark.parametrize("digits", [0, 1, 3])
def test_far_digits_complete_the_number(digits):
    """The coin of the far digits, set in early enough to be tossed often, on top of none or a few digits below it."""

    def expansions(bits):
        *before, first_far = coins.laplace_expansions(3, 1, bits)[: digits + 2]
        return [*before, (first_far << bits) // (2**bits - first_far)]

    column = coins.Coins(expansions)
    drawn = coins._geometric(column, column.toss(20_000, ssl.RAND_bytes), ssl.RAND_bytes)
    observed = np.bincount(np.minimum(drawn, 15), minlength=16)
    for off in (1, *OFF):
        q = math.exp(-1 / (3 * off))
        p = chi_square(observed, [*((1 - q) * q**g for g in range(15)), q**15])
        assert (p > ACCEPT) == (off == 1)


def two_sample_p(first, second, edges):
    """How well two samples agree on the cells between the edges."""
    table = [np.bincount(np.searchsorted(edges, drawn), minlength=len(edges) + 1) for drawn in (first, second)]
    return stats.chi2_contingency(np.array(table)).pvalue


@pytest.mark.parametrize(
    "scale",
    [Fraction("3.7"), *(pytest.param(scale, marks=pytest.mark.slow) for scale in (Fraction(1), Fraction(120)))],
    ids=float,
)
def test_secure_and_opendp_agree(scale):
    edges = cell_edges(scale, 100_000)
    reference = draws(noise.OpenDP(), scale, 100_000)
    assert two_sample_p(draws(noise.Secure(), scale, 100_000), reference, edges) > ACCEPT
    for off in OFF:
        assert two_sample_p(draws(noise.Secure(), scale * off, 100_000), reference, edges) < ACCEPT


@pytest.mark.parametrize("percent", [1, 37, 50, 99])
@pytest.mark.parametrize("make", [noise.Secure, lambda: noise.Seeded(13)], ids=["secure", "seeded"])
def test_survivors_are_binomial(make, percent):
    """100,000 cells of 20 events; neighbours 30 % off in the rarer of the two outcomes are told apart."""
    observed = np.bincount(make().binomial(np.full(100_000, 20), np.array(percent)), minlength=21)
    rarer = min(percent, 100 - percent) / 100
    for off in (1, 0.7, 1.3):
        share = rarer * off if percent <= 50 else 1 - rarer * off
        exact = stats.binom.pmf(np.arange(21), 20, share)
        common = exact * 100_000 >= 10
        p = chi_square(np.append(observed[common], observed[~common].sum()), [*exact[common], exact[~common].sum()])
        assert (p > ACCEPT) == (off == 1)


def test_survivors_of_mixed_cells_are_binomial():
    """Counts and shares that differ from cell to cell: each standardised, 500 times over."""
    counts, percent = np.array([3, 0, 40_000, 17]), np.array([[10], [80]])
    kept = noise.Secure().binomial(np.broadcast_to(counts, (500, 2, 4)), percent)
    share = percent / 100
    means, deviations = counts * share, np.sqrt(counts * share * (1 - share))
    busy = counts > 0
    assert not kept[..., ~busy].any()
    z = ((kept.mean(axis=0) - means) * math.sqrt(500))[:, busy] / deviations[:, busy]
    assert np.abs(z).max() < 10
    assert kept.std(axis=0)[:, busy] == pytest.approx(deviations[:, busy], rel=0.5)
