"""Two worlds at length: every two of sources, mechanisms, persons, lives and window queries together."""

from __future__ import annotations

import pytest
from pairwise import pairwise
from worlds import LIVES, PERSONS, Setup, check

import eventide as ev

pytestmark = pytest.mark.nightly

OPTIONS = {
    "source": ["csv", "jsonl", "parquet", "growing", "pipe", "command", "http"],
    "mechanism": [name for name in ev.mechanism_names() if name != "tide"],
    "person": list(PERSONS),
    "life": list(LIVES),
    "queries": [False, True],
}
HIDING = ("pegasus", "adapub", "rg", "rg-window-baseline")  # they take a snapshot at every step


def fits(case):
    source, life = case["source"], case["life"]
    if life == "dies at the account":
        return False  # test_two_worlds_accounts.py has these
    if life == "dies inside a group" and source not in ("csv", "jsonl", "parquet", "command"):
        return False  # a live source has one step at a time
    if source == "http":
        return life not in ("dies at emitting", "dies at a snapshot", "dies before the commit")  # too many starts
    if life in ("is busy", "has a clock that jumps") or (source == "command" and case["queries"]):
        return False
    return life != "dies at a snapshot" or (case["mechanism"] in HIDING and not case["queries"])


CASES = [Setup(**case) for case in pairwise(OPTIONS, fits)]
CAPPED = OPTIONS | {
    "source": ["csv", "jsonl", "parquet", "growing", "pipe", "http"],
    "mechanism": ["uniform", "sample", "pegasus"],
    "person": ["is let in later", "comes and goes", "does too much", "is early and late", "repeats it"],
    "life": [life for life in LIVES if life != "needs an epoch"],  # with a cap it waits until all is over
    "cap": ["2/8", "2/6"],
}
FORMS = [
    *[(name, (("groups", 2),)) for name in ("bd", "ba")],
    *[(name, (("shift_budget", True),)) for name in ("bd", "ba")],
    *[(name, (("as_published", True),)) for name in ("dsat", "adapub")],
    ("tide", ()),
    ("uniform", (("filter", ev.filters.Kalman()),)),
]


@pytest.mark.parametrize("setup", CASES, ids=str)
def test_two_worlds_look_the_same(setup):
    assert check(setup).questions > 0


@pytest.mark.parametrize("setup", [Setup(**case) for case in pairwise(CAPPED, fits)], ids=str)
def test_two_worlds_with_a_cap_look_the_same(setup):
    assert check(setup).questions > 0


@pytest.mark.parametrize(("mechanism", "parameters"), FORMS)
def test_forms_of_mechanisms_look_the_same(mechanism, parameters):
    verdict = check(Setup(mechanism=mechanism, parameters=parameters, life="dies before the commit"))
    assert verdict.changed == [3, 5]


@pytest.mark.parametrize("mode", ["single", "announced"])
@pytest.mark.parametrize("mechanism", ["bd", "ba"])
def test_pan_private_mechanisms_look_the_same(mechanism, mode):
    def run(world):
        made = ev.mechanism(mechanism, epsilon=1, window=6, bins=2, pan_private=mode)
        for step in range(12):
            counts = [sum(event == (step, place) for event in world.events) for place in range(2)]
            world.show("releases", str(made.release(counts)))

    from eventide.audit.two_worlds import OnlyA

    others = [(step, place) for step in range(12) for place in (0, 1, 1)]
    assert ev.check_two_worlds(run, [*others, OnlyA((4, 0)), OnlyA((7, 1))], window=range(4, 10)).changed == [4, 7]
