"""Hybrid: look every k steps, repeat in between.

When it looks is known beforehand and depends on no data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np

from eventide.arrays import Bools, Ints
from eventide.mechanisms.base import CommonParameters, Mechanism
from eventide.privacy.amounts import Amount, share
from eventide.privacy.ledger import positive_integer
from eventide.privacy.sealed import SealedStep


class Hybrid(Mechanism):
    """A look every `k` steps, repeated in between: Uniform at k = 1, Sample at k = w.

    Idea: between the two baselines lies a trade of noise against staleness; `k` sets it. The default, about the
    square root of w, has both grow alike.

    Guarantee: w-event privacy with epsilon, for people who move between bins.

    Epsilon: any w steps hold at most ceil(w / k) looks, each gets epsilon / ceil(w / k).

    Cost: O(d) a step, O(w + d) memory.

    Use: where it is known for how many steps the stream hardly changes: choose that number as k.

    Departures: the benchmark, which recommends the idea, reckons with an error of w / (k epsilon): k epsilon / w for
    a look. Where k does not divide w that overspends: w = 10 and k = 3 have windows with four looks, and 1.2
    epsilon. Ours is epsilon / ceil(w / k), the largest equal share that keeps the promise.

    Reference: recommended, without an evaluation, by Schaeler, Huetter, Schaeler: Benchmarking the utility of w-event
    differential privacy mechanisms. 2022.

    Parameters
    ----------
    k
        There is a look every `k` steps; about the square root of the window by default.
    epsilon, window, bins, **common
        As in `Mechanism`.

    >>> import eventide as ev
    >>> hybrid = ev.Hybrid(epsilon=1.0, window=6, bins=1, k=3, noise=ev.noise.Unit())
    >>> [float(hybrid.release([count]).values[0]) for count in (5, 6, 7, 8)]
    [7.0, 7.0, 7.0, 10.0]
    """

    takes_window_sensitivity = True
    takes_levels = True

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        k: int | None = None,
        **common: Unpack[CommonParameters],
    ) -> None:
        shared = positive_integer(window, "window") if common.get("window_sensitivity") is None else 1
        self.k = max(1, round(math.sqrt(shared))) if k is None else positive_integer(k, "k")
        super().__init__(epsilon, window, bins, **common)

    def is_sampling_point(self, step: SealedStep) -> Bools:
        """The first step and every k-th after it."""
        return np.full((self.replicas, 1), step.index % self.k == 0)

    def budget_allocation(self) -> Ints:
        """An equal share for each look that a window can hold."""
        return share(self.shared_nano_epsilon, 1, self.looks_per_window).reshape(1, 1)

    @property
    def looks_per_window(self) -> int:
        """The most looks that any w steps can hold."""
        return -(-self.shared_steps // self.k)

    def noise_range(self) -> tuple[float, float]:
        """Every look has the same scale."""
        look = self.looks_per_window * self.sensitivity / self.shared_epsilon
        return look, look
