"""Every parameter of every mechanism and filter: what is of the wrong kind is refused in a sentence, not met later."""

from __future__ import annotations

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.kalman import Kalman
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.parameters import parameter_names
from eventide.mechanisms.registry import mechanism_class

WRONG = ["abc", [], {}, object(), float("nan"), (1, 2), b"x", 1j]
MINOR = [
    (name, parameter)
    for name in ev.mechanism_names()
    for parameter in parameter_names(mechanism_class(name))
    if parameter not in ("noise", "shift_budget", "as_published", "pan_private", "bins")
]


@pytest.mark.parametrize(("name", "parameter"), MINOR, ids=map("-".join, MINOR))
def test_a_parameter_of_the_wrong_kind_is_refused(name, parameter):
    for value in WRONG:
        with pytest.raises(InputError):
            ev.mechanism(name, **{"epsilon": 1, "window": 5, "bins": 3, parameter: value})


@pytest.mark.parametrize(
    "value", [None, 1.5, "abc", (1, 2), (1, 2, "x"), (1, 2, float("inf")), (1, 2, True), np.array(["a", "b", "c"])]
)
def test_gains_are_three_numbers(value):
    for name in ("fast", "rescuedp", "adapub"):
        with pytest.raises(InputError, match="three numbers"):
            ev.mechanism(name, epsilon=1, window=5, bins=3, gains=value)


@pytest.mark.parametrize("value", WRONG)
def test_a_filter_refuses_it_too(value):
    for build in (Kalman, lambda given: Kalman(1.0, given), PosteriorMedian):
        with pytest.raises(InputError):
            build(value)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int64])
def test_numbers_of_all_kinds_are_taken(kind):
    given = {"stretch": kind(2), "gains": [kind(1)] * 3, "set_point": kind(1)}
    plain = {"stretch": 2, "gains": [1] * 3, "set_point": 1}
    a, b = (ev.mechanism("fast", epsilon=1, window=5, bins=3, seed=1, **each) for each in (given, plain))
    c, d = (ev.Uniform(epsilon=1, window=5, bins=3, seed=1, filter=Kalman(each(3), each(4))) for each in (kind, int))
    for one, other in ((a, b), (c, d)):
        assert np.array_equal(one.release([1, 2, 3]).values, other.release([1, 2, 3]).values)
