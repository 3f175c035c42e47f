"""A service that lives again and again, to be ended by kill -9: each life is a fork of this process.

Each line of standard input begins a life: a folder, the point it dies at or "none", and a cap or "none", or the store
of a pan-private stream. When the service listens, its process and address are printed, and "ended" when it has ended.
It publishes without noise, on a clock that stands in a file, and without a cap also without users, so that an event
counted twice shows. If there is an account in the folder, it draws from that, with users. Not a test itself.
"""

from __future__ import annotations

import os
import sys
from fractions import Fraction
from pathlib import Path

from file_clock import FileClock
from running_service import EXACT, configuration, stream

from eventide.live import faults
from eventide.service.server import serve
from eventide.service.service import Service
from eventide.windows.workload import Query


def noisy(folder, store):
    """A pan-private stream, of which nothing but noisy cells holds events."""
    pan_private = {"mechanism": "bd", "epsilon": 1000, "window": 4, "parameters": {"pan_private": "announced"} | EXACT}
    bins = tuple(map(str, range(7)))
    return configuration(folder, [stream(folder, bins=bins, user=None, store=store, **pan_private)])


def plain(folder, cap):
    """A stream with window queries, under a cap or without users."""
    asked = {"queries": (Query(2, 1), Query(4, 4)), "queries_epsilon": Fraction(1, 2), "queries_of": "total"}
    account = folder / "people.account"
    shared = {"accounts": {"city": account}, "populations": {}} if account.exists() else {}
    asked |= {"cap": cap, "window": 9} if cap != "none" else {} if shared else {"user": None}
    return configuration(folder, [stream(folder, bins=tuple(map(str, range(7))), late="1h", **asked)], **shared)


def live(folder, fault, cap):
    faults._point, _, count = fault.partition(":")
    faults._passings_left = int(count or 1)
    is_store = cap.startswith(("/", "postgresql:"))
    config = noisy(folder, cap if "#" in cap else Path(cap)) if is_store else plain(folder, cap)
    service = Service(config, FileClock(folder / "clock"), for_tests=True)
    serve(service, lambda address: print(os.getpid(), address, flush=True))


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if not child:
            folder, fault, cap = line.split()
            live(Path(folder), fault, cap)
            os._exit(0)
        os.waitpid(child, 0)
        print("ended", flush=True)
