"""The service over HTTP in two worlds: requests come minute by minute, and readers ask for everything they may."""

from __future__ import annotations

from fractions import Fraction

from running_service import configuration, running, stream, wait_until
from worlds import BINS, MINUTE, START, STEPS, iso

from eventide.windows.workload import Query

FORMS = [f"{what}?format={form}" for what in ("releases", "answers") for form in ("csv", "arrow")]
WRONG = ["/v1/streams/nowhere", "/v1/streams/city/releases?first=x", "/nothing"]


def serve(world, setup, store, *, epsilon=1, until=STEPS, **told):
    """A life of the service, from the minute at which its store stands until another."""
    settings = stream(
        world.folder,
        store=store,
        start=iso(0),
        epsilon=Fraction(epsilon),
        window=3,
        late="1min",
        max_per_step=setup.most,
        mechanism=setup.mechanism,
        parameters=dict(setup.parameters),
        bins=BINS,
        **({"queries": (Query(2, 1), Query(4, 4)), "queries_epsilon": Fraction(1, 2)} if setup.queries else {}),
    )
    with running(configuration(world.folder, [settings]), for_tests=False, clock=world.clock, **told) as up:
        begin = up.service.streams["city"].board.last + 1
        for minute in range(begin, until + 1):
            world.clock.set(START + minute * MINUTE + MINUTE // 2)
            hand_in(world, up, minute)
            released(up, minute - 2)
        world.clock.set(START + (until + 1) * MINUTE)
        released(up, until - 1)
        read(world, up)


def released(up, step):
    """Wait until a step is out, which the clock says it must be."""
    wait_until(lambda: up.service.streams["city"].board.last >= step)


def hand_in(world, up, minute):
    """The events that arrive in a minute: that person's first, then those of all others in one batch."""
    now = [one for one in world.events if one[0] == minute]
    for one in now:
        if one in world.own:
            answer = up.post([as_object(one[1])])
            world.show("own reply", answer.text)
    batch = [as_object(line) for at, line in now if (at, line) not in world.own]
    answer = up.post(batch, key=f"minute {minute}")
    world.show("replies to others", f"{answer.status_code} {answer.text}")


def as_object(line):
    parts = line.split(",")
    return dict(zip(("time", "user", "bin"), parts, strict=True)) if len(parts) == 3 else line


def read(world, up):
    """Everything that a reader may ask for, and what operators see."""
    reader = up.client("read")
    described = reader.get("/openapi.json").json()["paths"].items()
    paths = [path.replace("{name}", "city") for path, kinds in described if "get" in kinds]
    asked = [path for path in paths if not path.endswith("/stream") and "/operations" not in path]
    for path in [*asked, *(f"/v1/streams/city/{form}" for form in FORMS), *WRONG]:
        answer = reader.get(path)
        world.show(f"GET {path}", f"{answer.status_code} {sorted(answer.headers.items())}\n")
        world.show(f"GET {path}", answer.content)
    last = up.service.streams["city"].board.last
    with reader.stream("GET", "/v1/streams/city/stream") as answer:
        for line in answer.iter_lines():
            world.show("server-sent events", line)
            if line == f"id: {last}":
                break
    for path in ("/v1/streams/city/operations", "/metrics"):
        world.show(f"operators: GET {path}", up.client("operate").get(path).text)
