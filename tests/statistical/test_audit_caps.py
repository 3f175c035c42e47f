"""The auditor under a window sensitivity: streams differ by no more than it in all, and what is broken is found."""

import functools

import numpy as np
import pytest
from broken import SpendsWhatIsPromised, ThinLaplace

from eventide.audit import MechanismSubject, audit_mechanism, neighbouring_pairs
from eventide.audit.exact import most_telling_transcript
from eventide.audit.pairs import Pair
from eventide.events.caps import blocks_met, window_sensitivity
from eventide.mechanisms.registry import mechanism_class
from eventide.mechanisms.uniform import Uniform
from eventide.privacy.noise import Seeded

SETTING = {"window": 4, "bins": 2, "sensitivity": 2}
OPTIONS = {"runs": 4_000, "alpha": 1e-6}


def pairs_of(bound, **setting):
    return list(neighbouring_pairs(**SETTING | setting, jumps=(3,), window_sensitivity=bound))


@pytest.mark.parametrize("bound", [2, 3, 5, 7])
def test_pairs_differ_by_the_bound_and_no_more(bound):
    distances = [np.abs(pair.stream - pair.neighbour) for pair in pairs_of(bound)]
    assert max(distance.sum() for distance in distances) == bound
    assert all(distance.sum() <= bound for distance in distances)
    assert all(distance.sum(axis=1).max() <= 2 for distance in distances)
    assert {pair.end - pair.begin for pair in pairs_of(bound)} >= {-(-bound // 2)} | ({4} if bound > 2 else set())


def test_without_a_bound_pairs_are_as_they_were():
    names = [pair.name for pair in neighbouring_pairs(3, 2, 1, (5,))]
    assert len(names) == len(set(names))
    assert "after a quiet time, +-+ hopping" in names
    assert not any("." in name for name in names)


def some_of(pairs):
    return [pair for pair in pairs if "long" not in pair.name][::5]


@pytest.mark.parametrize("name", ["uniform", "dsat", "rg"])
def test_sound_mechanisms_pass(name):
    verdict = audit_mechanism(
        *(mechanism_class(name), 1.0), **SETTING, parameters={"window_sensitivity": 5}, **OPTIONS,
        pairs=some_of(pairs_of(5)),
    )  # fmt: skip
    assert not verdict.broken, str(verdict)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uniform", "sample", "hybrid", "dsat", "spas", "pegasus", "adapub", "rg", "tide"])
def test_sound_mechanisms_pass_on_every_pair(name):
    runs = 200 if name == "tide" else 20_000
    parameters = {"window_sensitivity": 5}
    verdict = audit_mechanism(mechanism_class(name), 1.0, **SETTING, parameters=parameters, runs=runs, alpha=1e-6)
    assert not verdict.broken, str(verdict)


@pytest.mark.parametrize("broken", [SpendsWhatIsPromised, ThinLaplace])
def test_what_spends_too_much_is_found(broken):
    pairs = [pair for pair in pairs_of(5) if pair.name.startswith("at the start, +")]
    verdict = audit_mechanism(broken, 1.0, **SETTING, parameters={"window_sensitivity": 5}, **OPTIONS, pairs=pairs)
    assert verdict.broken, str(verdict)
    assert broken is ThinLaplace or verdict.proof.bound == pytest.approx(2.5)  # C / m times what a step may have


# What a cap on events is worth. Blocks of 6 steps with one event each; the window is the steps 3 to 8.
#
# step        0 1 2 3 4 5 | 6 7 8 9 ..
# one world   . . . x . x | x . . x      3, 6 count
# the other   . . . . . x | . . . x      5, 9 count: leaving out 3 lets in 5, and leaving out 6 lets in 9
CAP, BLOCK, WINDOW = 1, 6, 6
ROWS = {"one": [3, 5, 6, 9], "other": [5, 9]}


def counted(steps):
    """The first event of each block."""
    stream = np.full((14, 1), 4)
    for block in {step // BLOCK for step in steps}:
        stream[min(step for step in steps if step // BLOCK == block)] += 1
    return stream


@pytest.mark.parametrize("enough", [True, False])
def test_a_cap_is_worth_twice_its_events_for_every_block(enough):
    pair = Pair("a cap", *(counted(steps) for steps in ROWS.values()))
    bound = window_sensitivity(CAP, BLOCK, WINDOW)
    assert np.abs(pair.stream - pair.neighbour).sum() == bound == 4
    assert CAP * (blocks_met(BLOCK, WINDOW) + 1) == 3
    make = functools.partial(Uniform, epsilon=1, window=WINDOW, bins=1, window_sensitivity=bound if enough else 3)
    worst = most_telling_transcript(MechanismSubject(make, Seeded), make, [pair], runs=500)
    assert worst.bound == pytest.approx(1 if enough else 4 / 3)
