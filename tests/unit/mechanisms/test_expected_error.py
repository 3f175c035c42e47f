"""Predicted errors: the formula is that of the noise, and simulations agree with it where both know the answer."""

import math

import numpy as np
import pytest

import eventide as ev
from eventide.events.statistic_names import parse_statistic
from eventide.mechanisms import expected_error
from eventide.mechanisms.expected_error import COUNTS, predict
from eventide.mechanisms.several import Several


def added_up(scale, count, truncated):
    """The mean error from every single outcome of the noise."""
    outcomes = np.arange(-200 * math.ceil(scale), 200 * math.ceil(scale) + 1)
    chances = np.exp(-np.abs(outcomes) / scale)
    released = np.maximum(count + outcomes, 0) if truncated else count + outcomes
    return float(np.sum(np.abs(released - count) * chances) / chances.sum())


@pytest.mark.parametrize("scale", [0.5, 24, 100])
@pytest.mark.parametrize("filter", [None, "truncate"])
def test_the_formula_is_that_of_the_noise(scale, filter):
    found = predict(ev.Uniform(epsilon=1 / scale, window=1, bins=3, filter=filter))
    assert found.simulated == 0
    wanted = [added_up(scale, count, filter is not None) for count in COUNTS]
    assert found.errors[0].steady == found.errors[0].changing == pytest.approx(wanted, rel=1e-4)


def test_a_simulation_agrees_with_the_formula(monkeypatch):
    uniform = ev.Uniform(epsilon=1.0, window=10, bins=20, filter="truncate")
    known = predict(uniform).errors[0].steady
    monkeypatch.setattr(expected_error, "_is_exact", lambda *_: False)
    found = predict(uniform)
    assert found.simulated
    assert found.errors[0].steady == pytest.approx(known, rel=0.1)
    assert found.errors[0].changing == pytest.approx(known, rel=0.1)


def test_a_stream_that_changes_costs_what_repeats():
    steady, changing = predict(ev.Sample(epsilon=1.0, window=24, bins=3)).errors[0][2:]
    assert changing[-1] > 5 * steady[-1]


def test_levels_are_predicted_too():
    found = predict(ev.Uniform(epsilon=1.0, window=4, bins=6, levels={"district": list("aaabbb")}))
    assert [each.what for each in found.errors] == ["events", "district", "total"]
    assert found.errors[2].usual[-2] == pytest.approx(6 * 500, rel=0.05)


def test_many_bins_with_levels_take_no_longer():
    districts = [str(place % 7) for place in range(5_000)]
    found = predict(ev.Uniform(epsilon=1.0, window=4, bins=5_000, levels={"district": districts}))
    assert [each.what for each in found.errors] == ["events"]


def test_statistics_have_errors_in_their_own_units():
    parts = [{"statistic": "people"}, {"statistic": "mean:fare", "between": "fare=0,100"}]
    several = Several(1, 4, ["a", "b"], statistics=[each | {"mechanism": "uniform"} for each in parts])
    people, fares = predict(several, parse_statistic(["people", "mean:fare"], "fare=0,100")).errors
    assert (people.what, fares.what) == ("people", "mean:fare")
    assert people.usual == pytest.approx(COUNTS, rel=0.1)
    assert fares.usual is None  # which only the data know
    assert 50 > fares.steady[0] > fares.steady[1] > fares.steady[2] > fares.steady[3] > 0  # more events are sharper


STREAM = {"step": "1h", "start": "2024-03-01", "user": "who", "mechanism": "uniform", "epsilon": 1, "window": "24h"}
OF_VALUES = {"between": "fare=0,100", "edges": "age=0,5,10"}
PER_SCALE = {"mean:fare": 0.75 / 5_000, "quantile:age:0.5": 7.5 / 5_000}  # of 5,000 events in the middle of a range


@pytest.mark.parametrize("most", [1, 4])
@pytest.mark.parametrize(
    "statistics",
    [
        "events",
        "people",
        "people/1d",
        "sum:fare",
        "mean:fare",
        "quantiles:age",
        ["events", "people/1d"],
        ["people", "people/1d", "sum:fare", "mean:fare", "quantiles:age"],
    ],
)
def test_errors_are_those_of_the_noise_that_releases_have(statistics, most):
    about = {name: text for name, text in OF_VALUES.items() if text[:3] in str(statistics).partition(":")[2]}
    spec = ev.StreamSpec(**STREAM, **about, statistic=statistics, max_per_step=most, bins=list("abcd"))
    mechanism, statistic = spec.build_mechanism(), spec.made_statistic()
    found = predict(mechanism, statistic, 24).errors
    for _ in range(24):
        release = mechanism.release(np.full(mechanism.numbers, 1_000))
    unit = 1 if isinstance(mechanism, Several) else float(statistic.unit)
    scales = [release.scale[0] * unit, *(told.scale[0] for told in (release.statistics or {}).values())]
    for error, scale in zip(found, scales, strict=True):
        wanted = scale * PER_SCALE.get(error.what, 1)
        assert error.steady[-1] == pytest.approx(wanted, rel=0.2 if error.what in PER_SCALE else 0.02)


@pytest.mark.parametrize(("bins", "most", "scale"), [(4, 1, 8), (4, 4, 16), (1, 4, 4)])
def test_the_noise_of_slots_is_told_in_people(bins, most, scale):
    """Half of epsilon for two days that a window meets; one person moves min(2 most, bins) people of a day."""
    spec = ev.StreamSpec(**STREAM, statistic=["events", "people/1d"], max_per_step=most, bins=bins)
    assert spec.build_mechanism().noise_range() == pytest.approx((scale, 48 * most))


def test_slots_of_any_length_are_predicted_with_other_mechanisms_too():
    chosen = {"mechanism": "ba", "statistic": ["events", "people/60d"], "bins": 2}
    spec = ev.StreamSpec(**STREAM | chosen)
    people = predict(spec.build_mechanism(), spec.made_statistic(), 24).errors[1]
    assert all(8 < each < 24 for each in (*people.steady[1:], *people.changing[1:]))  # half of a share finds changes


def test_histograms_of_windows_are_predicted():
    found = predict(ev.mechanism("rg-baseline", epsilon=1.0, bins=2, span=5))
    assert [each.what for each in found.errors] == ["events", "last 5 steps"]
    assert found.errors[1].usual[1] == pytest.approx(250, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_mechanism_has_a_prediction(name):
    error = predict(ev.mechanism(name, epsilon=1.0, window=12, bins=3, filter="truncate")).errors[0]
    assert all(0 < each < 5_000 for each in (*error.steady, *error.changing))
