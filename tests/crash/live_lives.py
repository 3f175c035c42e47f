"""A publisher that lives again and again: each life is a fork of this process, so that a death costs milliseconds.

Run as a program: each line of standard input is a JSON object that describes a life, each line of standard output says
how it ended. Not a test itself.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path

from file_clock import FileClock

import eventide as ev
from eventide.events.caps import parse_cap
from eventide.events.files import lines as event_lines
from eventide.live import faults
from eventide.live.publisher import publisher, window_queries
from eventide.live.sources import log_file
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka
from eventide.live.stores.open_store import open_store

BINS = ["north", "south", "harbour"]
QUERIES = (ev.Query(4, 2), ev.Query(9, 3), ev.Query(12, 12))
LONGEST_LIFE = 600.0  # seconds; nothing here should hang, but a broker may take its time over a rebalance


def live(life):
    """Publish until the feed ends or death comes."""
    faults._point, _, count = life["fault"].partition(":")
    faults._passings_left = int(count or 1)
    publisher.SNAPSHOT_EVERY = window_queries.SNAPSHOT_EVERY = 8  # so that each life meets some
    publisher.TOGETHER = life.get("together", 3)  # so that deaths come inside of groups and between them
    event_lines.BLOCK = log_file.BLOCK = 1500  # so that steps spread over blocks, and positions matter
    os.dup2(os.open(life["seen"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 1)
    options = life["feed"] | ({"clock": FileClock(Path(life["clock"]))} if life["clock"] else {})
    if life["source"] == "-":
        os.dup2(life["pipe"], 0)
    zero, cap = life["noise"] == "zero", life["feed"].get("cap")
    bound = parse_cap(cap, life["feed"]["step"]).window_sensitivity(life["window"], life["most"]) if cap else None
    mechanism = ev.mechanism(
        life["mechanism"],
        epsilon=1 if life["queries_of"] is None else 0.6,
        window=life["window"],
        bins=life.get("bins", BINS),
        levels=life.get("levels"),
        filter="truncate" if life.get("levels") else None,
        sensitivity=life["most"],
        window_sensitivity=bound,
        noise=ev.noise.Zero() if zero else "secure",
        **life.get("parameters", {}),
    )
    store = open_store(life["store"], for_tests=zero)
    sinks = [*life["sinks"], "-"]
    questions = None if life["queries_of"] is None else ev.Questions(QUERIES, 0.4, life["queries_of"])
    with ev.Publisher(
        source_of(life["source"]),
        mechanism,
        store,
        sinks,
        questions=questions,
        account=life.get("account"),
        new_epoch=life["new_epoch"],
        keep=life.get("keep", 0),
        **options,
    ) as publishing:
        publishing.run(until=life["until"])


def source_of(address):
    """Brokers are given time: here they are slow, and never away."""
    broker = {"nats": JetStream, "kafka": Kafka}.get(address.partition("://")[0])
    return address if broker is None else broker(address, patience=LONGEST_LIFE)


def end_of(child, kill_after):
    """Wait for the end of a life, or bring it about; its exit code, or the signal as a negative number."""
    begin = time.monotonic()
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        lived = time.monotonic() - begin
        if lived > LONGEST_LIFE:
            os.kill(child, signal.SIGKILL)
            raise TimeoutError("a life does not end")
        if kill_after is not None and lived >= kill_after:
            os.kill(child, signal.SIGKILL)
            kill_after = None
        time.sleep(0.0005)


def warm_up():
    """Load what every life needs, once."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "events.csv")
        path.write_text("timestamp,user,bin\n2024-01-01T00:00:00Z,somebody,north\n")
        mechanism = ev.Uniform(epsilon=1, window=1, bins=BINS)
        questions = ev.Questions(QUERIES, 1)
        with ev.Publisher(path, mechanism, step="1h", user="user", questions=questions) as publishing:
            publishing.run()
        capped = ev.Uniform(epsilon=1, window=9, bins=BINS, window_sensitivity=4)
        with ev.Publisher(path, capped, step="1h", user="user", cap="1/9") as publishing:
            publishing.run()


def main():
    warm_up()
    print("ready", flush=True)
    for line in sys.stdin:
        life = json.loads(line)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                live(life)
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        print(end_of(child, life["kill_after"]), flush=True)


if __name__ == "__main__":
    main()
