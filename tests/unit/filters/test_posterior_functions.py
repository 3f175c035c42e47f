"""The functions that are computed side by side, against those of the mathematical library and of scipy."""

import math

import numpy as np
import pytest
from scipy import special

from eventide.filters.posterior_function_kernels import MOST, exponential, logarithm, mills_ratio


def test_the_exponential_is_that_of_the_library_and_stays_finite():
    powers = np.random.default_rng(1).uniform(-MOST, MOST, 2000).tolist()
    assert [exponential(power) for power in powers] == pytest.approx([math.exp(power) for power in powers], rel=1e-15)
    assert exponential(0.0) == 1
    assert 0 < exponential(-1e300) < 1e-300 < 1e300 < exponential(1e300) < math.inf


def test_the_logarithm_is_that_of_the_library():
    numbers = np.exp(np.random.default_rng(2).uniform(-MOST, MOST, 2000)).tolist()
    near = np.random.default_rng(3).uniform(0.5, 2, 2000).tolist()
    for values in (numbers, near):
        found = [logarithm(value) for value in values]
        assert found == pytest.approx([math.log(value) for value in values], rel=1e-15, abs=3e-16)
    assert logarithm(1.0) == 0


def test_mills_ratio_is_mass_over_density():
    places = np.concatenate([np.linspace(0, 10, 1000), np.geomspace(10, 1e9, 500)])
    expected = math.sqrt(math.pi / 2) * special.erfcx(places / math.sqrt(2))
    assert [mills_ratio(place) for place in places.tolist()] == pytest.approx(expected, rel=3e-12)
