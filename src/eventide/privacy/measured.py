"""What the meter hands out: private numbers with their noise scales."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.arrays import Array, Bools, Floats


@dataclass(frozen=True, slots=True)
class Measured:
    """What a measurement gave, for R replicas and k bins or sums of bins.

    Parameters
    ----------
    values
        Noisy values `(R, k)`; 0 where nothing was measured.
    scale
        Their noise scales, `(R, k)`, or one column where all are alike; infinite where nothing was measured.
    fresh
        Whether it was measured, in the shape of `scale`.
    """

    values: Array
    scale: Floats
    fresh: Bools


def together(one: Measured | None, other: Measured | None) -> Measured | None:
    """Two independent measurements of the same counts as one: weighted means, with the noise scale that those have."""
    if one is None or other is None:
        return one or other
    precision = [np.where(each.fresh, np.square(1 / each.scale), 0.0) for each in (one, other)]
    whole = np.asarray(precision[0] + precision[1])
    fresh = one.fresh | other.fresh
    safe = np.where(fresh, whole, 1.0)
    values = (precision[0] * one.values + precision[1] * other.values) / safe
    return Measured(values, np.where(fresh, 1 / np.sqrt(safe), np.inf), fresh)
