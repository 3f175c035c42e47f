"""The first five mechanisms: worked examples of the paper, scales read off unit noise, error bounds, extremes."""

import numpy as np
import pytest

import eventide as ev
from eventide.privacy.amounts import NANO

STAIRS = [[0], [0], [500], [9000], [9000], [9000]]  # changes at the third and fourth step


def spent(mechanism, matrix):
    return [round(value * NANO) for value in ev.run(mechanism, matrix).spent]


def test_bd_charges_of_the_worked_example():
    bd = ev.BudgetDistribution(epsilon=48, window=3, bins=1, noise=ev.noise.Zero())
    distance = 8 * NANO  # epsilon / 6
    looks = [12 * NANO, 0, 6 * NANO, 9 * NANO, 0, 0]  # epsilon times 1/4, 1/8, 3/16
    assert spent(bd, STAIRS) == [distance + look for look in looks]


def test_ba_charges_of_the_worked_example():
    ba = ev.BudgetAbsorption(epsilon=6, window=3, bins=1, noise=ev.noise.Zero())
    stream = [[0], [0], [500], [9000], [9000], [9000]]  # looks at steps 1, 3 and 5; step 4 is silent
    assert spent(ba, stream) == [2 * NANO, NANO, 3 * NANO, 0, 2 * NANO, NANO]


