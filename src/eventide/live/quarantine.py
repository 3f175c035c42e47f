"""From which step on a new epoch may measure: when no window, old or new, can hold a charge of before and one of after.

Imports its neighbour `store`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

from eventide.live.store import Epoch
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
        if touched >= 0:
            first = max(first, touched + max(epoch.setting.window, window))
    return first


def last_touched(entries: Iterable[Entry], end: int) -> int:
    """The last step with a charge among the entries of an epoch that ends before `end`; -1 where there is none."""
    open_spans: Counter[str] = Counter()
    last = -1
    for entry in entries:
        last = max(last, entry.step)
        open_spans[entry.lane] += {"open": entry.amount, "close": -entry.amount}.get(entry.kind, 0)
    return end - 1 if any(open_spans.values()) else last
