"""Which mechanisms can be published: those whose promise still holds when steps are made durable one by one."""

from __future__ import annotations

from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO


def why_not_published(mechanism: Mechanism) -> str | None:
    """Why a publisher refuses a mechanism, whatever it is to publish; None where it does not."""
    if mechanism.replicas > 1:
        return "several replicas would publish the same people several times; choose replicas=1"
    if mechanism.accounts_per_bin:
        return (
            "accounting='fixed-bin' does not protect people who move between bins and is for studies; "
            "publish with accounting='moving'"
        )
    if getattr(mechanism, "pan_private", None) is not None:
        return (
            "a pan-private mechanism promises that nobody who sees its state learns anything, and a publisher writes "
            "its state down at every step; leave pan_private out"
        )
    if mechanism.noise_range()[0] > mechanism.sensitivity * NANO:
        return (
            "the budget of a look is below a billionth of epsilon, so nothing would ever be measured; "
            "choose a larger epsilon or a shorter window"
        )
    return None
