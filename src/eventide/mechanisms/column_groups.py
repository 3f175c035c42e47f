"""Which bins belong together: those whose releases have a similar magnitude, so that each group can be quiet by itself.

Promises to read released values only, so grouping costs no privacy.
"""

from __future__ import annotations

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError
from eventide.privacy.ledger import positive_integer
from eventide.privacy.partition import Partition
from eventide.privacy.state import Stateful

BINS_PER_GROUP = 500  # for "auto"; the paper found 600 and 1,300 best on its two streams
REGROUP_EVERY = 10  # steps


def group_count(groups: int | str | None, size: int) -> int:
    """How many groups `size` bins are divided into: none asked for is one of all bins, "auto" one for 500 bins."""
    if groups is None:
        return 1
    if isinstance(groups, str):
        if groups != "auto":
            raise InputError(f"groups is a number or 'auto', not {groups!r}")
        return max(1, size // BINS_PER_GROUP)
    if positive_integer(groups, "groups") > size:
        raise InputError(f"{groups} groups are more than the {size} bins; ask for fewer, or for 'auto'")
    return int(groups)


class ColumnGroups(Stateful):
    """`groups` groups of equally many bins, or one more, for each replica its own.

    Bins are put in order by the root mean square of their releases since the last regrouping, and the order is cut
    into groups; every `REGROUP_EVERY` steps anew. Before that they stand in the order in which they were given.
    """

    state = ("_order", "_squares")

    def __init__(self, groups: int, shape: tuple[int, int]) -> None:
        self._starts = np.arange(groups) * shape[1] // groups
        self.sizes: Ints = np.diff(self._starts, append=shape[1])
        self._order: Ints = np.arange(shape[1]).reshape(1, -1)
        self._squares: Array = np.zeros(shape)
        self._divide()

    def observe(self, released: Array, step: int) -> None:
        """Take in what was released last; `step` is the one that comes next."""
        self._squares += np.square(released)
        if step % REGROUP_EVERY == 0:
            self._order = np.argsort(self._squares, axis=1, kind="stable")
            self._squares[:] = 0
            self._divide()

    def least(self, values: Ints) -> Ints:
        """The smallest of each group's `values` `(R, d)`, shape `(R, groups)`: what all its bins have left."""
        ordered = np.take_along_axis(values, self._order, axis=1)
        return np.minimum.reduceat(ordered, self._starts, axis=1, dtype=np.int64)

    def restore(self, snapshot: dict[str, Array]) -> None:
        """Take over a state that `snapshot` gave."""
        super().restore(snapshot)
        self._divide()

    def _divide(self) -> None:
        labels = np.empty_like(self._order)
        np.put_along_axis(labels, self._order, np.repeat(np.arange(len(self.sizes)), self.sizes)[None], axis=1)
        self.partition = Partition(labels, len(self.sizes))
