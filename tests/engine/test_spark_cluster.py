"""A standalone cluster of separate processes counts as one machine does, whichever of them is killed."""

import pytest
from spark_cluster import Cluster, Driver, wait_for
from spark_events import SEVERAL_WITH_A_CAP, check, new_life, releases_of_one_machine, shown, write_events

pytestmark = [pytest.mark.engine, pytest.mark.slow]
KILLED = -9


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    cluster = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster.start()
    finally:
        cluster.stop()


@pytest.mark.nightly
def test_five_million_events_give_the_counts_of_one_machine(cluster, tmp_path):
    steps = 100
    write_events(tmp_path / "events", rows=5_000_000, steps=steps, users=200_000, files=4, seed=1)
    life = new_life(tmp_path, tmp_path / "events", steps=steps, files=2) | {"master": cluster.address}
    assert Driver(life, tmp_path / "log").end() == 0
    assert check(life, tmp_path / "log", steps) == releases_of_one_machine(tmp_path, life)


def arriving(master, folder, **more):
    """A life whose steps close while batches come: each file is a batch, events are late, some of them too late."""
    steps = 12
    write_events(
        folder / "events", rows=60_000, steps=steps, users=3_000, files=6, seed=2, delay=8, fares="statistic" in more
    )
    life = new_life(folder, folder / "events", steps=steps, arrival="arrival", late="20s", **more)
    return life | {"master": master}, folder / "log", steps


@pytest.mark.nightly
def test_a_worker_is_killed(cluster, tmp_path):
    life, log, steps = arriving(cluster.address, tmp_path)
    driver = Driver(life, log)
    wait_for(lambda: log.read_bytes().count(b'{"step"') > 3, "the release of some steps")
    cluster.kill_worker("second")
    try:
        assert driver.end() == 0
    finally:
        cluster.start_workers("second")
    assert check(life, log, steps) == releases_of_one_machine(tmp_path, life)


def test_a_worker_and_the_driver_are_killed_and_the_next_driver_has_one_worker_less(cluster, tmp_path):
    life, log, steps = arriving(cluster.address, tmp_path)
    driver = Driver(life, log, "after-commit:6")
    wait_for(lambda: log.read_bytes().count(b'{"step"') > 1, "the release of some steps")
    cluster.kill_worker("second")
    try:
        assert driver.end() == KILLED
        assert Driver(life, log).end() == 0
    finally:
        cluster.start_workers("second")
    assert check(life, log, steps) == releases_of_one_machine(tmp_path, life)


@pytest.mark.nightly
@pytest.mark.parametrize("bounds", [{"cap": "3/7min"}, SEVERAL_WITH_A_CAP], ids=["events", "several"])
def test_the_driver_is_killed_before_between_and_after_the_commits(cluster, tmp_path, bounds):
    life, log, steps = arriving(cluster.address, tmp_path, **bounds)  # what people used goes on with every life
    points = {
        "spark-batch-begins:3": "Spark and the store have committed what came before",
        "before-commit:2": "neither has committed the batch and its steps",
        "inside-transaction:2": "the store is about to",
        "after-commit:1": "the store has committed a step of the batch, Spark has not committed the batch",
        "spark-batch-tallied:2": "tallies are there, nothing else",
    }
    for point in points:
        assert Driver(life, log, point).end() == KILLED, point
    assert Driver(life, log).end() == 0
    assert check(life, log, steps) == releases_of_one_machine(tmp_path, life)


def test_no_step_is_drawn_twice(tmp_path):
    """With noise, what anybody saw before the driver was killed is what the store shows afterwards.

    Noise is drawn by the driver alone, so its executors may live in the same Java.
    """
    life, log, steps = arriving("local[2]", tmp_path, noise="secure")
    for point in ("before-commit:2", "after-emit:5"):
        assert Driver(life, log, point).end() == KILLED, point
    assert len(set(shown(log))) > 1
    assert Driver(life, log).end() == 0
    check(life, log, steps)
