"""Every registered mechanism passes the contract suite; cheats do not get past the kernel or the suite."""

import inspect

import numpy as np
import pytest

import eventide as ev
from eventide.errors import BudgetExceeded, StateError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class
from eventide.privacy.amounts import NANO

VARIANTS = [("hybrid", {"k": 3}), ("bd", {"shift_budget": True, "window": 1}), ("ba", {"shift_budget": True})]
VARIANTS += [
    (name, variant) for name in ("bd", "ba") for variant in ({"groups": 2}, {"groups": 3, "accounting": "fixed-bin"})
]
VARIANTS += [(name, {"pan_private": mode}) for name in ("bd", "ba") for mode in ("single", "announced")]
VARIANTS += [(name, {"as_published": True}) for name in ("dsat", "spas", "adapub")]
VARIANTS += [(name, {"accounting": "fixed-bin"}) for name in ("fast", "rescuedp")]
VARIANTS += [("dsat", {"looks": 3}), ("spas", {"first_interval": 2})]
VARIANTS += [("uniform", {"filter": ev.filters.Kalman()})]
VARIANTS += [(name, {"filter": ev.filters.Truncate()}) for name in ("uniform", "bd", "ba")]


QUICK = ("uniform", "bd", "ba", "dsat", "rg")  # the others are close to one of these, or cost far more


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in ev.mechanism_names()]
)
def test_contract(name):
    assert len(ev.check_mechanism(mechanism_class(name))) == 12


@pytest.mark.slow
@pytest.mark.parametrize(("name", "parameters"), VARIANTS)
def test_contract_of_variants(name, parameters):
    assert len(ev.check_mechanism(mechanism_class(name), **parameters)) == 12


class Honest(Mechanism):
    """Everything to the first step of a window."""

    def is_sampling_point(self, step):
        return np.full((self.replicas, 1), step.index % self.window == 0)

    def budget_allocation(self):
        return np.array([[self.nano_epsilon]])


def test_a_third_partys_mechanism_passes():
    assert ev.check_mechanism(Honest)


class Keeper(Honest):
    """Measures the step before once more."""

    def begin(self):
        self.kept = None

    def perturbation(self, step, amount):
        kept, self.kept = self.kept, step
        return self.meter.counts(kept or step, amount)


class Reader(Honest):
    """Reads the counts."""

    def perturbation(self, step, amount):
        return np.asarray(step)


class Overspender(Honest):
    """Looks at every step with all of epsilon."""

    def is_sampling_point(self, step):
        return np.ones((self.replicas, 1), dtype=bool)


class TwoForOne(Honest):
    """Asks twice for one budget."""

    def perturbation(self, step, amount):
        self.meter.counts(step, amount)
        return self.meter.counts(step, amount)


class Underpayer(Honest):
    """Takes the charge back."""

    def perturbation(self, step, amount):
        self.ledger.charge = lambda amount: None
        return self.meter.counts(step, amount)


class NegativePayer(Honest):
    """Buys budget with a negative charge."""

    def perturbation(self, step, amount):
        self.ledger.charge(-amount)
        return self.meter.counts(step, amount)


@pytest.mark.parametrize(
    ("cheat", "stopped_by"),
    [
        (Keeper, StateError),
        (Reader, StateError),
        (Overspender, BudgetExceeded),
        (TwoForOne, BudgetExceeded),
        (Underpayer, AttributeError),
        (NegativePayer, ev.InputError),
    ],
)
def test_the_kernel_stops_cheats(cheat, stopped_by):
    mechanism = cheat(epsilon=1, window=1 if cheat is Keeper else 3, bins=2, seed=1)
    with pytest.raises(stopped_by):
        ev.run(mechanism, [[1, 2]] * 3)


@pytest.mark.parametrize("name", ["release", "checked", "take", "end_step", "_report"])
def test_the_door_cannot_be_replaced(name):
    with pytest.raises(StateError):
        type("Door", (Honest,), {name: lambda self, counts: counts})
    mixin = type("Mixin", (), {name: lambda self, counts: counts})
    with pytest.raises(StateError):
        type("Door", (mixin, Honest), {})


class Uncharged(Honest):
    """Draws noise of its own and calls it a measurement."""

    def perturbation(self, step, amount):
        self.source.laplace(NANO, amount, self.meter.shape)
        return super().perturbation(step, amount)


