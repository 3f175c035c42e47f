"""Events for tests of the Spark engine, and what one machine makes of the same events: the oracle."""

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
from live_stores import make_twin
from spark_driver import described, mechanism

import eventide as ev
from eventide.events.reader import Columns
from eventide.events.times import parse_times
from eventide.events.zones import EARLIEST
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import FOREVER, EventBatch
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify

BEGIN = datetime(2024, 3, 30, tzinfo=UTC)
BINS = [f"place {number}" for number in range(50)]
MINUTE = 60
SEVERAL_WITH_A_CAP = {"cap": "3/7min", "statistic": ["people", "mean:fare"], "between": "fare=0,120,0.5"}


def iso(seconds):
    return (BEGIN + timedelta(seconds=seconds)).isoformat()


def write_events(folder, *, rows, steps, users, files, seed, delay=None, fares=False):
    """CSV files with events of `steps` minutes in disorder; with `delay` in seconds, by the time of their arrival."""
    folder.mkdir()
    chance = np.random.default_rng(seed)
    seconds = chance.integers(0, steps * MINUTE * 1000, rows) / 1000
    arrival = seconds + (0 if delay is None else chance.exponential(delay, rows))
    order = np.argsort(arrival) if delay is not None else chance.permutation(rows)
    begin = BEGIN.timestamp()
    table = {
        "timestamp": begin + seconds[order],
        "user": chance.zipf(1.3, rows) % users,
        "bin": np.array([*BINS, "nowhere"])[chance.integers(0, len(BINS) + 1, rows)],
    }
    if delay is not None:
        table["arrival"] = begin + arrival[order]
    if fares:
        table["fare"] = np.random.default_rng(seed).integers(0, 300, rows) / 2
    for number, part in enumerate(np.array_split(np.arange(rows), files)):
        path = folder / f"{number:03}.csv"
        pa_csv.write_csv(pa.table(table).slice(part[0], len(part)), path)
        os.utime(path, (number + 1, number + 1))  # Spark takes the oldest first


def new_life(folder, source, *, steps, noise="zero", arrival=None, files=1, most=2, late=None, **bounds):
    """What a driver needs; its store is made, and copied for the oracle, so that both have the same key."""
    open_store(folder / "empty.db", for_tests=noise == "zero").close()
    for name in ("store.db", "oracle.db"):
        make_twin(folder / "empty.db", folder / name)
    cut = {"start": iso(0), "until": iso(steps * MINUTE), "step": "1min", **bounds}
    return {
        "master": "local[2]",
        "source": str(source),
        "store": str(folder / "store.db"),
        "work": str(folder / "work"),
        "out": str(folder / "out.jsonl"),
        "noise": noise,
        "window": 7,
        "most": most,
        "bins": BINS,
        "arrival": arrival,
        "files": files,
        "steps": cut | ({"late": late, "skew": "1s"} if arrival else {}),
    }


class Recorded:
    """The same files as a source of one machine, with the arrivals that stand in them."""

    complete, replays, records_arrival = False, True, True

    def __init__(self, folder, arrival):
        self._files, self._arrival = sorted(folder.glob("*.csv")), arrival

    def open(self, position, reader):
        self._reader = reader

    def poll(self, timeout):
        if not self._files:
            return None
        path = self._files.pop(0)
        text = pa_csv.ConvertOptions(column_types=dict.fromkeys([*Columns(), "arrival", "fare"], pa.string()))
        rows = pa_csv.read_csv(path, convert_options=text)
        arrival = parse_times(rows[self._arrival], self._reader.zone)[0] if self._arrival else None
        return EventBatch(self._reader.read(rows, 0, arrival), None, EARLIEST if self._files else FOREVER)

    def close(self):
        pass


def releases_of_one_machine(folder, life, store="oracle.db"):
    """What the publisher of one machine releases for the files of a life, with the same key."""
    feed = EventFeed(Recorded(Path(life["source"]), life["arrival"]), **described(life).counting())
    with ev.Publisher(feed, mechanism(life), folder / store) as publisher:
        publisher.run()
        assert publisher.feed.counters.accepted > 0
    return stored(folder / store)[0]


def stored(path):
    store = open_store(path, read_only=True)
    store.verify()
    releases, entries, epochs = list(store.releases()), list(store.entries()), store.epochs()
    store.close()
    return releases, entries, epochs


def check_store(life, steps):
    """Each step is released once and within epsilon, and nothing raw is left."""
    releases, entries, epochs = stored(life["store"])
    assert [step for step, _ in releases] == list(range(steps))
    assert verify(entries, epochs, steps).problems == []
    assert list((Path(life["work"]) / "open").iterdir()) == []
    return releases


def check(life, log, steps):
    """The same, and whatever a driver has ever shown is what the store holds: no step has two noises."""
    releases = check_store(life, steps)
    assert Path(life["out"]).read_bytes() == b"".join(release + b"\n" for _, release in releases)
    assert set(shown(log)) == set(releases)
    return releases


def shown(log):
    """The steps and releases that drivers have shown, in the order in which they did."""
    lines = [line for line in log.read_bytes().splitlines() if line.startswith(b'{"step"')]
    return [(json.loads(line)["step"], line) for line in lines]
