"""From which step on a new epoch may measure: when no window, old or new, can hold a charge of before and one of after.

In doubt the answer is later, never earlier.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from eventide.live.stores.base import Epoch
from eventide.privacy.ledger import Entry


def first_measured(epochs: Sequence[Epoch], entries: Iterable[Entry], next_step: int, window: int) -> int:
    """The first step at which an epoch with this window, begun at `next_step`, may charge.

    Behind the last step that any epoch charged, or touched by a span still open at its end, lie as many steps as the
    longer of its window and the new one.
    """
    held = list(entries)
    first = next_step
    borders = pairwise([*(epoch.first_step for epoch in epochs), next_step])
    for epoch, (begin, end) in zip(epochs, borders, strict=True):
        touched = last_touched([entry for entry in held if begin <= entry.step < end], end)
        if epoch.restored:
            touched = max(touched, begin - 1)
            first = max(first, epoch.measured_from)  # what was lost may belong to an epoch with a longer window
        if touched >= 0:
            first = max(first, touched + max(epoch.setting.window, window))
    return first


def first_measured_after_loss(
    epochs: Sequence[Epoch], entries: Iterable[Entry], stored: int, next_step: int, window: int
) -> int:
    """The same where the steps from `stored` up to `next_step` were lost, so that each may have been charged.

    They may belong to any epoch that was not over before them.
    """
    ends = [*(epoch.first_step for epoch in epochs[1:]), next_step]
    longest = max(epoch.setting.window for epoch, end in zip(epochs, ends, strict=True) if end >= stored)
    return max(first_measured(epochs, entries, next_step, window), next_step - 1 + longest)


def last_touched(entries: Iterable[Entry], end: int) -> int:
    """The last step with a charge among the entries of an epoch that ends before `end`; -1 where there is none."""
    open_spans: Counter[str] = Counter()
    last = -1
    for entry in entries:
        last = max(last, entry.step)
        open_spans[entry.lane] += {"open": entry.amount, "close": -entry.amount}.get(entry.kind, 0)
    return end - 1 if any(open_spans.values()) else last
