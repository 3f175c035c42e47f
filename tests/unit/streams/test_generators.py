"""Made-up streams: repeatable, whole, and each with the property it is there for."""

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.streams.generators import (
    GENERATORS,
    bursts,
    constant,
    level_shifts,
    random_walk,
    seasonal,
    sparse_poisson,
)

FINE = 10**9  # an amplitude at which rounding hides nothing


@pytest.mark.parametrize("name", GENERATORS)
def test_streams_are_whole_counts_and_the_same_again(name):
    stream = GENERATORS[name](length=137)
    assert stream.dtype == np.int64
    assert len(stream) == 137
    assert stream.min() >= 0
    assert np.array_equal(stream, GENERATORS[name](length=137))


@pytest.mark.parametrize("name", sorted(set(GENERATORS) - {"constant"}))
def test_another_seed_makes_another_stream(name):
    assert not np.array_equal(GENERATORS[name](seed=1), GENERATORS[name](seed=2))


@pytest.mark.parametrize("name", sorted(set(GENERATORS) - {"seasonal"}))
def test_bins_differ_unless_nothing_happens(name):
    stream = GENERATORS[name](length=400, bins=3)
    assert stream.shape == (400, 3)
    assert np.array_equal(stream[:, 0], stream[:, 1]) == (name == "constant")


def test_paper_seasons_grow_and_shrink_by_half_and_reach_the_amplitude():
    stream = seasonal(1000, season=40, amplitude=FINE, variant="paper")[:, 0]
    assert stream.max() == FINE
    counts = stream[stream > 10**5].astype(float)
    ratios = counts[1:] / counts[:-1]
    growing, shrinking = np.isclose(ratios, 1.5, rtol=1e-3), np.isclose(ratios, 1 / 1.5, rtol=1e-3)
    assert (~growing & ~shrinking).sum() <= 1000 / 35  # where one season ends and the next begins
    assert growing.sum() > 400
    assert shrinking.sum() > 400


def test_a_paper_season_is_symmetric_around_its_peak():
    stream = seasonal(1000, season=40, amplitude=FINE, variant="paper")[:, 0]
    peak = int(stream[:30].argmax())
    assert 17 <= peak <= 23
    assert np.array_equal(stream[peak - 9 : peak][::-1], stream[peak + 1 : peak + 10])


def test_half_of_a_paper_season_is_growth():
    for seed in range(20):
        stream = seasonal(200, season=40, amplitude=FINE, variant="paper", seed=seed)[:, 0]
        peak = int(stream[:30].argmax())
        valley = peak + int(stream[peak : peak + 30].argmin())  # where this season ends or the next begins
        assert valley - 2 * peak in (-1, 0, 1)


def test_seasons_of_the_public_code_grow_by_three_tenths_above_a_floor_of_two():
    stream = seasonal(1000, season=40, amplitude=FINE)[:, 0].astype(float)
    moves = np.diff(stream)
    moves = moves[np.abs(moves) > 10**5]
    ratios = np.abs(moves[1:] / moves[:-1])
    assert (np.isclose(ratios, 1.3, rtol=1e-3) | np.isclose(ratios, 1 / 1.3, rtol=1e-3)).mean() > 0.85
    assert seasonal(1000, season=120, amplitude=10).min() == 2


def test_a_season_of_the_public_code_shrinks_once_or_twice_more_than_it_grew():
    for seed in range(20):
        stream = seasonal(200, season=60, amplitude=FINE, seed=seed)[:, 0]
        end = int(np.flatnonzero(np.diff(stream[40:]) > 0)[0]) + 40  # the last step of the first season
        peak = int(stream[:end].argmax())
        assert end - peak - peak in (1, 2)
        assert stream[end] < stream[0]


def test_the_public_codes_largest_count_stays_below_the_amplitude():
    reached = [seasonal(amplitude=10_000, seed=seed).max() / 10_000 for seed in range(20)]
    assert max(reached) <= 1
    assert 0.4 < np.median(reached) < 0.9


@pytest.mark.parametrize("variant", ["paper", "published-code"])
@pytest.mark.parametrize("season", [40, 120])
def test_seasons_have_the_length_asked_for(variant, season):
    stream = seasonal(length=20_000, season=season, amplitude=FINE, variant=variant)[:, 0]
    peaks = np.flatnonzero((stream[1:-1] > stream[:-2]) & (stream[1:-1] >= stream[2:]) & (stream[1:-1] > 10**6))
    assert np.diff(peaks).mean() == pytest.approx(season, abs=1)
    assert 1 < np.diff(peaks).std() < 4


def test_a_random_walk_moves_at_most_by_its_stride_and_stays_above_0():
    walk = random_walk(length=5000, bins=5, level=30, stride=4)
    assert np.abs(np.diff(walk, axis=0)).max() == 4
    assert walk.min() == 0


def test_levels_shift_as_often_as_asked():
    stream = level_shifts(length=50_000, level=100_000, every=100)[:, 0]
    jumps = np.abs(np.diff(stream)) > 4000  # Poisson noise around 200,000 moves by 450
    assert jumps.sum() == pytest.approx(500, rel=0.2)
    assert stream.mean() == pytest.approx(100_000, rel=0.1)


def test_a_constant_stream_is_constant():
    assert np.unique(constant(level=7)).tolist() == [7]


def test_a_sparse_stream_is_nearly_all_zeros():
    stream = sparse_poisson(length=2000, bins=50, rate=0.05)
    assert (stream == 0).mean() == pytest.approx(np.exp(-0.05), abs=0.005)


def test_bits_are_ones_at_their_rate():
    bits = GENERATORS["bernoulli"](length=100_000, rate=0.2)
    assert set(np.unique(bits)) == {0, 1}
    assert bits.mean() == pytest.approx(0.2, abs=0.01)


def test_bursts_are_rare_and_the_heavier_the_smaller_the_tail():
    calm, heavy, heavier = bursts(chance=0), bursts(length=20_000, tail=3), bursts(length=20_000, tail=0.9)
    assert calm.max() < 60
    assert (heavy > 60).mean() < 0.02
    assert heavier.max() > 10 * heavy.max() > 10 * calm.max()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("seasonal", {"season": 3}),
        ("seasonal", {"season": 10**6}),
        ("seasonal", {"variant": "java"}),
        ("seasonal", {"amplitude": 0}),
        ("random-walk", {"length": 0}),
        ("constant", {"bins": 0}),
        ("level-shifts", {"every": 0}),
        ("sparse-poisson", {"rate": -1}),
        ("bernoulli", {"rate": 1.1}),
        ("bursts", {"chance": 2}),
        ("bursts", {"tail": 0}),
    ],
)
def test_what_makes_no_stream_is_refused(name, arguments):
    with pytest.raises(InputError):
        GENERATORS[name](**arguments)
