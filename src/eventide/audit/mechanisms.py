"""The standard audit of a mechanism: pairs made for its noise levels, and every attack that fits it.

A bound above epsilon refutes the guarantee, with the stated confidence; one within it proves nothing. Imports
`privacy`, `errors` and `audit`.
"""

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
from eventide.errors import EventideError, InputError
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
    """Attack a class that is built with epsilon, window, bins, a seed and `parameters`; `options` go to `audit`.

    With `secure` the noise is the real one, otherwise seeded, which is faster and can be repeated. Where likelihoods
    are known, the exact ratio joins the attacks, and the most telling transcript is looked for.
    """
    given = {"epsilon": epsilon, "window": window, "bins": bins} | (parameters or {})
    if sensitivity != 1:
        given["sensitivity"] = sensitivity
    make = functools.partial(cls, **given)
    try:
        built = make(seed=0)
    except EventideError:
        raise
    except Exception as problem:  # whatever somebody's class does
        raise InputError(
            f"cannot build what is to be attacked: {problem}; it takes epsilon, window, bins and seed"
        ) from problem
    subject = MechanismSubject(make, (lambda seed: Secure()) if secure else Seeded)
    pairs = list(neighbouring_pairs(window, bins, sensitivity, _jumps(built)))
    if not can_be_replayed(make, pairs[0].stream):
        return audit(subject, pairs, epsilon, **options)
    attacks = ATTACKS | {"exact likelihood ratio": exact_likelihood_ratio(make)}
    verdict = audit(subject, pairs, epsilon, attacks=attacks, **options)
    return dataclasses.replace(verdict, proof=most_telling_transcript(subject, make, pairs, runs=5000))


def _jumps(built: Any) -> tuple[int, ...]:
    """Jumps at which a decision to look hangs in the balance: about the noise of a look, in each bin."""
    try:
        low, high = built.noise_range()
    except (AttributeError, TypeError):
        return (10,)
    return tuple(sorted({round(low), round(min(high, 8 * low))}))
