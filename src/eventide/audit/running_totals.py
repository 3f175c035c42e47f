"""The audit of running totals: what all totals together, and every slot behind them, give away.

As with plans, an attacker is granted the released slots, so that the likelihood of a run is exact.
"""

from __future__ import annotations

import functools
from typing import Unpack

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.audit.auditor import AuditOptions, Verdict
from eventide.audit.plans import PlanSubject, RecordingMeter, audit_slots, slot_pairs
from eventide.audit.seeds import noise_by_seed
from eventide.audit.subjects import Transcript
from eventide.privacy.amounts import Amount
from eventide.privacy.noise import Source
from eventide.windows.running_total import RunningTotal


class RunningTotalSubject(PlanSubject):
    """A counter, given as a function that starts it; of a transcript, `values` are the totals, `extra` the slots."""

    def _run(self, stream: Ints, runs: int, noise: Source) -> tuple[Transcript, Floats]:
        counter = self.start(replicas=runs, noise=noise)
        counter.meter = meter = RecordingMeter(counter.meter)
        totals = np.stack([counter.push(counts).value for counts in stream], axis=1)
        return Transcript(totals, extra=np.moveaxis(meter.slots, 1, 0).reshape(runs, -1)), meter.rates


def audit_running_total(
    epsilon: Amount,
    *,
    bins: int = 1,
    horizon: int = 100,
    window: int = 1,
    sensitivity: int = 1,
    secure: bool = False,
    **options: Unpack[AuditOptions],
) -> Verdict:
    """Attack a running total over two blocks.

    Parameters
    ----------
    epsilon, bins, horizon, window, sensitivity
        How the counter is made.
    secure
        Attack the real noise; otherwise it is seeded.
    **options
        As in `audit`.
    """
    start = functools.partial(RunningTotal, epsilon, bins, horizon=horizon, window=window, sensitivity=sensitivity)
    subject = RunningTotalSubject(start, noise_by_seed(secure=secure))
    block = start().levels.lengths[-1]
    pairs = slot_pairs(block, 2 * max(block, window), window, bins, sensitivity)
    return audit_slots(subject, pairs, start().ledger.epsilon, **options)
