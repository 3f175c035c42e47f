"""The standard audit of a mechanism: pairs made for its noise levels, every attack. Imports `privacy` and `audit`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

from eventide.audit.attacks import ATTACKS
from eventide.audit.auditor import Verdict, audit
from eventide.audit.exact import can_be_replayed, exact_likelihood_ratio, most_telling_transcript
from eventide.audit.pairs import neighbouring_pairs
from eventide.audit.subjects import MechanismSubject
from eventide.errors import InputError
from eventide.privacy.noise import Secure, Seeded


def audit_mechanism(
    cls: Callable[..., Any],
    epsilon: float,
    window: int,
    bins: int,
    *,
    sensitivity: int = 1,
    secure: bool = False,
    parameters: dict[str, Any] | None = None,
    **options: Any,
) -> Verdict:
    """Attack a class that is built with epsilon, window, bins and `parameters`; `options` go to `audit`.

    With `secure` the noise is the real one, otherwise seeded, which is faster and can be repeated. Where likelihoods
    are known, the exact ratio joins the attacks, and the most telling transcript is looked for.
    """
    given = {"epsilon": epsilon, "window": window, "bins": bins} | (parameters or {})
    if sensitivity != 1:
        given["sensitivity"] = sensitivity
    make = functools.partial(cls, **given)
    try:
        make()
    except TypeError as problem:
        raise InputError(f"cannot build what is to be attacked: {problem}; it takes epsilon, window and bins") from None
    subject = MechanismSubject(make, (lambda seed: Secure()) if secure else Seeded)
    pairs = list(neighbouring_pairs(window, bins, sensitivity, _jumps(make)))
    if not can_be_replayed(make, pairs[0].stream):
        return audit(subject, pairs, epsilon, **options)
    attacks = ATTACKS | {"exact likelihood ratio": exact_likelihood_ratio(make)}
    verdict = audit(subject, pairs, epsilon, attacks=attacks, **options)
    return dataclasses.replace(verdict, proof=most_telling_transcript(subject, make, pairs, runs=5000))


def _jumps(make: Callable[..., Any]) -> tuple[int, ...]:
    """Jumps at which a decision to look hangs in the balance: about the noise of a look, in each bin."""
    try:
        low, high = make().noise_range()
    except (AttributeError, TypeError):
        return (10,)
    return tuple(sorted({round(low), round(min(high, 8 * low))}))
