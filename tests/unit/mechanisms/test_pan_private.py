"""Pan-privacy of BD and BA: the noisy cells, events one by one, and what an intrusion costs."""

import numpy as np
import pytest

import eventide as ev
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import WindowLedger
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Seeded, Source, Unit, Zero
from eventide.privacy.noisy_cells import NoisyCells, mean_absolute_noise

BOTH = [ev.BudgetDistribution, ev.BudgetAbsorption]
MODES = ["single", "announced"]


def add_all(mech, counts):
    for bin, count in enumerate(counts):
        for _ in range(count):
            mech.add(bin)


def cells(mech):
    return mech._cells._decision[0].copy(), mech._cells._look[0].copy()


def test_scales_of_bd():
    """Epsilon 12, window 2: 3 a step for distances; looks get half of 4, and 2 stay free for the intrusion."""
    mech = ev.BudgetDistribution(epsilon=12, window=2, bins=["a", "b"], pan_private="single", noise=Unit())
    assert mech.ledger.left() == 12 - 2 - 3
    mech.add("a")
    mech.add(np.int64(1))
    mech.add("b")
    decision, look = cells(mech)
    assert decision == pytest.approx([1 + 1 / 3, 2 + 1 / 3])
    assert look.tolist() == [1.5, 2.5]
    release = mech.close()
    assert release.values.tolist() == [2, 3]  # noise 1/2 twice
    assert release.scale == pytest.approx(0.5 * 2**0.5)
    assert mech.noise_range()[0] == pytest.approx(0.5 * 2**0.5)
    assert release.spent == 3 + 2 + 2
    assert cells(mech)[1].tolist() == [1, 1]  # the next look would get 1


def test_scales_of_ba():
    """Epsilon 16, window 2: 4 a step for distances, 2 for looks, and 4 stay free for the intrusion."""
    mech = ev.BudgetAbsorption(epsilon=16, window=2, bins=2, pan_private="single", noise=Unit())
    assert mech.ledger.left() == 16 - 4 - 4
    mech.add(0)
    release = mech.close()
    assert release.values.tolist() == [2, 1]
    assert release.spent == 4 + 2 + 4
    assert mech.noise_range() == pytest.approx((0.25 * 2**0.5, 0.5 * 2**0.5))


def test_announced_intrusions_cost_no_budget_of_their_own():
    for cls in BOTH:
        plain = cls(epsilon=12, window=2, bins=2, noise=Zero()).release([0, 0])
        assert (
            cls(epsilon=12, window=2, bins=2, pan_private="announced", noise=Zero()).release([0, 0]).spent
            == plain.spent
        )


def test_the_distance_takes_off_what_the_noise_in_the_cells_adds():
    """Window 4, epsilon 8, two bins: a distance costs 1; a second look gets 1, so both bins together err by 2."""
    lift = 2 * mean_absolute_noise(1, np.array([NANO]))[0]
    assert lift == pytest.approx(1.7018, abs=1e-4)
    for change, fresh in ((3, False), (4, True)):  # 2 + 1.7 lies between
        mech = ev.BudgetDistribution(epsilon=8, window=4, bins=2, pan_private="announced", noise=Zero())
        ev.run(mech, [[0, 0]])
        assert mech.release([change, 0]).fresh is fresh


def test_mean_absolute_noise():
    reach = np.arange(1, 4000)
    for scale in (0.3, 1.0, 7.0, 90.0):
        tail = np.exp(-reach / scale)
        mean = 2 * (reach * tail).sum() / (1 + 2 * tail.sum())
        assert mean_absolute_noise(3, np.array([round(3 * NANO / scale)])) == pytest.approx(mean, rel=1e-6)
    assert mean_absolute_noise(1, np.array([0, 10**15])).tolist() == [0, 0]
    assert mean_absolute_noise(10**6, np.array([1])) == pytest.approx(1e15)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("mode", MODES)
