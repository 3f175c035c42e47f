"""A whole matrix of counts through a mechanism. Imports numpy and the frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from eventide.arrays import Bools, Floats
from eventide.errors import InputError
from eventide.mechanisms.base import Mechanism, whole_counts


@dataclass(frozen=True)
class Run:
    """The releases of T steps: `values` `(T, d)`, `fresh` `(T,)`, `spent` `(T,)`; a leading axis R with replicas."""

    values: Floats
    fresh: Bools
    spent: Floats


def run(mechanism: Mechanism, matrix: Any) -> Run:
    """Release every row of `matrix`, `(T, d)` for all replicas alike or `(R, T, d)` for each its own.

    The mechanism goes on from the step it is at, so a long stream can be run piece by piece. All counts are checked
    before the first release: if any is bad, nothing is charged.

    >>> import eventide as ev
    >>> ev.run(ev.Uniform(epsilon=1, window=3, bins=1, noise=ev.noise.Zero()), [[4], [5]]).values.tolist()
    [[4.0], [5.0]]
    """
    counts = whole_counts(matrix)
    each_its_own = counts.ndim == 3 and mechanism.replicas > 1
    if not (each_its_own or counts.ndim == 2):
        raise InputError("a run takes a matrix of steps and bins (or of replicas, steps and bins)")
    if counts.shape[-1] != mechanism.size or (each_its_own and len(counts) != mechanism.replicas):
        raise InputError(f"a matrix of shape {counts.shape} does not fit {mechanism!r}")
    steps = counts.shape[1] if each_its_own else counts.shape[0]
    values = np.empty((mechanism.replicas, steps, mechanism.size))
    fresh = np.empty((mechanism.replicas, steps), dtype=np.bool_)
    spent = np.empty((mechanism.replicas, steps))
    for t in range(steps):
        release = mechanism.release(counts[:, t] if each_its_own else counts[t])
        values[:, t], fresh[:, t], spent[:, t] = release.values, release.fresh, release.spent
    if mechanism.replicas == 1:
        return Run(values[0], fresh[0], spent[0])
    return Run(values, fresh, spent)
