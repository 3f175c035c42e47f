"""A mechanism and a filter say what they were made with, and another one can be made of that."""

import numpy as np
import pytest

import eventide as ev
from eventide.filters.base import Filter
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class

CHEAP = [name for name in ev.mechanism_names() if name != "tide"]  # which compiles
STREAM = np.random.default_rng(5).poisson(20, (12, 3))
OTHER = {
    "k": 2,
    "sensitivity": 3,
    "replicas": 2,
    "span": 4,
    "looks": 3,
    "smoother": "average",
    "groups": 2,
    "history": 4,
}


def changed(name, **given):
    takes = ev.mechanism(name, epsilon=1, window=6, bins=3).parameters()
    other = {parameter: value for parameter, value in OTHER.items() if parameter in takes}
    return ev.mechanism(name, **{"epsilon": "1/3", "window": 6, "bins": ["a", "b", "c"]} | other | given)


@pytest.mark.parametrize("name", CHEAP)
def test_a_class_and_its_parameters_make_an_equal_new_one(name):
    mechanism = changed(name, seed=7, filter=ev.filters.Truncate(ev.filters.Kalman(3.0)))
    twin = type(mechanism)(**mechanism.parameters())
    assert (twin.nano_epsilon, twin.bins, repr(twin)) == (mechanism.nano_epsilon, mechanism.bins, repr(mechanism))
    released = ev.run(mechanism, STREAM).values
    assert np.array_equal(ev.run(twin, STREAM).values, released)
    assert np.array_equal(ev.run(mechanism.clone(), STREAM).values, released), "it begins anew, also after a run"
    assert mechanism.clone().step == 0


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_parameters_are_all_that_the_constructor_takes(name):
    mechanism = ev.mechanism(name, epsilon=1, window=6, bins=3)
    assert {"epsilon", "window", "bins", "sensitivity", "replicas", "filter", "noise"} <= mechanism.parameters().keys()
    assert mechanism.parameters()["noise"] == "secure"
    assert type(mechanism.clone()) is mechanism_class(name)


def test_a_repr_shows_what_is_not_at_its_default():
    assert repr(ev.BudgetAbsorption(1, 4, 3)) == "BudgetAbsorption(epsilon=1, window=4, bins=3)"
    told = repr(ev.BudgetAbsorption(0.5, 4, ["a", "b"], shift_budget=True, sensitivity=2, filter="truncate", seed=7))
    assert told == (
        "BudgetAbsorption(epsilon=0.5, window=4, bins=2, shift_budget=True, sensitivity=2, filter=Truncate(), "
        "noise=Seeded())"
    )
    assert repr(ev.filters.Truncate(ev.filters.Kalman(2.5))) == "Truncate(inner=Kalman(process_noise=2.5))"
    assert repr(ev.Uniform(1, 4, 3, noise="opendp")) == "Uniform(epsilon=1, window=4, bins=3, noise='opendp')"
    assert "gains=array" in repr(ev.FAST(1, 4, 3, gains=np.array([0.9, 0.1, 0])))


def test_bins_without_names_have_none_in_a_clone_nor_after_loading():
    mechanism = ev.Uniform(epsilon=1, window=2, bins=2, noise=ev.noise.Zero())
    for other in (mechanism.clone(), ev.load(mechanism.save())):
        assert other.parameters()["bins"] == 2
        assert ev.run(other, [[3, 4]]).values.tolist() == [[3, 4]]


def test_a_clone_shares_nothing_that_changes():
    mechanism = ev.Uniform(epsilon=1, window=3, bins=3, seed=1)
    clone = mechanism.clone()
    clone.release([1, 2, 3])
    assert (mechanism.step, clone.step) == (0, 1)
    assert mechanism.source is not clone.source


def test_a_loaded_one_knows_its_seed_and_one_of_an_old_state_goes_on():
    mechanism = ev.Uniform(epsilon=1, window=3, bins=3, seed=7)
    first = ev.run(mechanism, STREAM[:4]).values
    loaded = ev.load(mechanism.save())
    assert np.array_equal(ev.run(loaded.clone(), STREAM[:4]).values, first)
    old = ev.noise.Seeded(7)
    old.restore({name: value for name, value in old.snapshot().items() if name != "seed"})
    assert old.anew() is not old
    assert old.anew().snapshot() == old.snapshot()


def test_a_filter_is_cloned_with_what_it_was_made_with():
    clone = ev.filters.Truncate(ev.filters.Kalman(3.0, 2.0)).clone()
    assert clone.inner.parameters() == {"process_noise": 3.0, "measurement_noise": 2.0}


def test_a_class_of_ones_own_has_them_too():
    class Every(Mechanism):
        def __init__(self, epsilon, window, bins, *, every=2, **common):
            self.every = every
            super().__init__(epsilon, window, bins, **common)

        def is_sampling_point(self, step):
            return np.full((self.replicas, 1), step.index % self.every == 0)

        def budget_allocation(self):
            return np.full((1, 1), self.nano_epsilon // self.window)

    class Forgets(Every):
        def __init__(self, epsilon, window, bins, *, pace=2, **common):
            super().__init__(epsilon, window, bins, every=pace, **common)

    class Nothing(Filter):
        def step(self, measured):
            return np.zeros((1, 1))

    assert repr(Every(1, 4, 1, every=3).clone()).endswith("Every(epsilon=1, window=4, bins=1, every=3)")
    assert repr(Nothing().clone()) == "Nothing()"
    assert repr(Forgets(1, 4, 1, pace=3)) == "Forgets(epsilon=1, window=4, bins=1, every=3)"
    with pytest.raises(AttributeError, match="pace"):
        Forgets(1, 4, 1, pace=3).parameters()
