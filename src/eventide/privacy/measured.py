"""What the meter hands out: private numbers with their noise scales."""

from __future__ import annotations

from dataclasses import dataclass

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
