"""Two worlds of statistics: what is counted of a person's events differs by no more than the sensitivity."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import Setup, check, command

from eventide.audit.two_worlds import OnlyA, OnlyB, WorldsDiffer, check_two_worlds
from eventide.events.statistics import PeopleCount
from eventide.events.tally import UserTally

LIVED = [
    Setup(source="csv", mechanism="uniform", person="does too much", life="dies once", statistic="people"),
    Setup(source="pipe", mechanism="ba", person="repeats it", life="dies once", most=1, statistic="people"),
    Setup(source="command", mechanism="sample", person="does too much", life="needs an epoch", statistic="people"),
    Setup(source="frame", mechanism="hybrid", person="comes and goes", life="dies once", statistic="people"),
    Setup(source="growing", mechanism="uniform", person="does too much", cap="2/8", statistic="people"),
    pytest.param(
        Setup(source="http", mechanism="uniform", person="does too much", statistic="people"), marks=pytest.mark.slow
    ),
]
SERVED = {"source": "http", "mechanism": "uniform", "statistic": "sum:fare", "between": "fare=0,10,1"}


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_people_look_the_same_in_both_worlds(setup):
    assert check(setup).changed


@pytest.mark.parametrize(
    ("person", "life"),
    [
        pytest.param("pays another fare", "dies once", marks=pytest.mark.slow),
        pytest.param("writes strange values", "is busy", marks=pytest.mark.slow),
        pytest.param("does too much", "dies once", marks=pytest.mark.slow),
        pytest.param("writes nonsense", "to its end", marks=pytest.mark.slow),
    ],
)
def test_sums_of_a_service_look_the_same_in_both_worlds(person, life):
    verdict = check(Setup(**SERVED, person=person, life=life))
    assert bool(verdict.changed) == (person != "writes nonsense")
    assert verdict.seen["GET /v1/streams/city/releases"] > 1


def test_several_statistics_of_a_service_look_the_same_in_both_worlds():
    several = {"statistic": ("people", "mean:fare"), "person": "pays another fare"}
    assert check(Setup(**SERVED | several)).changed


def test_a_person_who_counts_in_every_bin_is_found(monkeypatch):
    def tally(self, size, most, key, *, users):
        return UserTally(size, size, key, once=True)

    monkeypatch.setattr(PeopleCount, "tally", tally)
    with pytest.raises(WorldsDiffer, match="sealed counts are 3 apart, where one person adds 2 at the most"):
        check(LIVED[0])


# Sums, means, quantiles and several at once: the person's events, or only their values, differ.

FARES = {
    "is there": [OnlyA((3, "anna", "north", 9)), OnlyA((4, "anna", "south", 2))],
    "pays another fare": [OnlyA((3, "anna", "north", 9)), OnlyB((3, "anna", "north", 4)), (4, "anna", "south", 1)],
    "writes nonsense": [OnlyA((3, "anna", "north", text)) for text in ("nan", "1e308", "x", "5e-324", "1" + "0" * 30)],
    "does too much": [OnlyA((4, "anna", "north", fare % 11)) for fare in range(50)],
}
OTHERS = [
    (step, f"user {step} {number}", "north", (3 * step + number) % 11) for step in range(8) for number in range(3)
]


FARE = ["--statistic", "mean:fare", "--between", "fare=0,10,1"]
STAYS = ["--statistic", "quantiles:fare", "--edges", "fare=0,2,5,10"]
ASKED = {  # words, and how far one event moves everything that is measured
    "sum": (["--statistic", "sum:fare", "--between", "fare=0,10,1"], 10),
    "several": (["--statistic", "people", *FARE, *STAYS, "--split", "people=2,mean:fare=1,quantiles:fare=1"], 12),
    "mean": (FARE, 10),
    "sum below 0": (["--statistic", "sum:fare", "--between", "fare=-4,10,1"], 10),
    "several with a cap": (["--statistic", "people", *FARE, "--window", 6, "--cap", "2/6min"], 11),
}


def told_of(words):
    """What publishes these statistics, dies once and goes on."""

    def published(world):
        rows = [f"2026-01-01T00:{step:02},{user},{place},{fare}" for step, user, place, fare in world.events]
        (world.folder / "rides.csv").write_text("\n".join(["timestamp,user,bin,fare", *rows, ""]))
        (world.folder / "bins.txt").write_text("north\nsouth\n")
        told = ["publish", world.folder / "rides.csv", "--epsilon", 1, "--window", 3, "--step", "1min"]
        told += ["--user", "user", "--start", "2026-01-01T00:00", "--until", "2026-01-01T00:08"]
        told += ["--bins", world.folder / "bins.txt", "--max-per-step", 2, "--mechanism", "uniform"]
        told += ["--store", world.folder / "store.db", "--out", world.seen / "out.csv", "--json", *words]
        world.live(lambda: command(world, told), "after-draw:5")
        world.live(lambda: command(world, told))
        world.show_store(world.folder / "store.db")

    return published


def asked(name):
    return name if name in ("sum", "several") else pytest.param(name, marks=pytest.mark.slow)


@pytest.mark.parametrize("person", FARES)
@pytest.mark.parametrize("statistics", [asked(name) for name in ASKED])
def test_statistics_of_values_look_the_same_in_both_worlds(statistics, person):
    words, of_one = ASKED[statistics]
    window = range(3, 8) if "--cap" in words else range(3, 6)
    most = 10 if (statistics, person) == ("sum", "pays another fare") else 2 * of_one
    verdict = check_two_worlds(told_of(words), [*OTHERS, *FARES[person]], window=window, most=most)
    assert verdict.changed
    assert verdict.seen["file out.csv"] >= 8


# People of slots of two minutes: rows of the steps 3 to 5 differ, which meet the slots 1 and 2.

VISITS = {
    "is there": [OnlyA((3, "anna", "north"))],
    "comes and goes": [
        OnlyA((3, "anna", "north")),
        (4, "anna", "south"),
        OnlyB((5, "anna", "north")),
        (6, "anna", "south"),
    ],
    "moves in a slot": [OnlyA((4, "anna", "north")), OnlyB((5, "anna", "south"))],
    "does too much": [
        OnlyA((step, "anna", place)) for step in (3, 4, 5) for place in ("north", "south") for _ in range(9)
    ],
}
OTHER_VISITS = [(step, f"user {(step + number) % 7}", "north") for step in range(8) for number in range(3)]


def visited(world, more=("--statistic", "people/2min"), deaths=()):
    rows = [f"2026-01-01T00:{step:02},{user},{place}" for step, user, place in world.events]
    (world.folder / "visits.csv").write_text("\n".join(["timestamp,user,bin", *rows, ""]))
    (world.folder / "bins.txt").write_text("north\nsouth\n")
    words = ["publish", world.folder / "visits.csv", "--epsilon", 1, "--window", 3, "--step", "1min", "--user", "user"]
    words += ["--start", "2026-01-01T00:00", "--until", "2026-01-01T00:08", "--bins", world.folder / "bins.txt"]
    words += ["--mechanism", "uniform", "--store", world.folder / "store.db", "--out", world.seen / "out.jsonl"]
    words += ["--json", *more]
    for dying in deaths:
        world.live(lambda: command(world, words), dying)
    command(world, words)
    world.show_store(world.folder / "store.db")


@pytest.mark.parametrize("person", VISITS)
def test_people_of_slots_look_the_same_in_both_worlds(person):
    verdict = check_two_worlds(visited, [*OTHER_VISITS, *VISITS[person]], window=range(1, 3), most=2)
    assert verdict.changed
    assert verdict.steps == 4


@pytest.mark.slow
@pytest.mark.parametrize("person", VISITS)
def test_people_of_slots_beside_events_look_the_same_in_both_worlds(person, monkeypatch):
    """Steps 3 to 5 differ; the slot of the steps 4 and 5 is measured at its last, and an event moves a step by 1."""
    monkeypatch.setattr("eventide.live.publisher.publisher.TOGETHER", 1)  # it dies inside a slot that is kept

    def published(world):
        visited(world, ("--statistic", "events", "--statistic", "people/2min"), ("after-draw:6",))

    verdict = check_two_worlds(published, [*OTHER_VISITS, *VISITS[person]], window=range(3, 6), most=3)
    assert verdict.changed
    assert verdict.steps == 8 + 1  # one was drawn again


@pytest.mark.slow
def test_a_slot_that_remembers_people_of_the_one_before_is_found(monkeypatch):
    """The memory never ends, so anna, who was there at step 4 in one world, is in the slots behind the window too."""
    monkeypatch.setattr("eventide.events.slot_times.SlotTimes.slot_of", lambda self, step: 0)
    monkeypatch.setattr("eventide.events.slot_times.SlotTimes.last", lambda self, step: step + 1 - step % 2)

    def published(world):
        visited(world, ("--statistic", "events", "--statistic", "people/2min"))

    with pytest.raises(WorldsDiffer):
        check_two_worlds(published, [*OTHER_VISITS, *VISITS["is there"]], window=range(3, 6), most=3)


def test_values_that_are_not_cut_are_found(monkeypatch):
    def read(self, column):
        values = np.asarray(column, dtype=np.float64)  # which the reader makes of texts
        return np.rint(values).astype(np.int64), np.isfinite(values)

    monkeypatch.setattr("eventide.events.value_grid.ValueGrid.read", read)
    with pytest.raises(WorldsDiffer, match="sealed counts are 5000 apart, where one person adds 20 at the most"):
        check_two_worlds(
            told_of(ASKED["sum"][0]), [*OTHERS, OnlyA((3, "anna", "north", 5000))], window=range(3, 6), most=20
        )
