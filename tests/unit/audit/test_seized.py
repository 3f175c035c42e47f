"""The machine is taken away between two events: memory, store, its files and log are the same in two worlds."""

import pytest
from seizures import BROKEN, PERSONS, FilePart, PipePart, check, check_looks, read_as_sketched, without_chance

from eventide.audit.seizure import file_bytes
from eventide.audit.two_worlds import WorldsDiffer
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.privacy.noisy_cells import NoisyCells


@pytest.fixture(autouse=True)
def without_waiting(monkeypatch):
    without_chance(monkeypatch)


USUAL = [("comes and goes", FilePart), ("is there", PipePart)]
OTHER = [
    pytest.param(person, part, marks=pytest.mark.slow)
    for person in PERSONS
    for part in (FilePart, PipePart)
    if (person, part) not in USUAL
]


@pytest.mark.parametrize(("person", "part"), USUAL + OTHER)
def test_whoever_takes_the_machine_between_two_events_finds_noisy_cells_only(person, part):
    looks = {}
    agreed = check(person, part, looks, late="1min")
    assert agreed.steps >= 4
    assert agreed.seen["slot 9"] > 50, "memory, store and its files were found"
    check_looks(looks, person)


@pytest.mark.parametrize("name", [pytest.param("bd", marks=pytest.mark.slow), "ba"])
def test_so_it_is_with_intrusions_that_nobody_announces(name):
    assert check("comes and goes", PipePart, mode="single", name=name).steps >= 4


@pytest.mark.parametrize("part", [FilePart, pytest.param(PipePart, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "how", ["buffers", "logs", "counts", pytest.param("writes and erases", marks=pytest.mark.slow)]
)
def test_a_feed_that_holds_or_tells_more_is_found(how, part):
    with pytest.raises(WorldsDiffer, match="log" if how == "logs" else "slot"):
        check(part=part, feed=BROKEN[how](NoisyFeed))


@pytest.mark.parametrize("part", [FilePart, pytest.param(PipePart, marks=pytest.mark.slow)])
def test_the_sketch_of_the_paper_is_found(monkeypatch, part):
    monkeypatch.setattr(NoisyCells, "read", read_as_sketched)
    with pytest.raises(WorldsDiffer):
        check(part=part)


@pytest.mark.slow
def test_what_was_written_and_erased_is_found_on_the_disk_alone(monkeypatch):
    monkeypatch.setattr(
        "seizures.seized", lambda publisher, *_, **__: list(file_bytes(publisher.store._database._path))
    )
    assert check(part=PipePart).steps >= 4
    with pytest.raises(WorldsDiffer, match="slot"):
        check(part=PipePart, feed=BROKEN["writes and erases"](NoisyFeed))
