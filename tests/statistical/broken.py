"""Mechanisms with known faults, for the auditor to find. They get past the kernel by loosening its ledger."""

from unittest import mock

import numpy as np

from eventide.events.levels import BIN
from eventide.mechanisms import levels
from eventide.mechanisms.budget_absorption import BudgetAbsorption
from eventide.mechanisms.budget_distribution import BudgetDistribution
from eventide.mechanisms.sample import Sample
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.noise import Source

PLENTY = 10**15


class ThinSource(Source):
    """Noise at 80 % of the scale that was paid for."""

    name = "thin"

    def __init__(self, inner):
        self.inner = inner

    def laplace(self, numerator, charges, shape):
        return self.inner.laplace(numerator * 8 // 10, charges, shape)

    def binomial(self, counts, percent):
        return self.inner.binomial(counts, percent)


class ThinLaplace(Uniform):
    """Uniform with noise that is too small."""

    def begin(self):
        self.meter.source = ThinSource(self.source)


class ForgetsOneStep(Sample):
    """Sample with a ledger that forgets a step too early: a look every w - 1 steps."""

    def begin(self):
        self.ledger.nano_epsilon = PLENTY

    def is_sampling_point(self, step):
        return np.full((self.replicas, 1), step.index % (self.window - 1) == 0)

    def budget_allocation(self):
        return np.array([[self.nano_epsilon]])


class SpendsWhatIsPromised(Uniform):
    """Uniform that gives every step what one person may lose in a whole window."""

    def begin(self):
        self.ledger.nano_epsilon = PLENTY

    def budget_allocation(self):
        return np.array([[self.nano_epsilon]])


class ChargesTheLargestLevelOnly(Uniform):
    """Uniform with levels that have all of epsilon each, as if a person were in a bin or in a group, not in both."""

    def __init__(self, *given, **parameters):
        super().__init__(*given, **parameters)
        if self.levels is not None:
            self.ledger.nano_epsilon = PLENTY
            with mock.patch.object(levels, "shares", lambda of, budget, _: dict.fromkeys((BIN, *of.names), budget)):
                self._parts = levels.LevelParts(self, self.levels)


class NeverSilent(BudgetAbsorption):
    """BA that does not fall silent after a look, so that absorbed units are used twice."""

    def begin(self):
        super().begin()
        self.ledger.nano_epsilon = PLENTY

    def is_sampling_point(self, step):
        looks = super().is_sampling_point(step)
        self._silent_until = np.where(looks, step.index, self._silent_until)
        return looks


class RecyclesEarly(BudgetDistribution):
    """BD that gives a look's budget back one step too early."""

    def begin(self):
        super().begin()
        self.ledger.nano_epsilon = PLENTY
        self._past = [np.zeros((self.replicas, 1), dtype=np.int64)] * (self.window - 2)

    def _left_for_looks(self):
        return self._look_pool - sum(self._past)

    def looked(self, accounts):
        self._past = [*self._past[1:], np.where(accounts, self._planned, 0)]


class OneDrawForAllBins(Uniform):
    """Uniform that adds the same noise to every bin."""

    def perturbation(self, step, amount):
        measured = super().perturbation(step, amount)
        truth = self.meter._open(step)
        noise = (measured.values - truth)[:, :1]
        return type(measured)(truth + noise, measured.scale, measured.fresh)


class OneDrawForAllSteps(Uniform):
    """Uniform that adds the noise of the first step to every later one."""

    def perturbation(self, step, amount):
        measured = super().perturbation(step, amount)
        truth = self.meter._open(step)
        if step.index == 0:
            self._noise = measured.values - truth
        return type(measured)(truth + self._noise, measured.scale, measured.fresh)


class LooksAtEvenCounts(Uniform):
    """Uniform that decides by the true counts, without noise, when to look."""

    def is_sampling_point(self, step):
        even = self.meter._open(step).sum(axis=1, keepdims=True) % 2 == 0
        return np.broadcast_to(even, (self.replicas, 1))


class RemembersTheTruth(BudgetAbsorption):
    """BA whose distances are to the true counts of its last look: they go on to tell of that step for ever."""

    def begin(self):
        super().begin()
        self._true = np.zeros(self.meter.shape, dtype=np.int64)

    def _asked(self, step):
        planned, asked = self.plan()
        return planned, self.meter.distance(step, self._true, np.where(asked, self._distance_share, 0))

    def is_sampling_point(self, step):
        looks = super().is_sampling_point(step)
        self._true = np.where(looks, self.meter._open(step), self._true)
        return looks


class PlainLaplace:
    """Sound, with noise of whole numbers; it knows nothing of the kernel. `part` is the part of the scale it has."""

    part = 1.0

    def __init__(self, epsilon, window, bins, seed):
        self.bins, self.generator = bins, np.random.default_rng(seed)
        self.rate = 1 - np.exp(-epsilon / window / self.part)

    def noise(self, rate, size):
        one, other = self.generator.geometric(rate, (2, size))
        return one - other

    def release(self, counts):
        return counts + self.noise(self.rate, self.bins)


class ThirdOfTheNoise(PlainLaplace):
    part = 1 / 3


class PlainlyRemembersTheTruth(PlainLaplace):
    """Half of epsilon for distances to the true counts of the last look, half for looks at each step."""

    part, true = 2.0, None

    def release(self, counts):
        if self.true is not None:
            distance = np.abs(counts - self.true).sum() + self.noise(self.rate, 1)[0]
            if distance <= self.bins / self.rate:
                return self.released
        self.true, self.released = counts, super().release(counts)
        return self.released


class FloatLaplace:
    """Laplace noise in floating point, as most research code adds it; it knows nothing of the kernel."""

    def __init__(self, epsilon, window, bins, seed=None):
        self.scale, self.bins = window / epsilon, bins
        self.generator = np.random.default_rng(seed)

    def release(self, counts):
        return counts + self.generator.laplace(scale=self.scale, size=self.bins)