def test_events_one_by_one_are_counts_all_at_once(cls, mode):
    stream = np.random.default_rng(1).integers(0, 30, (30, 3)) * [1, 1, 5]
    by_event = cls(epsilon=5, window=4, bins=3, pan_private=mode, seed=9)
    at_once = cls(epsilon=5, window=4, bins=3, pan_private=mode, seed=9)
    for counts in stream:
        add_all(by_event, counts)
        assert by_event.close().values.tolist() == at_once.release(counts).values.tolist()


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("noise", [Seeded(9), Zero()])
def test_an_open_step_can_be_saved(cls, noise):
    mech = cls(epsilon=5, window=8, bins=["x", "y"], pan_private="announced", noise=noise)
    for _ in range(5):
        mech.close()
    add_all(mech, [400, 3])
    mech.announce_intrusion()
    loaded = ev.load(mech.save())
    for height in (0, 100, 200, 300, 400, 500):
        for each in (mech, loaded):
            add_all(each, [height, 0])
        assert mech.close().values.tolist() == loaded.close().values.tolist()
    assert mech.ledger.worst_window() == loaded.ledger.worst_window()


def test_silent_steps_read_no_events():
    """Epsilon 8, window 4: step 2 takes two units, so step 3 is silent."""
    mech = ev.BudgetAbsorption(epsilon=8, window=4, bins=1, pan_private="announced", noise=Zero())
    ev.run(mech, [[0], [0], [90]])
    mech.add(0)
    mech.announce_intrusion()
    assert cells(mech) == ([0], [0])
    release = mech.release([70])
    assert (release.fresh, release.spent) == (False, 0)
    mech.add(0)
    assert cells(mech) == ([1], [1])


def test_cells_without_budget_take_no_events():
    """A share that rounds down to nothing brings no noise, so nothing may be counted on it."""
    for cls in BOTH:
        mech = cls(epsilon=1e-6, window=10**7, bins=1, pan_private="single", seed=1)
        for count in (0, 1000, 5):
            mech.add(0)
            decision, look = cells(mech)
            assert decision == 0
            assert (look == 0) == (mech._cells.look_budget == 0).all()
            assert np.isfinite(mech.release([count]).values).all()


def test_cells_keep_the_budgets_they_were_opened_with():
    door = Meter(WindowLedger(1, 2), Unit(), 2)
    cells, budget = NoisyCells((1, 2)), np.array([[100_000_000]])
    cells.open(door, budget, budget)
    budget[...] = 1
    assert cells.read(door, np.array([[True]])).fresh.all()
    assert door.ledger.charged() == 0.2
    for shown in (cells.decision_budget, cells.look_budget):
        with pytest.raises(ValueError, match="read-only"):
            shown[...] = 0


def test_an_announced_intrusion_renews_the_noise_of_every_cell():
    """Epsilon 12, window 2: distances get 3 a step, the first look 3, the second 3/2."""
    mech = ev.BudgetDistribution(epsilon=12, window=2, bins=2, pan_private="announced", noise=Unit())
    mech.close()
    mech.add(0)
    before = cells(mech)
    mech.announce_intrusion()
    for held, seen, scale in zip(cells(mech), before, (1 / 3, 2 / 3), strict=True):
        assert held - seen == pytest.approx(scale)
    mech.add(1)
    mech.announce_intrusion()
    release = mech.close()
    assert release.values == pytest.approx(1 + 4 * 2 / 3)  # at the start, twice when announced, at the close
    assert release.scale == pytest.approx(2 * 2 / 3)


@pytest.mark.parametrize("cls", BOTH)
def test_an_announced_intrusion_forces_a_look(cls):
    mech = cls(epsilon=12, window=3, bins=2, pan_private="announced", noise=Zero())
    assert [mech.close().fresh for _ in range(2)] == [True, False]
    mech.announce_intrusion()
    assert [mech.close().fresh for _ in range(3)] == [True, False, False]


class Forced(Source):
    """No noise, but for distances: they are what decides as the test wants it."""

    name = "forced"
    look = False

    def laplace(self, numerator, charges, shape):
        noise = np.zeros(shape, dtype=np.int64)
        return noise + (10**7 if self.look else -(10**7)) if shape == (1, 1) else noise

    def binomial(self, counts, percent):
        raise AssertionError


def dearest_window(mech, decisions):
    """The most that a window costs, in epsilon, with an intrusion at the worst step of it that takes no look."""
    charged, planned = [], []
    for step, look in enumerate(decisions):
        mech.source.look = look
        budget = int(mech._cells.look_budget[0, 0])
        release = mech.close()
        assert release.fresh == (budget > 0 and (look or step == 0))
        charged.append(release.spent)
        planned.append(0 if release.fresh else budget / NANO)
    charged[0] -= float(mech.ledger.open_spans("intrusion")[0, 0] / NANO)
    w = mech.window
    return max(sum(charged[t : t + w]) + max(planned[t : t + w]) for t in range(len(charged) - w + 1))


