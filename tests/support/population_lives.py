"""Lives of a service whose streams are about the same people, and what their windows held: added up on one clock.

Charges are read from every store that there ever was, by the moment at which their step begins, and know nothing of
what the service computes.
"""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from fractions import Fraction

import numpy as np
from running_service import MINUTE, configuration, stream

from eventide.events.clock import ManualClock
from eventide.events.timeline import Timeline
from eventide.live.stores.open_store import open_store
from eventide.privacy.amounts import NANO
from eventide.service.live_stream import Circumstances
from eventide.service.service import Service

CHANGED = Circumstances(new_epoch=True)
BOTH = Circumstances(new_epoch=True, after_restore=True)


def people(folder, shares, total=1, **changed):
    """A configuration of streams about the same people: for each its share of epsilon, or all that it differs in."""
    streams = []
    for name, told in shares.items():
        told = told if isinstance(told, dict) else {"epsilon": told}
        settings = {"population": "people"} | changed | told
        settings["epsilon"] = Fraction(str(settings["epsilon"]))
        streams.append(stream(folder, name, **settings))
    return configuration(folder, streams, populations={"people": Fraction(str(total))})


def live(config, until, circumstances=CHANGED, clock=None):
    """Serve a configuration until its streams have come to a step, or each to its own; from when on each measured."""
    service = Service(config, clock or ManualClock(), for_tests=True, circumstances=circumstances)
    try:
        for name, one in service.streams.items():
            end = until[name] if isinstance(until, dict) else until
            nothing = np.zeros(len(one.settings.bins), dtype=np.int64)
            for step in range(one.publisher.next_step, end):
                one.publisher.publish(step, nothing)
        return {name: one.publisher.store.epochs()[-1].measured_from for name, one in service.streams.items()}
    finally:
        service.stop()


def charges(store):
    """What the steps of a store were charged, by the minute at which they begin; no span is open in what is tested."""
    charged = Counter()
    with closing(open_store(store, read_only=True)) as opened:
        steps = opened.epochs()[0].setting.steps
        timeline = Timeline(steps["start"], f"{steps['length']}ms", steps["zone"])
        for entry in opened.entries():
            assert entry.kind == "point"
            charged[timeline.begin(entry.step) // MINUTE] += entry.amount
    return charged


def fullest(folder, window, stores="*.store"):
    """What the fullest window of so many minutes has held, over all stores of a folder together."""
    return fullest_of(sum((charges(path) for path in folder.glob(stores)), Counter()), window)


def fullest_of(charged, window):
    """The same of charges by the minute."""
    return max((sum(charged[minute + k] for k in range(window)) for minute in charged), default=0) / NANO
