"""What a store is made for, told from a mechanism and a feed. Imports `mechanisms` and `privacy`."""

from __future__ import annotations

from eventide.live.feed import Feed
from eventide.live.store import Setting
from eventide.mechanisms.base import Mechanism
from eventide.privacy.archive import unpack

_SAID_ELSEWHERE = {"window", "bins", "sensitivity", "replicas"}


def setting_of(mechanism: Mechanism, feed: Feed, people: str) -> Setting:
    """The setting, with the mechanism as a saved state describes it."""
    document = unpack(mechanism.save())
    given = {name: value for name, value in document["parameters"].items() if name not in _SAID_ELSEWHERE}
    return Setting(
        people=people,
        mechanism={"name": document["mechanism"], "parameters": given},
        epsilon=mechanism.total,
        window=mechanism.window,
        sensitivity=mechanism.sensitivity,
        bins=mechanism.bins,
        steps=feed.describe(),
        noise=mechanism.source.name,
    )
