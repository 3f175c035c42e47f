"""Exponentials, logarithms and normal tails that processors compute side by side.

Those of the mathematical library take one number at a time and branch on it; these are polynomials without a branch, so
a loop over many numbers takes several in one instruction. Logarithm and exponential are off by a few parts in 10^16,
Mills' ratio by one in 10^12. They come out the same in every loop, but not to the last bit on every processor.
"""

from __future__ import annotations

import math

import numpy as np

from eventide.compiling import kernel

SIDE_BY_SIDE = {"contract", "arcp"}  # products with sums, and one division for several; no sum is reordered
LOG2_E = 1 / math.log(2)
LOG_2, LOG_2_REST = 0.693145751953125, 1.42860682030941723212e-06  # the first has few digits: its multiples are exact
WHOLE = 1.5 * 2.0**52  # added to a number, it leaves no room for digits behind the point
MOST = 700.0  # of e^700 and e^-700 there are still floating-point numbers
MANTISSA, HALF_BITS, COUNT_BITS = 2**52 - 1, 0x3FE << 52, 0x433 << 52  # parts of numbers as bits; of 0.5; of 2^52
ROOT_TAU, ROOT_HALF = math.sqrt(2 * math.pi), math.sqrt(0.5)
ZERO_AT = 4.0


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE, forceinline=True)
def exponential(power: float) -> float:
    """e to the `power`: a whole power of 2, whose exponent is written into bits, times a series for the rest."""
    bounded = min(max(power, -MOST), MOST)
    shifted = bounded * LOG2_E + WHOLE
    doublings = shifted - WHOLE
    x = (bounded - doublings * LOG_2) - doublings * LOG_2_REST
    series = x * (1 / 479001600) + 1 / 39916800
    series = ((series * x + 1 / 3628800) * x + 1 / 362880) * x + 1 / 40320
    series = ((series * x + 1 / 5040) * x + 1 / 720) * x + 1 / 120
    series = ((((series * x + 1 / 24) * x + 1 / 6) * x + 0.5) * x + 1.0) * x + 1.0
    scale: float = np.int64(np.float64(shifted + 1023.0).view(np.int64) << 52).view(np.float64)
    return series * scale


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE, forceinline=True)
def logarithm(number: float) -> float:
    """Of a number above 0: its exponent, which is read from bits, and a series for what is between 0.7 and 1.4."""
    bits = np.float64(number).view(np.int64)
    part = np.int64((bits & MANTISSA) | HALF_BITS).view(np.float64)
    doublings = np.int64((bits >> 52) | COUNT_BITS).view(np.float64) - (2.0**52 + 1022.0)
    low = part < ROOT_HALF
    part, doublings = (part + part, doublings - 1.0) if low else (part, doublings)
    x = (part - 1) / (part + 1)
    y = x * x
    series = y * (2 / 19) + 2 / 17
    series = ((series * y + 2 / 15) * y + 2 / 13) * y + 2 / 11
    series = ((((series * y + 2 / 9) * y + 2 / 7) * y + 2 / 5) * y + 2 / 3) * y + 2.0
    return doublings * LOG_2 + (x * series + doublings * LOG_2_REST)


@kernel(error_model="numpy", fastmath=SIDE_BY_SIDE, forceinline=True)
def mills_ratio(place: float) -> float:
    """A standard normal's mass beyond a `place` of at least 0, over its density there.

    Times 1 + place it lies between 1 and 1.26, and is smooth in a number from -1 to 1: a polynomial was fitted to it.
    """
    inverse = 1 / ((place + ZERO_AT) * (place + 1))
    x = (place - ZERO_AT) * (place + 1) * inverse
    near = x * 5.632554811e-07 + 7.524554911e-07
    near = ((near * x - 5.251523085028e-06) * x - 8.046608417557e-06) * x + 3.2957329997726e-05
    near = ((near * x + 5.2718162561687e-05) * x - 0.00021954557077309) * x - 0.00023640485627429
    near = ((near * x + 0.0017416252095909) * x - 0.00071604096922532) * x - 0.012539061268967248
    near = ((near * x + 0.04495914349132116) * x - 0.08070801372476237) * x + 0.07169048016830046
    near = ((near * x + 0.03509188038420118) * x - 0.24239967050024008) * x + 1.1832619145668912
    return near * (place + ZERO_AT) * inverse