class Raw(Honest):
    """Takes the counts from the frame that called it, and adds them to what it releases."""

    def filtering(self, measured):
        return super().filtering(measured) + inspect.currentframe().f_back.f_back.f_locals["counts"]


class HalfNoise(Honest):
    """Tells the meter of a smaller sensitivity."""

    def begin(self):
        self.meter.sensitivity = 1


class Forgetful(Honest):
    """Keeps state that it does not declare, so it is not saved."""

    def begin(self):
        self.looks = 0

    def filtering(self, measured):
        self.looks += 1
        return super().filtering(measured) + self.looks


class Hoarder(Honest):
    """Remembers everything it ever released."""

    def begin(self):
        self.past = []

    def filtering(self, measured):
        self.past.append(super().filtering(measured).copy())
        return self.past[-1]


class Settling(Honest):
    """Makes a table once, late in a long run."""

    def filtering(self, measured):
        if self.step == 300:
            self.table = np.zeros(10_000)
        return super().filtering(measured)


def test_what_is_made_once_is_no_growth():
    assert ev.check_mechanism(Settling)


class SharedNoise(Honest):
    """Gives all replicas the same measurement."""

    def perturbation(self, step, amount):
        measured = super().perturbation(step, amount)
        values = np.broadcast_to(measured.values[:1], measured.values.shape)
        return type(measured)(values, measured.scale, measured.fresh)


class Renaming(Honest):
    """Keeps its parameter under another name."""

    def __init__(self, epsilon, window, bins, every=1, **common):
        self._every = every
        super().__init__(epsilon, window, bins, **common)


class Demanding(Honest):
    """Has a parameter without a default."""

    def __init__(self, epsilon, window, bins, *, every, **common):
        self.every = every
        super().__init__(epsilon, window, bins, **common)


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (Uncharged, "no measurement"),
        (Raw, "without passing through the meter"),
        (HalfNoise, "the scale of 'counts'"),
        (Forgetful, "saved and loaded .* must be named in the class attribute state"),
        (Renaming, r"its parameter every must be kept as self\.every, so that it can be saved"),
        (Demanding, "it needs a value of every; give one, or a default"),
        ("ba", r"only a class that is derived from eventide\.Mechanism can be checked"),
        (object, r"only a class that is derived from eventide\.Mechanism can be checked"),
        pytest.param(Hoarder, "memory grows", marks=pytest.mark.slow),
        (SharedNoise, "replica"),
        (Overspender, "epsilon"),
        (Reader, "sealed step cannot be read"),
    ],
)
def test_the_contract_finds_what_is_broken(broken, says):
    with pytest.raises(AssertionError, match=says):
        ev.check_mechanism(broken)


class NoArray(Honest):
    """Answers with a bool."""

    def is_sampling_point(self, step):
        return True


class Curious(Honest):
    """Wants to see the counts."""

    def is_sampling_point(self, step):
        return step.counts > 0


class InEpsilon(Honest):
    """Gives a part of epsilon, not of nano-epsilon."""

    def budget_allocation(self):
        return np.array([[self.epsilon / self.window]])


class Unmeasured(Honest):
    """Gives numbers for a measurement."""

    def perturbation(self, step, amount):
        return self.meter.counts(step, amount).values


class Listed(Honest):
    """Releases a list."""

    def filtering(self, measured):
        return [0.0] * self.size


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (NoArray, "look at is_sampling_point, which must return an array of booleans"),
        (Curious, "a sealed step has no 'counts' to read; ask the meter .* look at is_sampling_point$"),
        (InEpsilon, "look at budget_allocation, which must return an array of whole numbers of nano-epsilon"),
        (Unmeasured, "look at perturbation, which must return a measurement of the meter"),
        (Listed, "look at filtering, which must return an array of numbers"),
    ],
)
def test_the_contract_says_which_method_to_look_at(broken, says):
    with pytest.raises(AssertionError, match=says):
        ev.check_mechanism(broken)


def test_what_the_ledger_refuses_says_itself_what_is_wrong():
    with pytest.raises(AssertionError, match=r"or ask for less$"):
        ev.check_mechanism(Overspender)


def test_a_parameter_without_a_default_is_given_to_the_check():
    assert ev.check_mechanism(Demanding, every=2)
