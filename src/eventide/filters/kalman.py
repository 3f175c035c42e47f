"""A Kalman filter for each bin: what is known so far and a new look, weighed by their variances.

Promises finite values whatever the noise scales, in O(d) a step.
"""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np

from eventide.arrays import Array, Floats
from eventide.errors import InputError
from eventide.filters.base import Filter, PublicFacts
from eventide.privacy.amounts import number
from eventide.privacy.measured import Measured


class Kalman(Filter):
    """Takes each bin for a random walk seen through noise and releases the estimate with the least variance.

    The prior of a step is the last estimate, its variance grown by `process_noise`. A look moves it by the share of the
    variance that is not noise. The first look of a bin is released as it is.

    In information form, with precision = 1 / variance, "nothing known yet" and "not measured" are both a plain 0.

    Parameters
    ----------
    process_noise
        Variance of the walk's steps: a guess that must be public.
    measurement_noise
        Variance of a look's noise. None takes that of Laplace noise, 2 scale^2, look by look.

    >>> import eventide as ev
    >>> kalman = Kalman(process_noise=0)  # nothing ever moves: the mean of all looks
    >>> uniform = ev.Uniform(epsilon=1, window=2, bins=1, noise=ev.noise.Zero(), filter=kalman)
    >>> [round(float(uniform.release([count]).values[0]), 6) for count in (6, 0, 0)]
    [6.0, 3.0, 2.0]
    """

    state = ("_values", "_precision")

    def __init__(self, process_noise: float = 100.0, measurement_noise: float | None = None) -> None:
        if not 0 <= number(process_noise) < math.inf:
            raise InputError(f"process_noise is {process_noise!r}; it is a variance, 0 or more")
        if measurement_noise is not None and not 0 < number(measurement_noise) < math.inf:
            raise InputError(f"measurement_noise is {measurement_noise!r}; it is a variance above 0, or None")
        self.process_noise = process_noise
        self.measurement_noise = measurement_noise

    def begin(self, replicas: int, size: int, **known: Unpack[PublicFacts]) -> None:
        """Know nothing."""
        self._values: Array = np.zeros((replicas, size))
        self._precision: Floats = np.zeros((replicas, 1))

    def step(self, measured: Measured | None) -> Array:
        """The posterior estimate of each bin that was measured, the prior of the others."""
        self._precision = self._precision / (1 + self.process_noise * self._precision)
        if measured is not None:
            information = self._information(measured)
            self._precision = self._precision + information
            nothing = np.zeros_like(self._precision)
            gain = np.divide(information, self._precision, out=nothing, where=self._precision > 0)
            self._values = self._values + gain * (measured.values - self._values)
        return self._values

    def _information(self, measured: Measured) -> Floats:
        """One over the noise variance of each look; 0 where there was none, since its scale is infinite."""
        if self.measurement_noise is None:
            return 0.5 / measured.scale**2
        return np.where(measured.fresh, 1 / self.measurement_noise, 0.0)
