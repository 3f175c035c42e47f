"""The auditor under a window sensitivity: streams differ by no more than it in all, and what is broken is found."""

import functools

import numpy as np
import pytest
from broken import SpendsWhatIsPromised, ThinLaplace

from eventide.audit import audit_mechanism, neighbouring_pairs
from eventide.audit.events import audit_events
from eventide.events.caps import Cap, blocks_met
from eventide.live.feeds.event_feed import EventFeed
from eventide.mechanisms.registry import mechanism_class
from eventide.mechanisms.uniform import Uniform

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


@pytest.mark.parametrize("enough", [True, False])
def test_a_cap_on_events_is_worth_twice_its_events_for_every_block(enough):
    """From events through the feed: cap (n + 1) is not enough, since leaving out one event lets another count."""
    cap = Cap(events=1, block=6)
    bound, smaller = cap.window_sensitivity(window=6, max_per_step=1), cap.events * (blocks_met(cap.block, 6) + 1)
    assert (bound, smaller) == (4, 3)
    verdict = audit_events(
        *(Uniform, 1.0, 6, 1), feed=functools.partial(EventFeed, cap=cap), runs=200, alpha=1e-6,
        parameters={"window_sensitivity": bound if enough else smaller},
    )  # fmt: skip
    assert verdict.proof.bound == pytest.approx(1 if enough else 4 / 3)
    assert verdict.broken == (not enough)
