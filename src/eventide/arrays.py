"""Names of the array types that signatures use, the largest count that all of eventide takes, and a cheap broadcast."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_COUNT = 2**53  # beyond it float64, in which releases are given, is no longer exact

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def spread(array: Array, shape: tuple[int, ...]) -> Array:
    """`array` in a shape it broadcasts to; at no cost where it has it already, which is most of the time."""
    return array if array.shape == shape else np.broadcast_to(array, shape)
