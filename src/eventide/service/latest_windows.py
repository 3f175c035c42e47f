"""What the latest windows of a stream hold, added up from its stored entries by the code that verifies stores.

Under a cap every step has a budget of its own, and what is told is what one person can lose by the charge of a step.
Entries that no window to be shown can hold are let go, so that memory is bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from eventide.live.stores.base import Epoch
from eventide.live.stores.verification import Verification, verify
from eventide.privacy.ledger import Entry

SHOWN = 432  # windows, for the picture


class LatestWindows:
    """What windows of an epoch hold: `held` by the last step of each, `worst` the most ever; in nano-epsilon.

    `worst_allowed` is the epsilon of the epoch in which that was.
    `before` is what earlier epochs of the store held. `holds` says whether no window was over the epsilon of its epoch.
    """

    def __init__(self, epoch: Epoch, before: Verification | None = None) -> None:
        self._epoch = epoch  # from the first step on whose entries are known
        self._entries: list[Entry] = []
        self.last = epoch.first_step - 1
        self.held: dict[int, int] = {}
        self.worst, self.holds = (0, True) if before is None else (before.worst, before.holds)
        self.worst_allowed = epoch.setting.epsilon if before is None or not before.worst else before.worst_allowed

    @property
    def now(self) -> int:
        """What the latest window holds."""
        return self.held.get(self.last, 0)

    def add(self, entries: Iterable[Entry], last: int) -> None:
        """Count the entries of the next steps, up to `last`."""
        begin, self.last = self._epoch.first_step, last
        self._entries += [entry for entry in entries if entry.step <= last]
        held = verify(self._entries, [self._epoch], last + 1).spending[0].windows.tolist()
        fullest = max(held, default=0)
        if fullest > self.worst:
            self.worst, self.worst_allowed = fullest, self._epoch.setting.epsilon
        self.holds = self.holds and fullest <= self._epoch.setting.epsilon
        self.held = dict(list(enumerate(held, start=begin))[-SHOWN:])
        self._forget_before(max(begin, last + 1 - self._epoch.setting.window - SHOWN))

    def next_return(self) -> tuple[int, int] | None:
        """The first step at which something spent is outside the window again, and how much; open spans are not."""
        setting, returning = self._epoch.setting, Counter[int]()
        window = setting.window if setting.window_sensitivity is None else 1
        for entry in self._entries:
            if entry.kind != "open" and entry.amount and entry.step > self.last - window:
                returning[entry.step + window] += entry.amount
        step, amount = min(returning.items(), default=(0, 0))
        return (step, setting.loss(amount)) if amount else None

    def _forget_before(self, begin: int) -> None:
        """Forget the steps before one; to later windows a span that is open then may as well open there."""
        spans = Counter[str]()
        for entry in self._entries:
            if entry.step < begin and entry.kind != "point":
                spans[entry.lane] += entry.amount if entry.kind == "open" else -entry.amount
        opened = [Entry(begin, "open", lane, amount) for lane, amount in spans.items() if amount]
        self._entries = opened + [entry for entry in self._entries if entry.step >= begin]
        self._epoch = self._epoch._replace(first_step=begin)
