"""How a publisher begins: which mechanisms it takes, what its store is made for, and what is promised.

A mechanism whose promise would not hold when steps are made durable one by one is refused before anything is charged.
"""

from __future__ import annotations

import dataclasses

from eventide.errors import InputError
from eventide.live.feeds.base import Feed, Promise
from eventide.live.publisher.window_queries import Questions
from eventide.live.stores.base import StoreSetting
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import unpack
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.noise import recorded_name

_SAID_ELSEWHERE = {"window", "bins", "sensitivity", "replicas"}  # in a setting, beside the parameters


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


def setting_of(mechanism: Mechanism, feed: Feed, people: str, questions: Questions | None = None) -> StoreSetting:
    """The setting, with the mechanism as a saved state describes it; epsilon is for releases and answers together."""
    document = unpack(mechanism.save())
    given = {name: value for name, value in document["parameters"].items() if name not in _SAID_ELSEWHERE}
    return StoreSetting(
        people=people,
        mechanism={"name": document["mechanism"], "parameters": given},
        epsilon=_budget(mechanism, questions),
        window=mechanism.window,
        sensitivity=mechanism.sensitivity,
        bins=mechanism.bins,
        steps=feed.describe(),
        noise=recorded_name(mechanism.source),
        queries=questions.described() if questions else None,
    )


def guarantee_of(mechanism: Mechanism, feed: Feed, questions: Questions | None, *, kept: bool) -> Guarantee:
    """What is promised about everything that is published; `kept` where a store keeps the ledger after the run."""
    promise = feed.promise()
    assumptions = promise.assumptions
    if promise.most is None:
        assumptions = (*mechanism.assumptions(), *assumptions)
    if not kept:
        assumptions = (*assumptions, "for this run only, since no store keeps its ledger")
    if questions is not None:
        assumptions = (questions.assumption(mechanism.window), *assumptions)
    epsilon = _budget(mechanism, questions) / NANO
    return dataclasses.replace(mechanism.guarantee, epsilon=epsilon, unit=promise.unit, assumptions=assumptions)


def _budget(mechanism: Mechanism, questions: Questions | None) -> int:
    return mechanism.total + (questions.budget if questions else 0)
