"""Which mechanisms can be published: those whose promise still holds when steps are made durable one by one."""

from __future__ import annotations

from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.pan_private import PanPrivateMechanism
from eventide.privacy.amounts import NANO


def why_not_published(mechanism: Mechanism, *, one_by_one: bool = False) -> str | None:
    """Why a publisher refuses a mechanism, whatever it is to publish; None where it does not.

    `one_by_one` is True where events go into the cells of a pan-private mechanism as they come.
    """
    if mechanism.replicas > 1:
        return "several replicas would publish the same people several times; choose replicas=1"
    if mechanism.accounts_per_bin:
        return (
            "accounting='fixed-bin' does not protect people who move between bins and is for studies; "
            "publish with accounting='moving'"
        )
    if isinstance(mechanism, PanPrivateMechanism) and mechanism.pan_private is not None:
        if not one_by_one:
            return (
                "pan_private is for events that are handed over one by one, from a file that is followed, a pipe, "
                "NATS, Kafka or the service; counts, frames, complete files and Spark hold many at once, which can be "
                "stolen, so leave pan_private out"
            )
        if reason := mechanism.why_not_several_steps():
            return reason
    elif one_by_one:
        return "events that are handed over one by one need noisy cells; choose bd or ba with pan_private"
    if mechanism.noise_range()[0] > mechanism.sensitivity * NANO:
        return (
            "the budget of a measurement is below a billionth of epsilon, so nothing would ever be measured; "
            "choose a larger epsilon or a shorter window"
        )
    return None
