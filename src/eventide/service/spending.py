"""What the windows of a stream hold, step by step, told from the stored entries alone.

A span is counted once in every window it touches: while it is open in each, and from its close on like a point of that
step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from eventide.privacy.ledger import Entry

REMEMBERED = 432  # windows, for the picture


class WindowTotal(NamedTuple):
    """An amount of nano-epsilon at a step: what the window that ends there holds, or what comes back there."""

    step: int
    amount: int


class Spending:
    """Totals of the windows of `window` steps; the last ones, and the largest there was."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.worst = 0
        self.latest: deque[WindowTotal] = deque(maxlen=REMEMBERED)
        self._past: deque[tuple[int, int]] = deque()  # steps of the window with what they were charged
        self._sum = 0  # of the past
        self._open: dict[str, int] = {}  # spans that are open, by lane

    @property
    def now(self) -> int:
        """What the latest window holds."""
        return self.latest[-1].amount if self.latest else 0

    def next_return(self) -> WindowTotal | None:
        """The first step at which something spent is outside the window again, and how much; open spans are not."""
        spent = next(((step, amount) for step, amount in self._past if amount), None)
        return None if spent is None else WindowTotal(spent[0] + self.window, spent[1])

    def add(self, step: int, entries: Iterable[Entry]) -> None:
        """Count the entries of the next step."""
        charged = 0
        for entry in entries:
            if entry.kind == "open":
                self._open[entry.lane] = self._open.get(entry.lane, 0) + entry.amount
            else:
                charged += entry.amount
            if entry.kind == "close":
                self._open[entry.lane] -= entry.amount
        self._past.append((step, charged))
        self._sum += charged
        while self._past[0][0] <= step - self.window:
            self._sum -= self._past.popleft()[1]
        self.latest.append(WindowTotal(step, self._sum + sum(self._open.values())))
        self.worst = max(self.worst, self.now)
