"""Every parameter of every mechanism and filter: what is of the wrong kind is refused in a sentence, not met later."""

from __future__ import annotations

import numpy as np
import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.kalman import Kalman
from eventide.filters.posterior_median import PosteriorMedian
from eventide.mechanisms.registry import mechanism_class
from eventide.parameters import parameter_defaults

WRONG = ["abc", [], {}, object(), float("nan"), b"x", 1j, np.zeros((2, 2)), np.array("abc")]
PARAMETERS = [
    (name, parameter) for name in ev.mechanism_names() for parameter in parameter_defaults(mechanism_class(name))
]
MAY_BE_NONE = {"filter", "groups", "k", "looks", "measurement_noise", "memory", "pan_private", "seed"}
MAY_BE_NONE |= {"algorithm", "levels", "level_split", "seasons", "window_sensitivity"}
WHOLE = {"bins", "first_interval", "groups", "history", "k", "looks", "max_group", "memory", "pivots", "replicas"}
WHOLE |= {"sensitivity", "span", "window", "window_sensitivity"}
MAY_BE_ANY_SIZE = {  # of the numbers that are no count of anything
    "fast": ("gains", "least_value", "process_noise", "set_point", "stretch"),
    "rescuedp": ("eagerness", "gains", "largest_gap", "largest_sum", "least_correlation", "process_noise", "stretch"),
    "adapub": ("gains", "least_value", "theta"),
    "pegasus": ("theta",),
}


def built(name, **given):
    return ev.mechanism(name, **{"epsilon": 1, "window": 5, "bins": 3} | given)


@pytest.mark.parametrize(("name", "parameter"), PARAMETERS, ids=map("-".join, PARAMETERS))
def test_a_parameter_of_the_wrong_kind_is_refused(name, parameter):
    wrong = WRONG + ([] if parameter == "bins" else [(1, 2)]) + ([] if parameter in MAY_BE_NONE else [None])
    if parameter == "levels":
        wrong = [value for value in wrong if not isinstance(value, list | dict)]  # empty: no levels
    for value in wrong:
        with pytest.raises(InputError):
            built(name, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "parameter"), [(name, each) for name, several in MAY_BE_ANY_SIZE.items() for each in several]
)
def test_a_number_that_no_float_holds_is_refused(name, parameter):
    with pytest.raises(InputError):
        built(name, **{parameter: [10**400] * 3 if parameter == "gains" else 10**400})


@pytest.mark.parametrize(("name", "parameter"), [each for each in PARAMETERS if each[1] in WHOLE])
@pytest.mark.parametrize("value", [10**9 + 1, 10**19, 10**400], ids=["9", "19", "400"])
def test_a_number_of_more_than_any_machine_holds_is_refused(name, parameter, value):
    with pytest.raises(InputError, match="at most"):
        built(name, **{parameter: value})


@pytest.mark.parametrize(
    ("name", "parameter"), [each for each in PARAMETERS if each[1] in ("as_published", "shift_budget")]
)
@pytest.mark.parametrize("value", ["no", 0, 1.0, "False"])
def test_what_reads_like_no_does_not_mean_yes(name, parameter, value):
    with pytest.raises(InputError, match="True or False"):
        built(name, **{parameter: value})


@pytest.mark.parametrize(
    "value", [None, 1.5, "abc", (1, 2), (1, 2, "x"), (1, 2, float("inf")), (1, 2, True), np.array(["a", "b", "c"])]
)
def test_gains_are_three_numbers(value):
    for name in ("fast", "rescuedp", "adapub"):
        with pytest.raises(InputError, match="three numbers"):
            built(name, gains=value)


@pytest.mark.parametrize("value", WRONG)
def test_a_filter_refuses_it_too(value):
    for build in (Kalman, lambda given: Kalman(1.0, given), PosteriorMedian):
        with pytest.raises(InputError):
            build(value)


@pytest.mark.parametrize("kind", [int, float, np.float32, np.int64])
def test_numbers_of_all_kinds_are_taken(kind):
    given = {"stretch": kind(2), "gains": [kind(1)] * 3, "set_point": kind(1)}
    plain = {"stretch": 2, "gains": [1] * 3, "set_point": 1}
    a, b = (built("fast", seed=1, **each) for each in (given, plain))
    c, d = (ev.Uniform(epsilon=1, window=5, bins=3, seed=1, filter=Kalman(each(3), each(4))) for each in (kind, int))
    for one, other in ((a, b), (c, d)):
        assert np.array_equal(one.release([1, 2, 3]).values, other.release([1, 2, 3]).values)
