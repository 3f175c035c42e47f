"""Two worlds behind Spark: executors count, the driver publishes, and one person's events are in one world only."""

from __future__ import annotations

import os

import pytest
from worlds import HEADER, MINUTE, START, STEPS, Setup, check, iso, mechanism

import eventide as ev
from eventide.engines import spark_feed
from eventide.engines.spark import publish
from eventide.events.clock import ManualClock

pytestmark = [pytest.mark.engine, pytest.mark.nightly]


SEVERAL = {"statistic": ("people", "mean:fare"), "between": "fare=0,10,1"}


def columns(setup):
    return [*HEADER.split(","), *(["fare"] if setup.between else [])]


def written(world, setup):
    """A file for each minute, with the moment at which its events arrived."""
    folder = world.folder / "events"
    if not folder.exists():
        folder.mkdir()
        for minute in range(STEPS + 1):
            lines = [f"{iso(60 * minute + 30)},{line}" for at, line in world.events if at == minute]
            path = folder / f"{minute}.csv"
            path.write_text("\n".join([",".join(["arrival", *columns(setup)]), *lines, ""]))
            os.utime(path, (minute + 1, minute + 1))  # Spark takes the oldest first
    return folder


@pytest.mark.parametrize(
    ("person", "cap", "several"),
    [
        ("is there", None, {}),
        ("does too much", None, {}),
        ("writes nonsense", None, {}),
        ("is let in later", "1/6", {}),
        ("is let in later", "1/6", SEVERAL),
        ("pays another fare", "1/6", SEVERAL),
    ],
)
@pytest.mark.parametrize(
    ("arrival", "lives"),
    [(None, [None]), ("arrival", [None]), ("arrival", ["before-commit:4", "after-commit:2", None])],
)
def test_two_worlds_look_the_same(spark, person, cap, several, arrival, lives, monkeypatch):
    monkeypatch.setattr(spark_feed, "SystemClock", lambda: ManualClock(START + 20 * MINUTE))

    def run(world, setup):
        frame = spark.readStream.schema(", ".join(f"{name} string" for name in ["arrival", *columns(setup)]))
        frame = frame.option("header", True).option("maxFilesPerTrigger", 2).csv(str(written(world, setup)))
        timed = {"late": "1min", "skew": "1s"} if arrival else {}
        bounds = {"cap": setup.cap, **several}
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
                mechanism=several_mechanism(setup, bounds) if several else mechanism(setup, 1),
                store=world.folder / "store.db",
                work=world.folder / "work",
                sinks=[world.seen / "out.jsonl"],
                available_now=True,
                **bounds,
                **timed,
            )
            publishing.await_termination()

        for dies_at in lives:
            world.live(work, dies_at)

    most, name = (2, "ba") if cap is None else (1, "uniform")
    verdict = check(Setup(person=person, cap=cap, most=most, mechanism=name, **several), run)
    assert bool(verdict.changed) == (person != "writes nonsense")


def several_mechanism(setup, bounds):
    spec = ev.StreamSpec(
        epsilon=1, window=6, step="1min", start=iso(0), user="user", bins=setup.bins, mechanism="uniform", **bounds
    )
    return spec.build_mechanism()
