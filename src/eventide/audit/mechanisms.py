"""The standard audit of a mechanism: pairs made for its noise levels, every attack. Imports `privacy` and `audit`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from eventide.audit.attacks import ATTACKS
from eventide.audit.auditor import Verdict, audit
from eventide.audit.exact import exact_likelihood_ratio
from eventide.audit.pairs import neighbouring_pairs
from eventide.audit.subjects import MechanismSubject
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
    exact: bool = False,
    **options: Any,
) -> Verdict:
    """Attack a class that is built with epsilon, window, bins and `parameters`; `options` go to `audit`.

    With `secure` the noise is the real one, otherwise seeded, which is faster and can be repeated. With `exact` the
    exact likelihood ratio joins the attacks, for mechanisms that it covers.
    """
    given = {"epsilon": epsilon, "window": window, "bins": bins} | (parameters or {})
    if sensitivity != 1:
        given["sensitivity"] = sensitivity
    make = functools.partial(cls, **given)
    subject = MechanismSubject(make, (lambda seed: Secure()) if secure else Seeded)
    attacks = dict(ATTACKS)
    if exact:
        attacks["exact likelihood ratio"] = exact_likelihood_ratio(make)
    pairs = neighbouring_pairs(window, bins, sensitivity, _jumps(make, bins))
    return audit(subject, pairs, epsilon, attacks=attacks, **options)


def _jumps(make: Callable[..., Any], bins: int) -> tuple[int, ...]:
    """Jumps at which a decision to look hangs in the balance: about the noise of a look, in each bin."""
    try:
        low, high = make().noise_range()
    except (AttributeError, TypeError):
        return (10,)
    return tuple(sorted({round(low), round(min(high, 8 * low))}))
