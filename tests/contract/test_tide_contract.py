"""The contract with another filter behind Tide, and with Tide's filter behind other mechanisms."""

import pytest

import eventide as ev
from eventide.mechanisms.registry import mechanism_class


@pytest.mark.slow
@pytest.mark.parametrize("filter_name", ["truncate", "kalman"])
def test_tide_with_another_filter(filter_name):
    assert ev.check_mechanism(ev.Tide, filter=ev.filters.by_name(filter_name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "ba", "fast", "rescuedp"])
def test_the_posterior_median_behind_others(name):
    assert ev.check_mechanism(mechanism_class(name), filter=ev.filters.PosteriorMedian())
