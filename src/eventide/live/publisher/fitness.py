"""Which mechanisms a publisher takes: those whose promise still holds when steps are made durable one by one.

Any other is refused before anything is charged.
"""

from __future__ import annotations

from eventide.errors import InputError
from eventide.live.feeds.base import Promise
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO


def check_fit(mechanism: Mechanism, promise: Promise) -> None:
    """Refuse a mechanism that does not fit, in one sentence."""
    if mechanism.step:
        raise InputError("the mechanism has released steps already; give a new one, the store rebuilds its state")
    if mechanism.replicas > 1:
        raise InputError("several replicas would publish the same people several times; choose replicas=1")
    if mechanism.accounts_per_bin:
        raise InputError(
            "accounting='fixed-bin' does not protect people who move between bins and is for studies; "
            "publish with accounting='moving'"
        )
    if getattr(mechanism, "pan_private", None) is not None:
        raise InputError(
            "a pan-private mechanism promises that nobody who sees its state learns anything, and a publisher writes "
            "its state down at every step; leave pan_private out"
        )
    if promise.most is not None and promise.most != mechanism.sensitivity:
        raise InputError(
            f"one person adds up to {promise.most} to a step and the mechanism's sensitivity is "
            f"{mechanism.sensitivity}; make both the same"
        )
    if mechanism.noise_range()[0] > mechanism.sensitivity * NANO:
        raise InputError(
            "the budget of a look is below a billionth of epsilon, so nothing would ever be measured; "
            "choose a larger epsilon or a shorter window"
        )
