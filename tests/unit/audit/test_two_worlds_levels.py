"""Two worlds with levels: nothing that one person did shows in any level, through crashes and epochs."""

import pytest
from worlds import WINDOW, Setup, check

LIVED = [
    Setup(source="growing", mechanism="ba", person="does too much", life="dies before the commit", levels=True),
    Setup(source="command", mechanism="uniform", person="comes and goes", life="begins an epoch", levels=True),
    Setup(source="frame", mechanism="hybrid", person="is there", levels=True),
    pytest.param(Setup(source="csv", mechanism="tide", person="is there", levels=True), marks=pytest.mark.slow),
]


@pytest.mark.parametrize("setup", LIVED, ids=str)
def test_two_worlds_with_levels_look_the_same(setup):
    verdict = check(setup)
    assert verdict.changed
    assert set(verdict.changed) <= set(WINDOW)
