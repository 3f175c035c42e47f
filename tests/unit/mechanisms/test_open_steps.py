"""Several open steps of a pan-private BD or BA: what intrusions can cost, for every order of looks."""

import itertools

import numpy as np
import pytest

import eventide as ev
from eventide.errors import StateError
from eventide.privacy.noisy_cells import NoisyCells

NANO = 10**9
WINDOW = 6


def held(cls, mode, *, window=WINDOW, bins=1, noise=None):
    mechanism = cls(epsilon=1, window=window, bins=bins, pan_private=mode, noise=noise or ev.noise.Zero())
    mechanism.hold_several_steps()
    return mechanism


def run(mechanism, looks, depth, monkeypatch):
    """Take the steps with these decisions, `depth` steps open at once; give charges, and what was ever open."""
    decisions = iter(looks)
    far = np.full((1, 1), 2**61)
    monkeypatch.setattr(NoisyCells, "distance", lambda *_: far if next(decisions) else -far)
    charges, seen = np.zeros(len(looks), dtype=np.int64), []
    decision = int(mechanism.decision_budget().item())
    for step in range(len(looks)):
        mechanism.open_until(step + depth - 1)
        seen.append({step + place: decision + int(e) for place, e in enumerate(mechanism._open.planned) if e})
        charges[step] = round(mechanism.close().spent * NANO) - (step == 0) * int(
            mechanism.ledger.open_spans("intrusion").item()
        )
    return charges, seen


def fullest(*amounts):
    """What the fullest window holds of several {step: amount}."""
    ends = max((step for each in amounts for step in each), default=0) + 1
    return max(
        sum(each.get(step, 0) for each in amounts for step in range(first, first + WINDOW)) for first in range(ends)
    )


@pytest.mark.parametrize(
    ("depth", "steps"), [(2, 5), *(pytest.param(depth, 7, marks=pytest.mark.slow) for depth in (1, 2, 3, 5))]
)
@pytest.mark.parametrize("cls", [ev.BudgetDistribution, ev.BudgetAbsorption])
def test_no_order_of_looks_and_no_intrusion_costs_more_than_epsilon(cls, depth, steps, monkeypatch):
    for looks in itertools.product([False, True], repeat=steps):
        charges, seen = run(held(cls, "single"), looks, depth, monkeypatch)
        charged = dict(enumerate(charges))
        for cells in seen:  # killed after the intrusion and read again: what was seen comes on top of all charges
            assert fullest(charged, cells) <= NANO, (looks, cells)
        charges, seen = run(held(cls, "announced"), looks, depth, monkeypatch)
        for step, cells in enumerate(seen):  # every open step takes its look, or is charged for it
            assert fullest(dict(enumerate(charges[:step])), cells) <= NANO, (looks, step, cells)


@pytest.mark.parametrize("cls", [ev.BudgetDistribution, ev.BudgetAbsorption])
def test_one_open_step_has_the_budgets_of_the_mechanism_by_itself(cls, monkeypatch):
    plain = cls(epsilon=1, window=WINDOW, bins=1, pan_private="announced", noise=ev.noise.Zero())
    several = held(cls, "announced")
    stream = [5, 5, 90, 5, 5, 200, 200, 1]
    for step, count in enumerate(stream):
        several.open_until(step)
        for mechanism in (plain, several):
            for _ in range(count):
                mechanism.add(0)
        ours, theirs = several.close(), plain.close()
        assert (ours.fresh, ours.values.tolist()) == (theirs.fresh, theirs.values.tolist())


def test_events_of_overlapping_steps_stay_apart():
    mechanism = held(ev.BudgetDistribution, "announced", bins=2)
    mechanism.open_until(1)
    for bin, step, times in ((0, 0, 3), (1, 1, 70), (0, 1, 2), (1, 0, 4)):
        for _ in range(times):
            mechanism.add(bin, step)
    assert mechanism.close().values.tolist() == [3, 4]
    assert mechanism.close().values.tolist() == [2, 70]


def test_a_saved_state_holds_plans_and_no_cell():
    mechanism = held(ev.BudgetAbsorption, "announced", bins=3, noise=ev.noise.Seeded(1))
    mechanism.open_until(2)
    mechanism._open._cells[1]._look[:] = 1234567
    mechanism.close()
    mechanism._open._cells[0]._look[:] = 7654321
    state = mechanism.snapshot()
    assert set(state["_open"]) == {"planned"}
    assert "_cells" not in state
    again = ev.load(mechanism.save())
    assert again._open.planned.tolist() == mechanism._open.planned.tolist()
    assert again._open._cells == []
    assert not np.isin([7654321], np.concatenate([np.ravel(x) for x in _arrays(again.snapshot())])).any()


def _arrays(state):
    for value in state.values() if isinstance(state, dict) else state:
        if isinstance(value, dict | list | tuple):
            yield from _arrays(value)
        elif isinstance(value, np.ndarray):
            yield value


def test_cells_are_overwritten_when_their_step_is_over():
    mechanism = held(ev.BudgetDistribution, "single", bins=3, noise=ev.noise.Seeded(1))
    mechanism.open_until(0)
    cells = mechanism._open._cells[0]
    assert cells._look.any()
    mechanism.close()
    assert not cells._look.any()
    assert not cells._decision.any()


def test_an_announced_intrusion_makes_every_open_step_look():
    mechanism = held(ev.BudgetDistribution, "announced", window=8)
    mechanism.close()
    mechanism.open_until(2)
    mechanism.announce_intrusion()
    assert [mechanism.close().fresh for _ in range(3)] == [True, True, False]


def test_a_lost_step_is_charged_for_its_look_and_takes_no_events():
    mechanism = held(ev.BudgetAbsorption, "announced", window=4)
    for _ in range(3):
        mechanism.open_until(0)
        mechanism.add(0)
    first = mechanism.close()
    planned = mechanism.plan_behind(np.zeros(0, dtype=np.int64))
    mechanism.open_until(1)
    mechanism.lose_until(2)
    for _ in range(50):
        mechanism.add(0, 1)
    lost = mechanism.close()
    assert not lost.fresh
    assert lost.values.tolist() == first.values.tolist()
    assert round(lost.spent * NANO) == planned + int(mechanism.decision_budget().item())


def test_only_a_new_pan_private_mechanism_holds_several_steps():
    with pytest.raises(StateError):
        ev.BudgetAbsorption(epsilon=1, window=2, bins=1).hold_several_steps()
