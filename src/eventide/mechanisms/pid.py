"""Feedback control for mechanisms that pace their looks: the PID error, and the interval it sets.

Everything here reads released values only, so it is free. All arrays are `(R, d)`: each bin of each replica has a
controller of its own, and `where` (anything that broadcasts) says whose turn it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eventide.arrays import Array, Bools, Floats, Ints
from eventide.errors import InputError
from eventide.privacy.amounts import number
from eventide.privacy.ledger import positive_integer
from eventide.privacy.state import Stateful


def pushed(recent: Array, newest: Array, where: Bools) -> Array:
    """The stack `recent`, newest first along its first axis, with `newest` on top and the oldest gone in `where`."""
    return np.where(where, np.concatenate([newest[None], recent[:-1]]), recent)


class PID(Stateful):
    """Weighs the newest error, the mean of the recent ones and the speed at which they change into one number.

    gains: proportional, integral and derivative. memory: how many errors the mean is taken over, the newest included
    and fewer while there are fewer; None for all since the last restart. The speed is that from one error to the next;
    0 at the first.

    >>> import numpy as np
    >>> control = PID((1, 1), gains=(0.9, 0.1, 0.0), memory=2)
    >>> [float(control.update(np.full((1, 1), error), step)[0, 0].round(6)) for step, error in enumerate((1, 3, 5))]
    [1.0, 2.9, 4.9]
    """

    state = ("_recent", "_count", "_last", "_step")

    def __init__(self, shape: tuple[int, int], gains: Sequence[float], memory: int | None) -> None:
        listed = isinstance(gains, Sequence | np.ndarray) and getattr(gains, "ndim", 1) == 1
        given = gains if listed else ()
        if [math.isfinite(number(gain)) for gain in given] != [True] * 3:
            raise InputError("gains are three numbers: proportional, integral and derivative")
        self.gains = tuple(gains)
        self.memory = None if memory is None else positive_integer(memory, "memory")
        self._recent: Floats = np.zeros((self.memory or 1, *shape))  # without a limit: their sum
        self._count: Ints = np.zeros(shape, dtype=np.int64)
        self._last: Floats = np.zeros(shape)
        self._step: Ints = np.zeros(shape, dtype=np.int64)

    def restart(self, where: Bools | np.bool_ = np.True_) -> None:
        """Forget the errors."""
        self._recent = np.where(where, 0.0, self._recent)
        self._count = np.where(where, 0, self._count)

    @property
    def full(self) -> Bools:
        """Where as many errors are known as the mean is taken over."""
        return self._count >= (self.memory or 1)

    def update(self, error: Floats, step: int, where: Bools | np.bool_ = np.True_) -> Floats:
        """Take in the errors of this step and return what the controller makes of them, both in `where` only."""
        speed = np.where(self._count > 0, (error - self._last) / np.maximum(step - self._step, 1), 0.0)
        if self.memory is None:
            self._recent = self._recent + np.where(where, error, 0.0)
        else:
            self._recent = pushed(self._recent, error, np.asarray(where))
        self._count = self._count + where
        self._last = np.where(where, error, self._last)
        self._step = np.where(where, step, self._step)
        known = np.minimum(self._count, self.memory) if self.memory else self._count
        mean = self._recent.sum(axis=0) / np.maximum(known, 1)
        proportional, integral, derivative = self.gains
        return np.asarray(proportional * error + integral * mean + derivative * speed)


class SamplingInterval(Stateful):
    """How long each bin waits for its next look: at least one step, at most `stretch` longer than the time before.

    With one `shared` clock the bin that waits least decides for all. After `restart` every bin is due at every step,
    until its first `adjust`.
    """

    state = ("_length", "_due")

    def __init__(self, shape: tuple[int, int], stretch: float, *, shared: bool) -> None:
        if not 0 <= number(stretch) < math.inf:
            raise InputError(f"stretch is {stretch!r}; it is how much longer a wait may get, 0 steps or more")
        self.shape = shape
        self.stretch = stretch
        self.shared = shared
        self.restart()

    def restart(self) -> None:
        """Wait one step."""
        self._length: Floats = np.ones(self.shape)
        self._due: Ints = np.zeros(self.shape, dtype=np.int64)

    @property
    def length(self) -> Floats:
        """The wait of each bin, `(R, d)`, or of the clock they share, `(R, 1)`."""
        return self._first(self._length)

    def due(self, step: int) -> Bools:
        """Who wants a look at this step, in the same shape."""
        return self._first(self._due) <= step

    def adjust(self, growth: Floats, step: int, where: Bools) -> None:
        """Lengthen the wait after a look at `step` by `growth` stretches; `growth` is at most 1 and may be negative."""
        self._length = np.where(where, np.maximum(1.0, self._length + self.stretch * growth), self._length)
        self._due = np.where(where, step + self._length.astype(np.int64), self._due)

    def _first(self, of_bins: Array) -> Array:
        return of_bins.min(axis=1, keepdims=True) if self.shared else of_bins
