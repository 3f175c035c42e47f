"""Names that bins get and lose: once, at a public step, and never one that is there."""

import numpy as np
import pytest

from eventide.errors import InputError
from eventide.events.bin_names import BinNames
from eventide.events.bins import with_spares

PLACES = with_spares(("north", "south"), 2)


def test_spare_bins_stand_behind_the_others_and_are_added_once():
    assert PLACES == ("north", "south", "(spare 1)", "(spare 2)")
    assert with_spares(PLACES, 2) == PLACES
    with pytest.raises(InputError, match="how spare bins are named"):
        with_spares(("(spare 7)",), 2)
    with pytest.raises(InputError, match="give fewer"):
        with_spares(("a",), 10**6)


def test_a_place_holds_nobody_before_its_name_and_behind_its_close():
    names = BinNames(PLACES).given("harbour", 3).closed("south", 5).closed("harbour", 7)
    idle = np.array([names.idle(step) for step in range(8)])
    assert idle[:, 0].tolist() == [False] * 8
    assert idle[:, 1].tolist() == [False] * 5 + [True] * 3
    assert idle[:, 2].tolist() == [True] * 3 + [False] * 4 + [True]
    assert idle[:, 3].all()
    assert names.idle(np.array([2, 3, 7]), np.array([2, 2, 1])).tolist() == [True, False, True]
    assert names.names == ("north", "south", "harbour", "(spare 2)")
    assert (names.told(2), names.told(3)) == ({}, {"(spare 1)": "harbour"})
    assert (names.free(), list(names.known())) == ([3], ["north", "south", "harbour"])
    assert BinNames(PLACES, [list(each) for each in names.said]) == names


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda names: names.given("north", 1), "already"),
        (lambda names: names.given("mall", 1), "already, or there was"),
        (lambda names: names.given("(spare 9)", 1), "cannot be named"),
        (lambda names: names.given("two\nlines", 1), "cannot be named"),
        (lambda names: names.given("a", 1, place=0), "no spare bin that waits"),
        (lambda names: names.given("a", 1).given("b", 1), "no spare bin is left"),
        (lambda names: names.closed("nowhere", 1), "there is no bin"),
        (lambda names: names.closed("(spare 2)", 1), "there is no bin"),
        (lambda names: names.closed("mall", 9), "that stays"),
        (lambda names: names.given("a", 4).closed("a", 4), "close it later"),
    ],
)
def test_what_cannot_be_is_refused(change, reason):
    names = BinNames(PLACES).given("mall", 2).closed("mall", 6)
    with pytest.raises(InputError, match=reason):
        change(names)


def test_counts_with_names_find_their_places():
    names = BinNames(PLACES).given("harbour", 3)
    assert names.placed({"harbour": 4, "north": 1}).tolist() == [1, 0, 4, 0]
    with pytest.raises(InputError, match="give a spare bin this name first"):
        names.placed({"mall": 1})
