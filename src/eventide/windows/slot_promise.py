"""What is promised about what is made of sums of slots, and whether sums are open: of plans and of counters."""

from __future__ import annotations

from eventide.privacy.guarantees import THIS_RUN_ONLY, Guarantee
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.noise import Source, why_not_private
from eventide.privacy.slot_sums import SlotSums
from eventide.privacy.state import Stateful


def guarantee(epsilon: float, window: int, sensitivity: int, source: Source | None) -> Guarantee:
    """What is promised about answers whose noise comes from `source`; None stands for a private one."""
    return Guarantee(
        notion="event-level" if window == 1 else "w-event",
        epsilon=epsilon,
        window=window,
        unit="one person",
        sensitivity=sensitivity,
        assumptions=(
            "here a step is a tick",
            "the counts are trusted to keep this bound: nothing checks that",
            THIS_RUN_ONLY,
        ),
        not_private=None if source is None else why_not_private(source),
    )


class OfSlots(Stateful):
    """Something at work that measures sums of slots."""

    ledger: WindowLedger
    source: Source
    sensitivity: int
    _sums: SlotSums

    @property
    def holds_raw(self) -> bool:
        """Whether a saved state would hold sums of true counts: those of slots that are still open."""
        return self._sums.holds_raw

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about everything that it releases together."""
        return guarantee(self.ledger.epsilon, self.ledger.window, self.sensitivity, self.source)
