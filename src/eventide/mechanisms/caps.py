"""Which mechanisms and bounds go together with a `window_sensitivity`; all others are refused in one sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eventide.errors import InputError
from eventide.mechanisms.registry import name_of
from eventide.privacy.ledger import positive_integer

if TYPE_CHECKING:
    from eventide.mechanisms.base import Mechanism


def checked_cap(mechanism: Mechanism, window_sensitivity: int | None) -> int | None:
    """The bound as a whole number, None where there is none, or a refusal."""
    if window_sensitivity is None:
        return None
    cap = positive_integer(window_sensitivity, "window_sensitivity")
    most = mechanism.sensitivity * mechanism.window
    if cap >= most:
        raise InputError(
            f"window_sensitivity is {cap}, and without it one person already adds at most {most} in a window of "
            f"{mechanism.window} steps, so it brings nothing; leave it out, or give one below {most}"
        )
    if reason := _reason_against(mechanism):
        name = name_of(type(mechanism)) or type(mechanism).__name__
        raise InputError(f"{name} cannot be published with a cap or a window sensitivity: {reason}")
    return cap


def _reason_against(mechanism: Mechanism) -> str | None:
    if mechanism.accounts_per_bin:
        return "accounting='fixed-bin' gives every bin a budget of its own, and people move between bins; leave it out"
    if getattr(mechanism, "pan_private", None) is not None:
        return "the proof of pan_private covers budgets of whole windows only; leave it out"
    if getattr(mechanism, "as_published", False):
        return "the form as published has no proof; leave as_published out"
    if not mechanism.takes_window_sensitivity:
        return (
            "it shares the budget of a window out among its steps, and with a cap every step has a budget of its own; "
            "choose tide, pegasus or uniform"
        )
    return None
