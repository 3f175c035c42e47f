"""What crash tests of the publisher share: lives that can be ended, and what must hold after any number of deaths."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

from live_stores import make_twin

from eventide.live.sinks.appending_file import AppendingTable
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.releases.level_values import statistics_of

LIVES = Path(__file__).parents[1] / "crash" / "live_lives.py"
BINS = ("north", "south", "harbour")
KILLED = -9
PRODUCED, PATIENCE = 6, 15  # seconds: how long events come, and how late one may be read on a slow machine
FOLLOWED = 10 * (PRODUCED + PATIENCE)  # steps of a file that is followed


@contextlib.contextmanager
def lives_of_a_process():
    """A function that lives once and gives the exit code."""
    pipe = os.pipe()
    support = os.pathsep.join([str(Path(__file__).parent), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    process = subprocess.Popen(
        [sys.executable, LIVES],
        env=os.environ | {"PYTHONPATH": support},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        pass_fds=[pipe[0]],
    )

    def live(life, fault="none", kill_after=None, **changed):
        described = life | changed | {"fault": fault, "kill_after": kill_after, "pipe": pipe[0]}
        process.stdin.write(json.dumps(described) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    assert process.stdout.readline() == "ready\n"
    live.pipe = pipe
    yield live
    process.communicate()
    for end in pipe:
        os.close(end)


def new_life(
    folder,
    source,
    *,
    mechanism="ba",
    parameters=None,
    noise="zero",
    most=2,
    window=7,
    queries_of=None,
    clock=None,
    **feed,
):
    """What a life needs; its store is made, and copied for a twin."""
    folder.mkdir(exist_ok=True)
    open_store(folder / "store.db", for_tests=noise == "zero").close()
    make_twin(folder / "store.db", folder / "twin.db")
    life = {
        "store": str(folder / "store.db"),
        "source": str(source),
        "mechanism": mechanism,
        "parameters": parameters or {},
        "noise": noise,
        "most": most,
        "window": window,
        "queries_of": queries_of,
        "clock": clock,
        "sinks": [str(folder / "out.jsonl"), str(folder / "out.csv")],
        "seen": str(folder / "seen.jsonl"),
        "new_epoch": False,
        "until": None,
        "feed": feed,
    }
    twin = life | {"store": str(folder / "twin.db"), "sinks": [], "seen": str(folder / "twin.jsonl")}
    return life, twin


def stored(path):
    store = open_store(path, read_only=True)
    store.verify()
    releases, entries, epochs, kept = list(store.releases()), list(store.entries()), store.epochs(), store.kept()
    store.close()
    return releases, entries, epochs, kept


def check(life, steps, folder):
    """What must hold after any number of deaths."""
    releases, entries, epochs, kept = stored(life["store"])
    assert [step for step, _ in releases] == list(range(steps))
    assert all(step >= steps for step, _ in kept)
    assert verify(entries, epochs, steps).problems == []
    jsonl, table = map(Path, life["sinks"])
    assert jsonl.read_bytes() == b"".join(release + b"\n" for _, release in releases)
    assert table.read_bytes() == as_table(releases, folder / "expected.csv")
    seen = Path(life["seen"]).read_bytes().splitlines()
    expected = dict(releases)
    copies = Counter(json.loads(line)["step"] for line in seen)
    assert all(line == expected[json.loads(line)["step"]] for line in seen)  # no step has two noises
    assert set(copies) == set(expected)  # at least once
    return releases, entries


def as_table(releases, path):
    windows = any(b'"window_values": ' in release for _, release in releases)
    table = AppendingTable(path, BINS, None, starts=True, statistics=statistics_of(windows=windows))
    table.open()
    for step, release in releases:
        table.send(step, release)
    table.close()
    return path.read_bytes()


def check_like_twin(lives, life, twin, folder, steps):
    """The same, and it has released, charged and kept (of a cap) what the twin has, which nobody disturbs."""
    releases, entries = check(life, steps, folder)
    assert lives(twin) == 0
    assert stored(twin["store"])[:2] == (releases, entries)
    assert stored(twin["store"])[3] == stored(life["store"])[3]
    return releases


def in_postgres(life, twin, server):
    """The same lives with their stores in a database; the twin gets the same key."""
    import psycopg

    for name in ("life", "twin"):
        open_store(f"{server.address}#{name}", for_tests=life["noise"] == "zero").close()
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("DELETE FROM twin.store")
        connection.execute("INSERT INTO twin.store SELECT * FROM life.store")
    return life | {"store": f"{server.address}#life"}, twin | {"store": f"{server.address}#twin"}


def let_go(server):
    """Wait until the server has noticed that a publisher died: until then it holds the place of the writer for it."""
    import psycopg

    with psycopg.connect(server.address) as connection:
        while connection.execute("SELECT 1 FROM pg_locks WHERE locktype = 'advisory'").fetchone():
            time.sleep(0.01)


def followed(begin):
    """A feed of a file to which events are appended from `begin` on.

    The steps before are empty. They are released while events come, so that deaths meet releases; and whatever dies,
    the last life still reads every event in time.
    """
    moment = datetime.fromtimestamp(begin, UTC)
    start, until = moment - timedelta(seconds=PATIENCE), moment + timedelta(seconds=PRODUCED)
    when = {"start": start.isoformat(), "until": until.isoformat()}
    return {"step": "100ms", "late": f"{PATIENCE}s", "follow": True, "user": "user", **when}


class Producer(threading.Thread):
    """Hands over an event now and then, each with its own time, until a moment."""

    def __init__(self, until, hand_over):
        super().__init__()
        self._until, self._hand_over, self._chance = until, hand_over, random.Random(4)

    def run(self):
        while (now := time.time()) < self._until:
            at = datetime.fromtimestamp(now, UTC).isoformat()
            user, place = f"user {self._chance.randrange(20)}", self._chance.choice(BINS)
            self._hand_over({"timestamp": at, "user": user, "bin": place})
            time.sleep(0.01)
