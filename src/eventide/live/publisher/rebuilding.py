"""A mechanism as it stood when its last step was committed: the last snapshot, and the answers recorded since.

The mechanism takes those steps again on counts of zero while its meter gives those answers: the ledger is charged
as it was, and nothing is drawn.
"""

from __future__ import annotations

import numpy as np

from eventide.errors import StoreError
from eventide.live.stores.base import Standing
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.saving import load
from eventide.privacy.recorded_answers import replay


def rebuilt(mechanism: Mechanism, standing: Standing) -> Mechanism:
    """`mechanism` itself at its beginning, or one like it that stands where the store does."""
    if standing.snapshot is not None:
        mechanism = load(standing.snapshot, type(mechanism), mechanism.filter)
    nothing = np.zeros(mechanism.size, dtype=np.int64)
    for tape in standing.tapes:
        with replay(mechanism.meter, tape):
            mechanism.release(nothing)
    steps = max(0, standing.next_step - standing.origin)
    if standing.next_step >= standing.measured_from and mechanism.step != steps:
        raise StoreError("the store's record of the mechanism does not reach its last step; restore a backup")
    return mechanism
