"""Two worlds in which a bin is named while somebody is in it: nothing that one person did shows, whatever dies."""

import json

import pytest
from worlds import WINDOW, Setup, check, run

from eventide.audit.two_worlds import WorldsDiffer
from eventide.events.reader import UNKNOWN_BIN
from eventide.live.publisher.publisher import Publisher

LIVED = [
    pytest.param(
        Setup(source="growing", mechanism="ba", person="is in another bin", life="names a bin", spare=2),
        marks=pytest.mark.slow,
    ),
    Setup(source="command", mechanism="uniform", person="is in another bin", life="names a bin", spare=2, levels=True),
    pytest.param(
        Setup(source="frame", mechanism="hybrid", person="is in another bin", life="names a bin", spare=2),
        marks=pytest.mark.slow,
    ),
    pytest.param(
        Setup(source="pipe", mechanism="uniform", person="does too much", life="names a bin", spare=1),
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_two_worlds_with_a_bin_that_is_named_look_the_same(setup):
    named = set()

    def runs(world, setup):
        run(world, setup)
        for line in (world.seen / "out.jsonl").read_text().splitlines() if setup.source != "frame" else ():
            named.add((json.loads(line)["step"], str(json.loads(line).get("bins"))))

    verdict = check(setup, runs)
    assert verdict.changed
    assert set(verdict.changed) <= set(WINDOW)
    if setup.source != "frame":
        assert {step for step, bins in named if "nowhere" in bins} == set(range(4, 8))


def test_a_name_that_is_given_because_somebody_came_is_found(monkeypatch):
    """What must never be: a bin that refused events have named."""
    setup = Setup(source="csv", mechanism="uniform", person="is in another bin", spare=1)
    check(setup)

    def from_refused_events(publisher):
        if publisher.feed.counters.refused[UNKNOWN_BIN] and publisher.names.free():
            publisher.names = publisher.store.rename(lambda names, next_step: names.given("nowhere", next_step))

    monkeypatch.setattr(Publisher, "_look_for_names", from_refused_events)
    with pytest.raises(WorldsDiffer, match=r"store\.db, epoch"):
        check(setup)