@pytest.mark.parametrize("sensitivity", [1, 3])
@pytest.mark.parametrize(("epsilon", "window"), [(1, 120), (0.3, 7)])
def test_unit_noise_shows_the_scale_of_the_first_release(epsilon, window, sensitivity):
    expected = {
        "uniform": window / epsilon,
        "sample": 1 / epsilon,
        "hybrid": -(-window // round(window**0.5)) / epsilon,
        "bd": 4 / epsilon,
        "ba": 2 * window / epsilon,
    }
    for name, scale in expected.items():
        mech = ev.mechanism(
            name, epsilon=epsilon, window=window, bins=2, sensitivity=sensitivity, noise=ev.noise.Unit()
        )
        release = mech.release([100, 200])
        assert release.values - [100, 200] == pytest.approx(sensitivity * scale, rel=1e-6), name
        assert release.scale == pytest.approx(sensitivity * scale, rel=1e-6), name
        low, high = mech.noise_range()
        assert low * (1 - 1e-6) <= sensitivity * scale <= high * (1 + 1e-6)


def test_shifted_budget():
    """With 8 bins and a window of 2: distances get epsilon / 8 a step, looks share 3/4 of epsilon."""
    for name, first in (("bd", 3 / 8), ("ba", 3 / 8)):
        mech = ev.mechanism(name, epsilon=1, window=2, bins=8, shift_budget=True, noise=ev.noise.Unit())
        release = mech.release([0] * 8)
        assert release.scale == pytest.approx(1 / first)
        assert release.spent == pytest.approx(first + 1 / 8)
    few = ev.BudgetAbsorption(epsilon=1, window=5, bins=8, shift_budget=True, noise=ev.noise.Unit())
    assert few.release([0] * 8).spent == pytest.approx(2 / 10)  # too few bins: as without the shift


def test_zero_noise_shows_when_each_looks():
    rising = [[10 * t] for t in range(8)]
    values = {
        name: ev.run(ev.mechanism(name, epsilon=1, window=4, bins=1, noise=ev.noise.Zero()), rising)
        .values[:, 0]
        .tolist()
        for name in ("uniform", "sample", "hybrid")
    }
    assert values["uniform"] == [0, 10, 20, 30, 40, 50, 60, 70]
    assert values["sample"] == [0, 0, 0, 0, 40, 40, 40, 40]
    assert values["hybrid"] == [0, 0, 20, 20, 40, 40, 60, 60]


def test_noise_of_columns_and_steps_is_independent():
    mech = ev.Uniform(epsilon=1, window=2, bins=40, seed=5)
    noise = ev.run(mech, np.zeros((500, 40), dtype=int)).values
    assert np.abs(np.corrcoef(noise.T) - np.eye(40)).max() < 0.25
    assert abs(np.corrcoef(noise[:-1].ravel(), noise[1:].ravel())[0, 1]) < 0.05


def test_uniform_error_is_the_noise_scale():
    mech = ev.Uniform(epsilon=1, window=20, bins=50, seed=9)
    errors = np.abs(ev.run(mech, np.full((1000, 50), 10_000)).values - 10_000)
    assert abs(errors.mean() - 20) < 3 * errors.std() / np.sqrt(errors.size)


def random_walk(seed, step, steps=2000):
    generator = np.random.default_rng(seed)
    return 10_000 + np.cumsum(generator.integers(-step, step + 1, (steps, 5)), axis=0)


def test_sample_stays_within_its_bound():
    stream = random_walk(1, 4)
    sample = ev.Sample(epsilon=0.5, window=10, bins=5, seed=3)
    stale = np.repeat(stream[::10], 10, axis=0)
    bound = np.abs(stream - stale).max() + 1 / 0.5
    assert np.abs(ev.run(sample, stream).values - stream).mean() <= bound


@pytest.mark.parametrize("step", [0, 3, 40])
def test_bd_stays_within_its_bound(step):
    """Theorem 6 of the paper, for so many looks in every window."""
    stream = random_walk(2, step)
    bd = ev.BudgetDistribution(epsilon=1, window=10, bins=5, seed=4)
    run = ev.run(bd, stream)
    most = max(1, int(np.convolve(run.fresh, np.ones(10)).max()))
    assert np.abs(run.values - stream).mean() <= 4 * (2.0**most - 1) / most + 2 * 10 / 5


@pytest.mark.parametrize("step", [0, 3, 40])
def test_ba_stays_within_its_bound(step):
    """Theorem 7 of the paper, for so many units that a look takes over from quiet steps."""
    stream = random_walk(3, step)
    ba = ev.BudgetAbsorption(epsilon=1, window=10, bins=5, seed=4)
    values, silent, absorbed = [], [], []
    for counts in stream:
        was_silent = bool(ba._silent_until[0, 0] >= ba.step)
        release = ba.release(counts)
        values.append(release.values)
        silent.append(was_silent)
        if release.fresh:
            absorbed.append(int(ba._units[0, 0]) - 1)
    errors = np.abs(np.array(values) - stream).mean(axis=1)
    silent_error = errors[silent].mean() if any(silent) else 0

    def bound(units):
        harmonic = sum(1 / n for n in range(1, units + 2))
        return (20 * harmonic + units * silent_error) / (2 * units + 1) + 20 / 5

    assert errors.mean() <= max(bound(int(rounded(np.mean(absorbed)))) for rounded in (np.floor, np.ceil))


@pytest.mark.parametrize("name", ev.mechanism_names())
@pytest.mark.parametrize("epsilon", [0.001, 100, 1e-6, 1e6])
@pytest.mark.parametrize("window", [1, 50, 10**7])
def test_extreme_settings_release_finite_numbers(name, epsilon, window):
    mech = ev.mechanism(name, epsilon=epsilon, window=window, bins=2, sensitivity=1000, noise="secure")
    for counts in ([0, 0], [10**9, 0], [2**53, 2**53], [0, 0]):
        release = mech.release(counts)
        assert np.isfinite(release.values).all()
        assert not np.isinf(release.scale[release.fresh_bins]).any()
    assert mech.ledger.worst_window() <= epsilon


@pytest.mark.parametrize("name", ev.mechanism_names())
@pytest.mark.parametrize("level", [0, 7, 10**9])
@pytest.mark.parametrize("many", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_steady_streams_of_one_and_of_many_bins(name, level, many):
    for bins, steps in ((1, 60), (many, 4)):
        mech = ev.mechanism(name, epsilon=0.5, window=5, bins=bins, seed=2)
        values = ev.run(mech, np.full((steps, bins), level)).values
        assert np.isfinite(values).all()
        assert np.abs(values - level).mean() < 2000  # noise of scale 10 a step at the least, far from overflow
        assert mech.ledger.worst_window() <= 0.5


def test_a_share_below_a_nano_is_a_repeat_and_charges_nothing():
    mech = ev.Uniform(epsilon=1e-6, window=2000, bins=1)
    release = mech.release([5])
    assert (release.values.tolist(), release.fresh, release.spent) == ([0], False, 0)


def test_replicas_take_one_stream_or_one_each():
    mech = ev.Uniform(epsilon=1, window=1, bins=2, replicas=3, noise=ev.noise.Zero())
    assert mech.release([1, 2]).values.tolist() == [[1, 2]] * 3
    own = np.arange(6).reshape(3, 2)
    release = mech.release(own)
    assert release.values.tolist() == own.tolist()
    assert release.fresh.tolist() == [True] * 3
    assert release.spent.tolist() == [1] * 3
    run = ev.run(mech, np.stack([own, own], axis=1))
    assert run.values.shape == (3, 2, 2)
    assert run.fresh.shape == run.spent.shape == (3, 2)


def test_names_and_parameters():
    mech = ev.mechanism("ba", epsilon=1.0, window=120, bins=["a", "b"])
    assert (mech.epsilon, mech.window, mech.bins, mech.size) == (1.0, 120, ("a", "b"), 2)
    assert ev.Uniform(epsilon=1, window=1, bins=3).bins == ("0", "1", "2")
    for bad in (
        {"bins": ["a", "a"]},
        {"bins": 0},
        {"bins": "ab"},
        {"bins": []},
        {"window": 0},
        {"window": 1.5},
        {"window": 10**20},
        {"replicas": -1},
        {"sensitivity": 0},
        {"sensitivity": 10**7},
        {"epsilon": -1},
        {"noise": "weak"},
        {"seed": 1, "noise": ev.noise.Zero()},
        {"colour": "red"},
    ):
        with pytest.raises(ev.InputError):
            ev.mechanism("uniform", **{"epsilon": 1, "window": 2, "bins": 2} | bad)
    with pytest.raises(ev.InputError, match="choose one of"):
        ev.mechanism("magic")
    with pytest.raises(ev.InputError, match="'ba' needs bins"):
        ev.mechanism("ba", epsilon=1, window=3)


def test_guarantee_says_what_is_promised():
    mech = ev.Uniform(epsilon=0.5, window=12, bins=2, sensitivity=3)
    promise = mech.guarantee
    assert (promise.notion, promise.epsilon, promise.window, promise.sensitivity) == ("w-event", 0.5, 12, 3)
    assert "any 12 consecutive steps" in str(promise)
    assert "for this run only" in str(promise)
    assert str(ev.Uniform(epsilon=1, window=1, bins=1, seed=1).guarantee).startswith("NOT PRIVATE (the noise is seeded")
    assert ev.Uniform(epsilon=1, window=1, bins=1).guarantee.notion == "event-level"


def test_a_message_about_bad_counts_shows_none_of_them():
    mech = ev.Uniform(epsilon=1, window=1, bins=["north", "south"])
    for counts in ([7771, -7772], [7771.5, 2.0], [7771], [7771, float("nan")]):
        with pytest.raises(ev.InputError) as refusal:
            mech.release(counts)
        assert "777" not in str(refusal.value)


def test_a_bad_row_stops_a_run_before_its_first_release():
    mech = ev.Uniform(epsilon=1, window=2, bins=2)
    for bad in ([[1, 2], [3, -4]], [[1, 2], [3]], [[1, 2, 3]], [[1, 2], [3, 4.5]], [1, 2], [["a", "b"]]):
        with pytest.raises(ev.InputError):
            ev.run(mech, bad)
    assert (mech.step, mech.ledger.worst_window()) == (0, 0)


def test_a_class_is_no_mechanism_to_run():
    with pytest.raises(ev.InputError, match=r"Uniform is a class; run a mechanism .* such as Uniform\(epsilon, window"):
        ev.run(ev.Uniform, [[1, 2]])


def test_a_filter_may_be_given_by_name():
    mech = ev.Uniform(epsilon=1, window=2, bins=1, filter="truncate", noise=ev.noise.Unit())
    assert mech.release([0]).values.tolist() == [2]
    assert isinstance(mech.filter, ev.filters.Truncate)
    with pytest.raises(ev.InputError, match="no filter"):
        ev.Uniform(epsilon=1, window=2, bins=1, filter="magic")


class Interrupted(ev.filters.Repeat):
    """Fails once."""

    def step(self, measured):
        if not hasattr(self, "failed"):
            self.failed = True
            raise KeyboardInterrupt
        return super().step(measured)


@pytest.mark.parametrize(
    ("name", "options"),
    [("uniform", {}), ("bd", {}), ("ba", {}), ("bd", {"pan_private": "single"}), ("ba", {"pan_private": "announced"})],
)
def test_an_interrupted_step_is_over_and_counted_once(name, options):
    mech = ev.mechanism(name, epsilon=100, window=3, bins=2, noise=ev.noise.Zero(), **options)
    mech._filter = Interrupted().started(1, 2)
    with pytest.raises(KeyboardInterrupt):
        mech.release([500, 700])
    release = mech.release([0, 0])
    assert release.step == 1
    assert np.abs(release.values).max() < 400  # nothing of the interrupted step is counted again
    assert mech.ledger.worst_window() <= 100


def test_a_failed_step_leaves_the_mechanism_usable():
    mech = ev.Uniform(epsilon=1, window=2, bins=1, noise=ev.noise.Zero())
    mech.ledger.charge(800_000_000)
    with pytest.raises(ev.BudgetExceeded):
        mech.release([5])
    mech.ledger.advance()
    mech.ledger.advance()
    assert mech.release([6]).values.tolist() == [6]
