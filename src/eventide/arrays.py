"""Names of the array types that signatures use, and the largest count that all of eventide takes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST_COUNT = 2**53  # beyond it float64, in which releases are given, is no longer exact

Array = NDArray[Any]
Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
