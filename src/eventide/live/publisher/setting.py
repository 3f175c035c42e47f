"""What a store is made for and what is promised, told from a mechanism, a feed and window queries."""

from __future__ import annotations

import dataclasses

from eventide.live.feeds.base import Feed
from eventide.live.publisher.questions import Questions
from eventide.live.stores.base import Setting
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import unpack
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.noise import recorded_name

_SAID_ELSEWHERE = {"window", "bins", "sensitivity", "replicas"}


def setting_of(mechanism: Mechanism, feed: Feed, people: str, questions: Questions | None = None) -> Setting:
    """The setting, with the mechanism as a saved state describes it; epsilon is for releases and answers together."""
    document = unpack(mechanism.save())
    given = {name: value for name, value in document["parameters"].items() if name not in _SAID_ELSEWHERE}
    return Setting(
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
    return mechanism.nano_epsilon + (questions.budget if questions else 0)
