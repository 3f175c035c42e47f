"""The service over HTTP in two worlds: requests come minute by minute, and readers ask for everything they may."""

from __future__ import annotations

import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from unittest import mock

from running_service import ALL_REFUSED, PATIENCE, configuration, running, stream, wait_until
from worlds import BINS, MINUTE, START, STEPS, iso

from eventide.events.clock import SystemClock
from eventide.live.stores.database_store import DatabaseStore
from eventide.windows.workload import Query

HOUR = 60 * MINUTE
PATHS = []
FORMS = [f"{what}?format={form}" for what in ("releases", "answers") for form in ("csv", "arrow")]
LONG = "releases?format=csv&layout=long"  # as the dashboard saves what it shows
WRONG = ["/v1/streams/nowhere", "/v1/streams/city/releases?first=x", "/nothing"]


def serve(world, setup, store, *, epsilon=1, until=STEPS, busy=None, jump=None, account=None, **told):
    """A life of the service, from the minute that the clock shows until another.

    In the minute `busy` everything of that minute and the one before comes at once, just in time, while the disk is
    slow. In the minute `jump` the machine's clock is an hour ahead for a moment, in which only that person sends.
    """
    settings = stream(
        world.folder,
        store=store,
        start=iso(0),
        epsilon=Fraction(epsilon),
        window=6 if setup.cap else 3,
        cap=setup.cap,
        late="1min",
        max_per_step=setup.most,
        statistic=setup.statistic,
        between=setup.between,
        mechanism=setup.mechanism,
        parameters=dict(setup.parameters),
        bins=BINS,
        population="walkers",
        **({"queries": (Query(2, 1), Query(4, 4)), "queries_epsilon": Fraction(1, 2)} if setup.queries else {}),
    )
    shared = {} if account is None else {"accounts": {"walkers": account}, "populations": {}}
    config, disk, machine = configuration(world.folder, [settings], **shared), Disk(world), Machine(world)
    clock = world.clock if jump is None else SystemClock(machine.wall, machine.steady)
    config.access.tokens.unlink(missing_ok=True)  # of a life before
    with disk.keeping(), running(config, for_tests=False, clock=clock, **told) as up:
        for minute in range((world.clock.now() - START) // MINUTE, until + 1):
            late = MINUTE - 10_000 if minute == busy else MINUTE // 2
            if not released(world, up, START + minute * MINUTE + late, minute - 2):
                break
            if minute == busy:
                hand_in_at_once(world, up, disk, [minute - 1, minute])
            elif busy is None or minute != busy - 1:
                machine.jump = HOUR if minute == jump else 0
                hand_in_own(world, up, [minute])
                machine.jump = 0
                hand_in_of_others(world, up, [minute])
        else:
            released(world, up, START + (until + 1) * MINUTE, until - 1)
        read(world, up)


def released(world, up, now, step):
    """Set the clock, and wait until a step is out that must be out by then; False if the stream fails."""
    world.clock.set(now)
    stream = up.service.streams["city"]
    wait_until(lambda: stream.notices.last >= step or stream.failed)
    return not stream.failed


def hand_in_own(world, up, minutes):
    """The events of that person that arrive in some minutes, each by itself; the same again counts as a repetition."""
    for _, line in own_of(world, minutes):
        answer = up.post([as_object(line)], key=f"own-{zlib.crc32(line.encode())}")
        world.show("own reply", answer.text)


def own_of(world, minutes):
    return [one for one in world.own if one[0] in minutes]


def hand_in_of_others(world, up, minutes):
    """Those of all others, in one batch."""
    now = [one for one in world.events if one[0] in minutes and one not in world.own]
    answer = up.post([as_object(line) for _, line in now], key=f"minute-{minutes[-1]}")
    assert answer.status_code in (200, ALL_REFUSED), answer.text
    world.show("replies to others", f"{answer.status_code} {answer.text}")


class Machine:
    """The two clocks of a machine, of which one can be wrong."""

    def __init__(self, world):
        world.clock.set(START)
        self.clock, self.jump = world.clock, 0

    def wall(self):
        return (self.clock.now() + self.jump) * 1000

    def steady(self):
        return self.clock.now() * 1000


class Disk:
    """A disk that can be slow: keeping a batch then takes 30 ms on the clock, and waits until it is told to go on."""

    def __init__(self, world):
        self.clock, self.slow = world.clock, False
        self.inside, self.go_on = threading.Event(), threading.Event()

    def keeping(self):
        keep = DatabaseStore.keep

        def kept(*held):
            if self.slow:
                self.inside.set()
                assert self.go_on.wait(PATIENCE)
                self.clock.set(self.clock.now() + 30_000)
            return keep(*held)

        return mock.patch.object(DatabaseStore, "keep", kept)


def hand_in_at_once(world, up, disk, minutes):
    """Hand in while the disk is slow; all batches are there before it takes the first."""
    feed, disk.slow = up.service.streams["city"].feed, True
    with ThreadPoolExecutor() as senders:
        if own := own_of(world, minutes):
            senders.submit(up.post, [as_object(line) for _, line in own], key="own")  # by which nothing is kept too
            wait_until(disk.inside.is_set)
        sent = senders.submit(hand_in_of_others, world, up, minutes)
        wait_until(lambda: disk.inside.is_set() and feed.waiting == bool(own))
        disk.go_on.set()
        sent.result()
    disk.slow = False


def as_object(line):
    parts = line.split(",")
    fields = ("time", "user", "bin", "fare")[: len(parts)]
    made = dict(zip(fields, parts, strict=True)) if len(parts) in (3, 4) else line
    if isinstance(made, dict) and made.get("fare", "").isdecimal():
        made["fare"] = int(made["fare"])
    return made


def paths(reader):
    """All that a reader can ask for, but for the stream that never ends; the description is made once, it is slow."""
    if not PATHS:
        described = reader.get("/openapi.json").json()["paths"].items()
        found = [path.replace("{name}", "city") for path, kinds in described if "get" in kinds]
        PATHS.extend(path for path in found if not path.endswith(("/stream", "/operations")))
    return PATHS


def read(world, up):
    """Everything that a reader may ask for, and what operators see."""
    reader = up.client("read")
    asked = [*paths(reader), *(f"/v1/streams/city/{form}" for form in (*FORMS, LONG)), "/", *WRONG]
    assert "/v1/streams/city/guarantee.html" in asked
    for path in asked:
        answer = reader.get(path)
        world.show(f"GET {path}", f"{answer.status_code} {sorted(answer.headers.items())}\n")
        world.show(f"GET {path}", answer.content)
    last = up.service.streams["city"].notices.last
    with reader.stream("GET", "/v1/streams/city/stream") as answer:
        for line in answer.iter_lines():
            world.show("server-sent events", line)
            if line == f"id: {last}" or last < 0:
                break
    for path in ("/v1/streams/city/operations", "/metrics"):
        world.show(f"operators: GET {path}", up.client("operate").get(path).text)
