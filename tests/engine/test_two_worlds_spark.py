"""Two worlds behind Spark: executors count, the driver publishes, and one person's events are in one world only."""

from __future__ import annotations

import os

import pytest
from worlds import HEADER, MINUTE, START, STEPS, Setup, check, iso, mechanism

from eventide.engines import spark_feed
from eventide.engines.spark import publish
from eventide.events.clock import ManualClock

pytestmark = [pytest.mark.engine, pytest.mark.nightly]


def written(world):
    """A file for each minute, with the moment at which its events arrived."""
    folder = world.folder / "events"
    if not folder.exists():
        folder.mkdir()
        for minute in range(STEPS + 1):
            lines = [f"{line},{iso(60 * minute + 30)}" for at, line in world.events if at == minute]
            path = folder / f"{minute}.csv"
            path.write_text("\n".join([f"{HEADER},arrival", *lines, ""]))
            os.utime(path, (minute + 1, minute + 1))  # Spark takes the oldest first
    return folder


@pytest.mark.parametrize(
    ("person", "cap"),
    [("is there", None), ("does too much", None), ("writes nonsense", None), ("is let in later", "1/6")],
)
@pytest.mark.parametrize(
    ("arrival", "lives"),
    [(None, [None]), ("arrival", [None]), ("arrival", ["before-commit:4", "after-commit:2", None])],
)
def test_two_worlds_look_the_same(spark, person, cap, arrival, lives, monkeypatch):
    monkeypatch.setattr(spark_feed, "SystemClock", lambda: ManualClock(START + 20 * MINUTE))

    def run(world, setup):
        frame = spark.readStream.schema(", ".join(f"{name} string" for name in f"{HEADER},arrival".split(",")))
        frame = frame.option("header", True).option("maxFilesPerTrigger", 2).csv(str(written(world)))
        timed = {"late": "1min", "skew": "1s"} if arrival else {}
        world.show_store(world.folder / "store.db")

        def work():
            publishing = publish(
                frame,
                step="1min",
                start=iso(0),
                until=iso(60 * STEPS),
                user="user",
                bin="bin",
                arrival=arrival,
                cap=setup.cap,
                mechanism=mechanism(setup, 1),
                store=world.folder / "store.db",
                work=world.folder / "work",
                sinks=[world.seen / "out.jsonl"],
                available_now=True,
                **timed,
            )
            publishing.await_termination()

        for dies_at in lives:
            world.live(work, dies_at)

    most, name = (2, "ba") if cap is None else (1, "uniform")
    verdict = check(Setup(person=person, cap=cap, most=most, mechanism=name), run)
    assert bool(verdict.changed) == (person != "writes nonsense")