def decisions(seed=None, calm=20, steps=60):
    """A long calm, one step to intrude, then looks without end; or at random."""
    if seed is None:
        return [False] * (calm + 1) + [True] * (steps - calm - 1)
    return (np.random.default_rng(seed).random(steps) < 0.3).tolist()


def published_thirds(looks, window):
    """What BD as published costs a window in which the first step is intruded and takes no look."""
    spent, intrusion = [0.0], 1 / 2 / 3
    for _ in looks:
        spent.append((1 / 2 - sum(spent)) / 3)
    return 1 / 2 + intrusion + sum(spent[:window])


@pytest.mark.parametrize("cls", BOTH)
def test_no_window_is_over_epsilon_with_one_intrusion(cls):
    worst = []
    for plan in (decisions(), decisions(calm=9), *map(decisions, range(20))):
        mech = cls(epsilon=3, window=10, bins=2, pan_private="single", noise=Forced())
        worst.append(dearest_window(mech, plan))
        assert mech.ledger.worst_window() <= 3
    assert 0.98 * 3 < max(worst) <= 3 + 1e-12
    assert published_thirds(range(9), 10) > 1.15


def test_the_ledger_refuses_what_belongs_to_the_intrusion():
    mech = ev.BudgetAbsorption(epsilon=8, window=2, bins=1, pan_private="single", noise=Zero())
    with pytest.raises(ev.BudgetExceeded):
        mech.ledger.charge(int(mech.ledger.left() * NANO) + 1)
    mech.ledger.charge(int(mech.ledger.left() * NANO))


def test_guarantee():
    once = str(ev.BudgetAbsorption(epsilon=1, window=2, bins=1, pan_private="single").guarantee)
    assert "memory once, between two events, even if nobody notices" in once
    assert "doubles its variance" in once
    often = str(ev.BudgetDistribution(epsilon=1, window=2, bins=1, pan_private="announced").guarantee)
    assert "announced before the next event" in often
    assert "memory" not in str(ev.BudgetDistribution(epsilon=1, window=2, bins=1).guarantee)
    seeded = ev.BudgetDistribution(epsilon=1, window=2, bins=1, pan_private="single", seed=1)
    assert str(seeded.guarantee).startswith("NOT PRIVATE")
    assert not seeded.holds_raw


def test_what_is_refused():
    build = {"epsilon": 1, "window": 2, "bins": ["a", "b"]}
    for bad in ({"pan_private": "twice"}, {"pan_private": True}, {"pan_private": "single", "groups": 1}):
        with pytest.raises(ev.InputError):
            ev.BudgetDistribution(**build | bad)
    mech = ev.BudgetDistribution(**build, pan_private="single")
    for bin in ("secret place", "0", 2, -1, 1.0, True, None, ["a"]):
        before = cells(mech)
        with pytest.raises(ev.InputError) as refusal:
            mech.add(bin)
        assert "secret" not in str(refusal.value)
        assert np.array_equal(before, cells(mech))
    with pytest.raises(ev.StateError, match="announced"):
        mech.announce_intrusion()
    for other in (ev.BudgetDistribution(**build), ev.BudgetDistribution(**build, pan_private="announced", replicas=2)):
        for ask in (lambda mech: mech.add(0), lambda mech: mech.close(), lambda mech: mech.announce_intrusion()):
            with pytest.raises(ev.StateError):
                ask(other)


@pytest.mark.slow
@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(
    "parameters",
    [
        {"pan_private": "single"},
        {"pan_private": "announced", "filter": ev.filters.Truncate()},
        {"pan_private": "single", "shift_budget": True, "window": 1},
    ],
)
def test_contract(cls, parameters):
    assert ev.check_mechanism(cls, **parameters)


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize(("epsilon", "window"), [(1e-6, 10**7), (1e-6, 1), (0.001, 50), (1e6, 3), (100, 10**7)])
def test_extremes(cls, epsilon, window):
    mech = cls(epsilon, window, bins=2, sensitivity=1000, pan_private="announced")
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0]):
        mech.add(1)
        mech.announce_intrusion()
        release = mech.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert mech.ledger.worst_window() <= epsilon
