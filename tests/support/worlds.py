"""Ways to run the whole system in two worlds: made-up events of a few people, and of one whose events differ.

Steps are minutes of one morning, eight of them; that person does something in the steps 3 to 5. A `Setup` says which
parts are put together; `runs` turns it into what `check_two_worlds` calls.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import random
import shutil
import sqlite3
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner
from command_words import with_last

import eventide as ev
from eventide.audit.two_worlds import Crash, OnlyA, OnlyB, Unseen
from eventide.cli import main
from eventide.errors import StoreError
from eventide.events.bins import with_spares
from eventide.events.caps import parse_cap
from eventide.events.clock import ManualClock
from eventide.events.reader import Columns, EventReader
from eventide.events.statistic_names import parse_statistic
from eventide.events.timeline import Timeline
from eventide.live.accounts.open_account import create_account
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.open_feed import open_feed
from eventide.live.publisher import publisher
from eventide.live.publisher.naming import name_bin
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.standard_input import StandardInput
from eventide.live.stores.open_store import open_store
from eventide.live.stores.stored_releases import levels_of

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
STEPS, WINDOW = 8, range(3, 6)
BINS = ("north", "south", "harbour")
LEVELS = {"shore": ["inland", "inland", "sea"]}
HEADER = "timestamp,user,bin"
MINUTE = 60_000_000
START = int(BEGIN.timestamp()) * 1_000_000


def iso(seconds):
    return (BEGIN + timedelta(seconds=seconds)).isoformat()


def event(step, user, place="north", second=20, arrives=None):
    """An event and the minute in which it arrives, its own if not told otherwise."""
    return arrives if arrives is not None else step, f"{iso(60 * step + second)},{user},{place}"


def others(seed=5):
    """Events of nine people, in the order of their arrival; some come a minute late."""
    chance = random.Random(seed)
    made = [
        event(step, f"user {user}", chance.choice(BINS), chance.randrange(60), step + (chance.random() < 0.2))
        for step in range(STEPS)
        for user in range(9)
        if chance.random() < 0.7
    ]
    return sorted(made, key=lambda one: one[0])


PERSONS = {
    "is there": [OnlyA(event(3, "anna")), OnlyA(event(5, "anna", "south"))],
    "comes and goes": [OnlyA(event(3, "anna")), OnlyB(event(4, "anna", "harbour")), OnlyA(event(5, "anna"))],
    "is let in later": [
        *(event(step, "anna", "south") for step in (1, 4, 6, 7)),
        *(OnlyA(event(3, "anna")), OnlyB(event(5, "anna", "harbour"))),
    ],
    "does too much": [OnlyA(event(4, "anna", place, second)) for place in BINS for second in range(7)],
    "repeats it": [OnlyA(event(3, "anna"))] * 3,
    "is in another bin": [OnlyA(event(4, "anna", "nowhere")), OnlyA(event(5, "anna"))],
    "writes nonsense": [OnlyA((3, "nonsense")), OnlyA((4, "2026-13-45,anna,north")), OnlyA((5, ",,,,"))],
    "is early and late": [
        OnlyA(event(-5, "anna", arrives=3)),
        OnlyA(event(STEPS + 5, "anna", arrives=4)),
        OnlyA(event(3, "anna", arrives=7)),
    ],
    "breaks lines": [
        *[OnlyA((3, text)) for text in ('"', "\r", "\0", "\u2028", "{", "[1,2]", "")],
        *[OnlyA((4, f'{iso(260)},"anna,north')), OnlyA((5, f"{iso(320)},an\rna,north"))],
    ],
    "pays another fare": [
        *(OnlyA((3, event(3, "anna")[1] + ",9")), OnlyB((3, event(3, "anna")[1] + ",4"))),
        *(OnlyA((5, event(5, "anna")[1] + ",")), event(5, "anna", "south")),
    ],
    "writes strange values": [
        OnlyA((4, f"{event(4, 'anna')[1]},{fare}")) for fare in ("nan", "1e308", "x", "5e-324", "1" + "0" * 30, "-0")
    ],
    "has no name": [OnlyA(event(3, "")), OnlyA(event(4, "anna"))],
}


def events(person):
    """What `check_two_worlds` takes: pairs of the minute of arrival and a line, in this order."""

    def arrival(one):
        return (one.event if isinstance(one, OnlyA | OnlyB) else one)[0]

    return sorted([*PERSONS[person], *others()], key=arrival)  # that person first, in each minute


def priced(one):
    """The same with a fare, for sums; one that is no event, or has a fare, as it is."""
    if isinstance(one, OnlyA | OnlyB):
        return type(one)(priced(one.event))
    minute, line = one
    return minute, f"{line},{zlib.crc32(line.encode()) % 11}" if line.count(",") == 2 else line


@dataclass(frozen=True)
class Setup:
    """What is put together."""

    source: str = "csv"
    store: str | None = "sqlite"
    mechanism: str = "ba"
    person: str = "is there"
    life: str = "to its end"
    most: int = 2
    queries: bool = False
    cap: str | None = None  # of windows of 6 steps
    parameters: tuple = ()
    levels: bool = False
    statistic: str | tuple = "events"
    account: bool = False
    between: str = ""
    spare: int = 0  # bins that may get names

    @property
    def bins(self):
        return with_spares(BINS, self.spare)

    def __str__(self):
        more = [
            *(["cap " + self.cap] if self.cap else []),
            *(f"{name} {value}" for name, value in self.parameters),
            *(["queries"] if self.queries else []),
            *(["levels"] if self.levels else []),
            *([str(self.statistic)] if self.statistic != "events" else []),
            *(["account"] if self.account else []),
            *([f"{self.spare} spare bins"] if self.spare else []),
        ]
        return ", ".join([self.source, str(self.store), self.mechanism, self.person, self.life, *more])


def check(setup, runs=None):
    """Run it in two worlds; the verdict."""
    runs, unseen = runs or run, UNSEEN_IN.get(setup.life, ())
    most = sum(part.sensitivity(setup.most) for part in statistics(setup))
    told = {"window": WINDOW, "most": most, "unseen": unseen}
    if setup.cap is not None:  # what counts can change until the block is over, and no more in all than the bound
        told |= {"window": range(WINDOW.start, STEPS), "most_in_all": bound(setup)}
    given = events(setup.person)
    given = [priced(one) for one in given] if setup.between else given
    verdict = ev.check_two_worlds(lambda world: runs(world, setup), given, **told)
    assert verdict.steps >= STEPS, "the worlds came to no end"
    return verdict


def run(world, setup, store=None):
    """One world, life after life."""
    store = store or (None if setup.store is None else world.folder / "store.db")
    if store is not None:
        world.show_store(store)
    publish = OTHER_WAYS.get(setup.source, by_library)
    if setup.account:
        create_account(account_in(world), "walkers", 3, "2min")  # which meets three of its steps
        world.show_account(account_in(world))
    for life in LIVES[setup.life]:
        told = dict(life)
        before, dies_at = told.pop("before", lambda store: None), told.pop("dies_at", None)
        alone = dies_at is not None and not told.pop("together", False)  # so that the fifth commit is that of step 4
        before(store)
        of = StoreError if setup.source == "http" else Crash  # its threads would not end by a crash
        told |= {"account": account_in(world)} if setup.account else {}
        with mock.patch.object(publisher, "TOGETHER", 1 if alone else publisher.TOGETHER):
            world.live(lambda told=told: publish(world, setup, store, **told), dies_at, of)
    if setup.account:
        command(world, ["account", "show", account_in(world)])
        for number, place in enumerate((account_in(world), store)):
            command(world, ["guarantee", place, "--out", world.seen / f"page {number}.html"])
    if setup.source == "command" and store is not None:
        read_by_command(world, store)


def account_in(world):
    return world.folder / "people.account"


def back_up(store):
    with contextlib.closing(sqlite3.connect(store)) as opened:
        opened.execute("VACUUM INTO ?", (str(store.with_name("backup.db")),))


def restore(store):
    for suffix in ("-wal", "-shm"):
        store.with_name(store.name + suffix).unlink(missing_ok=True)
    shutil.copy(store.with_name("backup.db"), store)


def name_nowhere(store):
    """Give the bin in which nobody was known to be a name, from a step on at which somebody is there."""
    with contextlib.closing(open_store(store)) as opened:
        name_bin(opened, "nowhere", "4", like="harbour" if levels_of(opened.epochs()[-1].setting) else None)


LIVES = {
    "names a bin": [{"until": 2}, {"before": name_nowhere, "dies_at": "before-commit:2"}, {}],
    "to its end": [{}],
    "dies once": [{"dies_at": "before-commit:5"}, {}],
    "dies before the commit": [{"dies_at": "before-commit:5"}, {"dies_at": "inside-transaction:1"}, {}],
    "dies at emitting": [{"dies_at": "after-commit:5"}, {"dies_at": "half-line:3"}, {"dies_at": "before-emit:2"}, {}],
    "dies inside a group": [
        *({"dies_at": point, "together": True} for point in ("after-draw:3", "inside-group:2", "half-line:4")),
        {},
    ],
    "dies at a snapshot": [{"dies_at": "before-snapshot:3"}, {"dies_at": "after-snapshot:2"}, {}],
    "dies at the account": [
        *({"dies_at": point} for point in ("after-charge:4", "after-charge", "after-commit:2", "after-settle:2")),
        {},
    ],
    "is busy": [{"busy": 4}],
    "has a clock that jumps": [{"jump": 3}],
    "begins an epoch": [{"until": 2}, {"epsilon": 2, "new_epoch": True}],
    "needs an epoch": [
        {"until": 2},
        {"epsilon": 2},
        {"epsilon": 2, "new_epoch": True, "dies_at": "inside-epoch"},
        {"epsilon": 2, "new_epoch": True, "dies_at": "after-draw:2"},
        {"epsilon": 2},
    ],
    "is restored": [
        {"until": 2},
        {"until": 4, "before": back_up},
        {"before": restore},
        {"after_restore": True, "dies_at": "before-commit:3"},
        {},
    ],
}


UNSEEN_IN = {
    "has a clock that jumps": [
        Unseen("log*", r".*the machine's clock.*", "a jump of a moment is told only if somebody sends just then")
    ]
}


def statistics(setup):
    """Those that are published, one by one."""
    statistic = parse_statistic(setup.statistic, setup.between)
    return getattr(statistic, "parts", [statistic])


def bound(setup):
    """How far one person moves all numbers of all statistics in a window, under the cap."""
    cap = parse_cap(setup.cap, "1min")
    return sum(part.window_sensitivity(cap, 6, setup.most) for part in statistics(setup))


def mechanism(setup, epsilon):
    made = {"epsilon": epsilon, "window": 3, "bins": setup.bins, "sensitivity": setup.most} | dict(setup.parameters)
    made |= {"window": 6, "window_sensitivity": bound(setup)} if setup.cap else {}
    made |= {"levels": LEVELS} if setup.levels else {}
    return ev.mechanism(setup.mechanism, **made)


def by_library(world, setup, store, *, epsilon=1, until=None, **told):
    questions = ev.Questions((ev.Query(window=2, step=1), ev.Query(window=4, step=4)), 1) if setup.queries else None
    with contextlib.ExitStack() as ended:
        feed = FEEDS[setup.source](world, setup, ended)
        sinks = [world.seen / "out.jsonl", world.seen / "out.csv"]
        made = mechanism(setup, epsilon)
        with ev.Publisher(feed, made, store, sinks, questions=questions, population="walkers", **told) as live:
            live.run(until=until)
        world.show("guarantee", str(live.guarantee))
        world.show("spent", f"{live.worst_window()} {live.published} {live.fresh_looks}")


def written(world, name, lines):
    """A file among the inputs, as it was if it is there."""
    path = world.folder / name
    if not path.exists():
        path.write_bytes("\n".join([*lines, ""]).encode())
    return path


def feed_of_file(world, path, setup):
    bounds = {"max_per_step": setup.most, "cap": setup.cap, "statistic": setup.statistic}
    return open_feed(path, setup.bins, step="1min", start=iso(0), until=iso(60 * STEPS), user="user", **bounds)


def csv_feed(world, setup, ended):
    return feed_of_file(world, written(world, "events.csv", [HEADER, *(line for _, line in world.events)]), setup)


def jsonl_feed(world, setup, ended):
    return feed_of_file(world, written(world, "events.jsonl", map(as_json, world.events)), setup)


def as_table(rows):
    return pa.table(dict(zip(HEADER.split(","), map(list, zip(*rows, strict=True)), strict=True)))


def three_cells(world):
    return [[*line.split(","), "", ""][:3] for _, line in world.events]


def parquet_feed(world, setup, ended):
    path = world.folder / "events.parquet"
    if not path.exists():
        pq.write_table(as_table(three_cells(world)), path, row_group_size=16)
    return feed_of_file(world, path, setup)


def as_json(one):
    """A line as JSON; one that has not three parts as it is."""
    parts = one[1].split(",")
    return '{{"timestamp": "{}", "user": "{}", "bin": "{}"}}'.format(*parts) if len(parts) == 3 else one[1]


class Minutes(ManualClock):
    """A clock that, whenever somebody waits for it, goes on to the next minute and hands over what arrives in it."""

    def __init__(self, world):
        super().__init__(START)
        self._lines = {}
        for minute, line in world.events:
            self._lines.setdefault(minute, []).append(line)
        self._minute = 0

    def wait(self, seconds):
        self.set(START + self._minute * MINUTE + MINUTE // 2)
        self.hand_over(self._lines.pop(self._minute, []))
        self._minute += 1


def minutes(world, hand_over):
    """The clock of a world, which goes on from life to life."""
    if not isinstance(world.clock, Minutes):
        world.clock = Minutes(world)
    world.clock.hand_over = hand_over
    return world.clock


def timed(source, setup):
    reader = EventReader(setup.bins, Columns(user="user"))
    bounds = {"max_per_step": setup.most, "cap": parse_cap(setup.cap, "1min") if setup.cap else None}
    bounds |= {"statistic": parse_statistic(setup.statistic)}
    return EventFeed(source, Timeline(iso(0), "1min"), reader, late="1min", until=iso(60 * STEPS), **bounds)


def growing_feed(world, setup, ended):
    path = written(world, "growing.csv", [HEADER])

    def append(lines):
        if lines:
            with path.open("ab") as file:
                file.write("\n".join([*lines, ""]).encode())

    return timed(GrowingFile(path, minutes(world, append)), setup)


def rotated_feed(world, setup, ended):
    """A log that is rotated every other minute, and its predecessors compressed; or copied and cut, by its name."""
    path, copies = world.folder / "rotated.jsonl", setup.source == "copied"
    path.touch()

    def append(lines):
        if world.clock.now() // MINUTE % 2:
            rotate(path, copies=copies)
        with path.open("ab") as file:
            file.write("".join(f"{as_json((0, line))}\n" for line in lines).encode())

    return timed(GrowingFile(path, minutes(world, append)), setup)


def rotate(path, *, copies):
    first, second = (path.with_name(f"{path.name}.{number}") for number in (1, 2))
    if first.exists():
        third = second.with_name(f"{path.name}.3.gz")
        if second.with_name(f"{second.name}.gz").exists():
            second.with_name(f"{second.name}.gz").rename(third)
        second.with_name(f"{second.name}.gz").write_bytes(gzip.compress(first.read_bytes(), mtime=0))
        first.unlink()
    if copies:
        shutil.copy(path, first)
        os.truncate(path, 0)
    else:
        path.rename(first)
        path.touch()


def piped_feed(world, setup, ended):
    reading, writing = os.pipe()
    ended.callback(os.close, reading)
    ended.callback(os.close, writing)
    os.write(writing, f"{HEADER}\n".encode())
    clock = minutes(world, lambda lines: os.write(writing, "".join(f"{line}\n" for line in lines).encode()))

    class Piped(StandardInput):
        def poll(self, timeout):
            clock.wait(timeout)
            return super().poll(0)

    return timed(Piped(reading, clock), setup)


FEEDS = {
    "csv": csv_feed,
    "jsonl": jsonl_feed,
    "parquet": parquet_feed,
    "growing": growing_feed,
    "rotated": rotated_feed,
    "copied": rotated_feed,
    "pipe": piped_feed,
}


def by_command(world, setup, store, *, epsilon=1, until=None, **told):
    bins = written(world, "bins.txt", BINS)
    source = written(world, "events.csv", [HEADER, *(line for _, line in world.events)])
    words = ["publish", source, "--epsilon", epsilon, "--window", 3, "--step", "1min", "--start", iso(0)]
    words += ["--until", iso(60 * (until or STEPS)), "--user", "user", "--bin", "bin", "--bins", bins]
    words += ["--max-per-step", setup.most, "--mechanism", setup.mechanism, "--out", world.seen / "out.jsonl"]
    words += ["--statistic", setup.statistic] if setup.statistic != "events" else []
    words += ["--log", "json", "--json", "--population", "walkers"]
    words += ["--store", store] if store is not None else []
    words += ["--spare-bins", setup.spare] if setup.spare else []
    if setup.levels:
        rows = [f"{name},{shore}" for name, shore in zip(BINS, LEVELS["shore"], strict=True)]
        rows += ["(spare 1),sea"] if setup.spare else []
        words += ["--levels", written(world, "levels.csv", ["bin,shore", *rows])]
    words += ["--account", told.pop("account")] if "account" in told else []
    words += [f"--{name.replace('_', '-')}" for name in told]
    command(world, words)


def by_frame(world, setup, store, *, epsilon=1, until=None, **told):
    """A frame in memory in the order of arrival, or a stream that is sorted by time: what an analyst sees of it."""
    rows = three_cells(world)
    in_memory = setup.source == "frame"
    frame = as_table(rows) if in_memory else as_table(sorted(rows)).to_reader(max_chunksize=16)
    with mock.patch("eventide.live.sources.frame_events.ROWS", 16):
        releases = ev.publish(
            frame,
            epsilon=epsilon,
            window=3,
            step="1min",
            start=iso(0),
            until=iso(60 * (until or STEPS)),
            user="user",
            bins=BINS,
            max_per_step=setup.most,
            statistic=setup.statistic,
            mechanism=setup.mechanism,
            ordered=not in_memory,
            store=store,
            population="walkers",
            **({"levels": LEVELS} if setup.levels else {}),
            spare_bins=setup.spare,
            **told,
        )
    world.show("frame", str(releases.to_arrow().to_pylist()))
    world.show("cards", repr(releases) + releases._repr_html_())
    world.show("spent", f"{releases.ledger.worst_window()} {releases.ledger.left()}")


def read_by_command(world, store):
    command(world, ["ledger", store])
    command(world, ["ledger", store, "--json"])
    for name in ("out.csv", "out.parquet"):
        command(world, ["export", store, "--out", world.seen / f"exported {name}"])


def command(world, words):
    """What a command shows; a crash goes through it."""
    done = CliRunner().invoke(main, with_last(*words), catch_exceptions=False)
    world.show("stdout", done.stdout)
    world.show("stderr", done.stderr)
    world.show("exit codes", str(done.exit_code))


def by_service(*life, **told):
    from served_worlds import serve  # it needs names of this module

    serve(*life, **told)


OTHER_WAYS = {"command": by_command, "http": by_service, "frame": by_frame, "sorted stream": by_frame}
