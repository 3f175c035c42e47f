"""Two worlds of statistics: what is counted of a person's events differs by no more than the sensitivity."""

from __future__ import annotations

import pytest
from worlds import Setup, check

from eventide.audit.two_worlds import WorldsDiffer
from eventide.events.statistics import PeopleCount
from eventide.events.tally import UserTally

LIVED = [
    Setup(source="csv", mechanism="uniform", person="does too much", life="dies once", statistic="people"),
    Setup(source="pipe", mechanism="ba", person="repeats it", life="dies once", most=1, statistic="people"),
    Setup(source="command", mechanism="sample", person="does too much", life="needs an epoch", statistic="people"),
    Setup(source="frame", mechanism="hybrid", person="comes and goes", life="dies once", statistic="people"),
    Setup(source="growing", mechanism="uniform", person="does too much", cap="2/8", statistic="people"),
]


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_people_look_the_same_in_both_worlds(setup):
    assert check(setup).changed


def test_a_person_who_counts_in_every_bin_is_found(monkeypatch):
    def tally(self, size, most, key, *, users):
        return UserTally(size, size, key, once=True)

    monkeypatch.setattr(PeopleCount, "tally", tally)
    with pytest.raises(WorldsDiffer, match="sealed counts are 3 apart, where one person adds 2 at the most"):
        check(LIVED[0])
