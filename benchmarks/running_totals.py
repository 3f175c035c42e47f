"""Factorisations of the running sum under pure epsilon: python benchmarks/running_totals.py.

Totals so far are A x, with A the lower triangle of ones. A counter measures C x with Laplace noise of scale
(largest column norm of C in L1) / epsilon, and answers by B, where B C = A. Printed is the standard error of a total as
a root mean square over the first n steps, at epsilon 1. The discrete noise of eventide is a little less than that: the
last two rows have it, for sums of whole counts, which Toeplitz forms do not have.

Toeplitz matrices B and C, with first columns b and c, cannot beat noise on every single step (C = I), at no step t:
(c * b)_k = 1 for all k < t, so t = sum_j c_j (b_0 + ... + b_(t-1-j)) <= |c|_1 |b|_1 <= |c|_1 sqrt(t) |b|_2. So the
variance 2 |c|_1^2 |b|_2^2 is at least 2 t, that of C = I. Square roots of A are for the L2 norm of Gaussian noise, in
which c costs the logarithm of n and not the square root of it.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats
from eventide.privacy.amounts import NANO
from eventide.windows.running_total import Levels, RunningTotal, best_levels
from eventide.windows.schemes.scheme import discrete_variance

HORIZONS = (10, 100, 1_000, 10_000)
BANDS = (2, 4, 16, 64)


def root_coefficients(length: int) -> Floats:
    """The first column of the square root of A: binomial(2 k, k) / 4^k."""
    k = np.arange(1, length)
    return np.cumprod(np.append(1.0, (2 * k - 1) / (2 * k)))


def inverse_column(strategy: Floats, length: int) -> Floats:
    """The b with (c * b)_k = 1 for all k below `length`, where c is `strategy` and then zeros."""
    found = np.zeros(length)
    for k in range(length):
        reach = min(k, len(strategy) - 1)
        found[k] = (1 - strategy[1 : reach + 1] @ found[k - reach : k][::-1]) / strategy[0]
    return found


def toeplitz_variance(strategy: Floats, length: int) -> Floats:
    """The variance of the totals of the first steps, in units of 2 / epsilon^2."""
    return np.asarray(np.cumsum(inverse_column(strategy, length) ** 2) * np.abs(strategy[:length]).sum() ** 2)


def table() -> dict[str, list[float]]:
    """Standard errors by counter and horizon."""
    rows: dict[str, list[float]] = {}
    for horizon in HORIZONS:
        steps = np.arange(1, horizon + 1)
        root = root_coefficients(horizon)
        variances = {
            "noise on every step (C = I)": steps,
            "square root of A, Toeplitz": toeplitz_variance(root, horizon),
        }
        for band in BANDS:
            variances[f"its first {band} bands"] = toeplitz_variance(root[:band], horizon)
        variances["binary tree"] = Levels(2, (horizon - 1).bit_length()).variance(steps)
        variances["slots, as in RunningTotal"] = best_levels(horizon).variance(steps)
        for name, variance in variances.items():
            rows.setdefault(name, []).append(float(np.sqrt(2 * np.mean(variance))))
        counter = RunningTotal(1.0, horizon=horizon)
        one = float(discrete_variance(np.array([NANO]), 1)[0])
        drawn: dict[str, Floats] = {
            "noise on every step, discrete": steps.astype(np.float64) * one,
            "RunningTotal, discrete": np.array([counter.variance(step) for step in steps.tolist()]),
        }
        for name, exact in drawn.items():
            rows.setdefault(name, []).append(float(np.sqrt(np.mean(exact))))
    return rows


def main() -> None:
    print("| counter | " + " | ".join(f"n = {horizon:,}" for horizon in HORIZONS) + " |")
    print("|---|" + "---|" * len(HORIZONS))
    for name, errors in table().items():
        print(f"| {name} | " + " | ".join(f"{error:.1f}" for error in errors) + " |")


if __name__ == "__main__":
    main()
