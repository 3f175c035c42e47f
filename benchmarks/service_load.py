"""How fast the service takes events over HTTP, and that it neither loses nor doubles any.

A client in a process of its own posts batches of events with users, while readers follow the stream; the service
publishes without noise into a store for tests, so that releases must add up to what was acknowledged. Prints events a
second (target 50,000), the median and p99 of the time to an acknowledgement, and what the readers saw.

    python benchmarks/service_load.py [--events 2000000] [--batch 5000] [--senders 2] [--readers 2]
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import tempfile
import threading
import time
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from eventide.live.stores.open_store import open_store
from eventide.privacy.noise import Zero
from eventide.releases.lines import read_line
from eventide.service.config.settings import Access, Config, Limits, Server, StreamConfig
from eventide.service.http.tokens import add_token

BINS = 1_000
TARGET = 50_000
NOW = b"@now@"
PATH = "/v1/streams/load"


def configuration(folder: Path) -> Config:
    load = StreamConfig(
        name="load",
        population="load",
        epsilon=Fraction(1),
        window=60,
        step="1s",
        start=datetime.now(UTC).replace(microsecond=0).isoformat(),
        late="2s",
        bins=tuple(f"bin {number}" for number in range(BINS)),
        user="user",
        mechanism="uniform",
        parameters={"noise": Zero()},
        store=folder / "load.store",
    )
    limits = Limits(requests_per_second=10_000)
    return Config(Server(port=0), Access(folder / "tokens"), limits, {"load": load.epsilon}, (load,))


def serve_until_killed(folder: Path, config: Config, address: Any) -> None:
    from eventide.service.server import serve
    from eventide.service.service import Service

    serve(Service(config, for_tests=True), address.put)


def bodies(events: int, batch: int, sender: int) -> list[bytes]:
    """Batches whose events are each somebody else's; the time is put in when they are sent."""
    places = np.random.default_rng(sender).integers(0, BINS, events)
    line = '{"time":"@now@","user":"%d-%d","bin":"bin %d"}'
    made = [line % (sender, number, place) for number, place in enumerate(places.tolist())]
    return [("[" + ",".join(made[first : first + batch]) + "]").encode() for first in range(0, events, batch)]


def send(host: str, token: str, events: int, batch: int, sender: int, start: Any, results: Any) -> None:
    made = bodies(events, batch, sender)
    connection = http.client.HTTPConnection(host)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    accepted, seconds = 0, []
    start.wait()
    for number, body in enumerate(made):
        now = datetime.now(UTC).isoformat(timespec="milliseconds").encode()
        while True:
            begin = time.perf_counter()
            keyed = headers | {"Idempotency-Key": f"{sender}/{number}"}
            connection.request("POST", f"{PATH}/events", body.replace(NOW, now), keyed)
            answer = connection.getresponse()
            document = json.loads(answer.read())
            if answer.status == 200:
                break
            time.sleep(0.05)
        seconds.append(time.perf_counter() - begin)
        accepted += document["accepted"]
    results.put((accepted, seconds))


def follow(host: str, token: str, seen: list[int]) -> None:
    """Note the steps that come in, until the service is gone."""
    connection = http.client.HTTPConnection(host)
    connection.request("GET", f"{PATH}/stream", headers={"Authorization": f"Bearer {token}"})
    answer = connection.getresponse()
    try:
        while line := answer.readline():
            if line.startswith(b"id: "):
                seen.append(int(line[4:]))
    except (OSError, http.client.HTTPException):
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=2_000_000)
    parser.add_argument("--batch", type=int, default=5_000)
    parser.add_argument("--senders", type=int, default=2)
    parser.add_argument("--readers", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run(Path(folder), asked)


def run(folder: Path, asked: argparse.Namespace) -> None:
    process = multiprocessing.get_context("spawn")
    config = configuration(folder)
    ingest, read = (add_token(config.access.tokens, role, role) for role in ("ingest", "read"))
    address, results, start = process.Queue(), process.Queue(), process.Event()
    server = process.Process(target=serve_until_killed, args=(folder, config, address))
    server.start()
    host = address.get(timeout=60).removeprefix("http://").rstrip("/")
    share = asked.events // asked.senders
    arguments = [(host, ingest, share, asked.batch, sender, start, results) for sender in range(asked.senders)]
    senders = [process.Process(target=send, args=each) for each in arguments]
    seen: list[list[int]] = [[] for _ in range(asked.readers)]
    readers = [threading.Thread(target=follow, args=(host, read, each), daemon=True) for each in seen]
    for sender in senders:
        sender.start()
    for reader in readers:
        reader.start()
    time.sleep(5 + share / 500_000)  # until the batches are made
    begin = time.perf_counter()
    start.set()
    outcomes = [results.get() for _ in senders]
    elapsed = time.perf_counter() - begin
    time.sleep(6)  # until the last step is sealed and released
    server.kill()
    server.join()
    for reader in readers:
        reader.join()
    report(folder, outcomes, elapsed, seen)


def report(folder: Path, outcomes: list[tuple[int, list[float]]], elapsed: float, seen: list[list[int]]) -> None:
    acknowledged = sum(accepted for accepted, _ in outcomes)
    seconds = np.concatenate([each for _, each in outcomes])
    store = open_store(folder / "load.store", read_only=True)
    released = sum(int(read_line(line).values.sum()) for _, line in store.releases())
    last = store.next_step() - 1
    store.close()
    rate = acknowledged / elapsed
    print(f"{acknowledged:,} events acknowledged in {elapsed:.1f} s: {rate:,.0f} a second (target {TARGET:,})")
    print(f"acknowledgement after {np.median(seconds) * 1e3:.0f} ms, p99 {np.percentile(seconds, 99) * 1e3:.0f} ms")
    print(f"released in {last + 1} steps: {released:,} events, {released - acknowledged:+,} against acknowledged")
    whole = all(steps == list(range(last + 1)) for steps in seen)
    print(f"{len(seen)} readers saw {'every step once, in order' if whole else 'GAPS'}")


if __name__ == "__main__":
    main()
