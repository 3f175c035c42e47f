"""What a store is made for, told from a mechanism, a feed and window queries. Imports `mechanisms` and `privacy`."""

from __future__ import annotations

from eventide.live.feed import Feed
from eventide.live.questions import Questions
from eventide.live.store import Setting
from eventide.mechanisms.base import Mechanism
from eventide.privacy.archive import unpack

_SAID_ELSEWHERE = {"window", "bins", "sensitivity", "replicas"}


def setting_of(mechanism: Mechanism, feed: Feed, people: str, questions: Questions | None = None) -> Setting:
    """The setting, with the mechanism as a saved state describes it; epsilon is for releases and answers together."""
    document = unpack(mechanism.save())
    given = {name: value for name, value in document["parameters"].items() if name not in _SAID_ELSEWHERE}
    return Setting(
        people=people,
        mechanism={"name": document["mechanism"], "parameters": given},
        epsilon=mechanism.total + (questions.budget if questions else 0),
        window=mechanism.window,
        sensitivity=mechanism.sensitivity,
        bins=mechanism.bins,
        steps=feed.describe(),
        noise=mechanism.source.name,
        queries=questions.described() if questions else None,
    )
