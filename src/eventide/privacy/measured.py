"""What the meter hands out: private numbers with their noise scales."""

from __future__ import annotations

from dataclasses import dataclass

from eventide.arrays import Array, Bools, Floats


@dataclass(frozen=True, slots=True)
class Measured:
    """Noisy values `(R, k)`; `scale` and `fresh` have the same shape, or one column where all k are alike.

    Where `fresh` is false nothing was measured: the value is 0 there and the scale infinite.
    """

    values: Array
    scale: Floats
    fresh: Bools
