"""`eventide demo --serve`: a synthetic city that is published live, in the browser, on a clock that runs fast.

Everything is as in earnest (service, store, ledger, noise) but for the people, who are random numbers: so true counts
may be shown. The store is in a folder that goes away at the end.
"""

from __future__ import annotations

import secrets
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from eventide.errors import StateError
from eventide.events.clock import ManualClock
from eventide.service.config.settings import Access, Config, Limits, Server, StreamConfig
from eventide.service.http.tokens import add_token
from eventide.service.server import serve
from eventide.service.service import Service
from eventide.streams.city import City, build_city

START = "2026-06-01T00:00:00Z"
STEP = "10min"
SECONDS_A_STEP = 1.0
DAYS_BEFORE = 2  # published at once, so that there is something to see


def serve_city(epsilon: float, window: int, port: int, told: Callable[[str], None]) -> None:
    """Publish the city until interrupted; `told` gets the address of its page, with a token behind the #."""
    town = build_city(steps_per_day=window)
    with tempfile.TemporaryDirectory(prefix="eventide-demo-") as folder:
        config = _config(Path(folder), town, epsilon, window, port)
        clock = ManualClock()
        service = Service(config, clock, truth=lambda first: _truth(service, town, first))
        clock.set(service.streams["city"].feed.timeline.start)
        token = add_token(config.access.tokens, "operate", "demo")
        threading.Thread(target=_live, args=(service, town, clock), daemon=True).start()
        serve(service, lambda address: told(f"{address}#token={token}"))


def _config(folder: Path, town: City, epsilon: float, window: int, port: int) -> Config:
    city = StreamConfig(
        name="city",
        population="citizens",
        epsilon=epsilon,
        window=window,
        step=STEP,
        start=START,
        bins=town.bins,
        user="user",
        mechanism="ba",  # nothing to compile: the city is there at once
        store=folder / "city.store",
    )
    return Config(
        server=Server(port=port),
        access=Access(folder / "tokens"),
        limits=Limits(),
        populations={"citizens": city.epsilon},
        streams=(city,),
    )


def _live(service: Service, town: City, clock: ManualClock) -> None:
    """Let people be where they are, step after step, and time pass."""
    stream = service.streams["city"]
    timeline, step = stream.feed.timeline, 0
    stream.feed.begun.wait()
    while not stream.closing:
        counts = town.counts[step % len(town.counts)]
        places = np.repeat(np.array(town.bins), counts)
        rows = {
            "time": pa.array(np.full(len(places), timeline.begin(step)), pa.timestamp("us", "UTC")),
            "user": pa.array(np.arange(len(places))),
            "bin": pa.array(places),
        }
        try:
            with stream.feed.arrivals.stamp() as arrival:
                stream.feed.submit(stream.reader.read(pa.table(rows)), arrival, secrets.token_hex(8)).result()
        except StateError:
            return  # the service ends
        clock.set(timeline.end(step))
        step += 1
        if step > DAYS_BEFORE * town.steps_per_day:
            time.sleep(SECONDS_A_STEP)


def _truth(service: Service, town: City, first: int) -> list[tuple[int, list[int]]]:
    steps = range(first, service.streams["city"].notices.last + 1)
    return [(step, town.counts[step % len(town.counts)].tolist()) for step in steps]
