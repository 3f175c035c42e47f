"""The standard audit of a mechanism: pairs made for its noise levels, and every attack that fits it.

A bound above epsilon refutes the guarantee, with the stated confidence; one within it proves nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Collection, Iterable
from typing import Any

from eventide.audit.attacks import ATTACKS
from eventide.audit.auditor import Progress, Verdict, audit, untold
from eventide.audit.exact import can_be_replayed, exact_likelihood_ratio, most_telling_transcript
from eventide.audit.pairs import Pair, neighbouring_pairs
from eventide.audit.seeds import Seeds, noise_by_seed
from eventide.audit.subjects import MechanismSubject, theirs
from eventide.errors import InputError, StateError, unknown
from eventide.mechanisms.base import Mechanism

EXACT = "exact likelihood ratio"
REPLAYED = 5000  # runs on either stream of a pair in which the most telling transcript is looked for


def audit_mechanism(
    cls: Callable[..., Any],
    epsilon: float,
    window: int,
    bins: int,
    *,
    sensitivity: int = 1,
    secure: bool = False,
    parameters: dict[str, Any] | None = None,
    pairs: Iterable[Pair] | None = None,
    runs: int = 200_000,
    alpha: float = 0.05,
    seed: int = 0,
    finalists: int = 3,
    progress: Progress = untold,
    processes: int = 1,
    without: Collection[str] = (),
) -> Verdict:
    """Attack a mechanism, or a class of your own.

    Where likelihoods are known, the exact ratio joins the attacks, and the most telling transcript is looked for.

    Parameters
    ----------
    cls
        What is built with epsilon, window, bins and a seed, and has `release(counts)`.
    epsilon, window, bins
        The claim, and how many bins the streams have.
    sensitivity
        The most that one person adds to a step.
    secure
        Attack the real noise; otherwise it is seeded, which is faster and can be repeated.
    parameters
        Further parameters of the class. With a `window_sensitivity` among them, streams differ by no more than that
        in all.
    pairs
        The streams, those of `neighbouring_pairs` by default.
    runs, alpha, seed, finalists, progress
        As in `audit`.
    processes
        How many share the runs of a class that knows no replicas; the verdict is the same.
    without
        Names of attacks that are left out; the verdict says so, and holds against the others alone.
    """
    for name in without:
        if name not in (*ATTACKS, EXACT):
            raise InputError(unknown("attack", name, (*ATTACKS, EXACT)))
    given = {"epsilon": epsilon, "window": window, "bins": bins} | (parameters or {})
    if sensitivity != 1:
        given["sensitivity"] = sensitivity
    make = functools.partial(cls, **given)
    subject = MechanismSubject(make, noise_by_seed(secure=secure))
    if pairs is None:
        with theirs("the noise range of the class under audit failed"):
            jumps = _jumps(subject.example, sensitivity * window / epsilon)
        pairs = neighbouring_pairs(window, bins, sensitivity, jumps, given.get("window_sensitivity"))
    tried, seeds = list(pairs), Seeds(seed)
    replayed = can_be_replayed(make, tried[-1].stream)
    attacks = ATTACKS | ({EXACT: exact_likelihood_ratio(make)} if replayed else {})
    with subject.shared_out(processes, tried[-1].stream):
        verdict = audit(
            subject,
            tried,
            epsilon,
            runs=runs,
            alpha=alpha,
            seed=seeds,
            finalists=finalists,
            attacks={name: attack for name, attack in attacks.items() if name not in without},
            progress=progress,
        )
    verdict = dataclasses.replace(verdict, left_out=tuple(without))
    if not replayed:
        return verdict
    with contextlib.suppress(StateError):  # nothing exact can be said
        proof = most_telling_transcript(subject, make, tried, min(runs, REPLAYED), seed=seeds, progress=progress)
        verdict = dataclasses.replace(verdict, proof=proof)
    return verdict


def _jumps(built: Any, look: float) -> tuple[int, ...]:
    """Jumps at which a decision to look hangs in the balance: about the noise of a look, in each bin.

    Where a class does not tell it, the noise of `look` is that of equal parts of epsilon, or of half as much.
    """
    low, high = built.noise_range() if isinstance(built, Mechanism) else (look, 2 * look)
    return tuple(sorted({max(1, round(low)), max(1, round(min(high, 8 * low)))}))
