"""Every shortcut of the posterior median against the plain, dense form of it; and what it promises as a filter."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import eventide as ev
from eventide.errors import InputError
from eventide.filters import side_by_side
from eventide.filters.posterior_grid import DRIFT, JUMP, LOG_PRIOR, MODELS, QUIET_LEVEL, grid_up_to
from eventide.filters.posterior_kernels import mean_lesson
from eventide.filters.posterior_look_kernels import cell_factors, chance_of_look, drift_over
from eventide.filters.posterior_median import PRIOR_LOOKS, SHARED_LOOKS, PosteriorMedian
from eventide.filters.posterior_scalar_kernels import (
    ANEW,
    PACES,
    PRIOR,
    bank_quantile,
    bank_quantiles,
    bank_state,
    begin_bank,
    begun_anew,
    lanes_of_bank,
    laplace_update,
    mix,
    update_bank,
)
from eventide.filters.posterior_usual_kernels import first_usual_values
from eventide.filters.side_by_side import in_slices
from eventide.privacy.measured import Measured


def measured(values, scale, fresh=True):
    values = np.array(values, dtype=np.float64)
    fresh = np.broadcast_to(fresh, values.shape)
    return Measured(np.where(fresh, values, 0), np.where(fresh, scale, np.inf), fresh)


def chances(grid, look, scale):
    """The average, over the counts of each cell, of what discrete Laplace noise gives the difference; largest is 1."""
    found = []
    for first, width in zip(grid.first, grid.width, strict=True):
        counts = first + np.arange(width)
        found.append(np.mean(np.exp((abs(np.clip(look, 0, None) - look) - abs(counts - look)) / scale)))
    return np.array(found)


def dense_drift(grid, steps, least_scale, model):
    """What a count in each cell (row) becomes (column): geometric on both sides, each row adding up to 1."""
    cells = len(grid.first)
    ratio = np.zeros(cells - 1)
    for cell in range(cells - 1):
        middle = (grid.centre[cell] + grid.centre[cell + 1]) / 2
        scale = DRIFT[model] * (least_scale / 2 + middle) + 0.001 * least_scale
        variance = steps * (scale / (grid.centre[cell + 1] - grid.centre[cell])) ** 2
        ratio[cell] = optimize.brentq(lambda r, v=variance: r - v * (1 - r) ** 2, 0, 1, xtol=1e-16)
    kernel = np.eye(cells)
    for source in range(cells):
        for target in range(cells):
            kernel[source, target] = np.prod(ratio[min(source, target) : max(source, target)])
    return kernel / kernel.sum(axis=1, keepdims=True)


class Plain:
    """One bin on the grid, all models, in double precision and with matrices; `steps` between looks in one go."""

    def __init__(self, grid, least_scale):
        self.grid, self.least_scale = grid, least_scale
        self.posterior = None
        self.log_weight = LOG_PRIOR.copy()
        self.lesson = np.zeros(len(grid.first))
        self.untaught = 0.0

    def usual(self):
        known = self.lesson + PRIOR_LOOKS * self.grid.prior
        return known / known.sum()

    def spread(self):
        usual = self.usual()
        median = self.grid.centre[np.searchsorted(np.cumsum(usual), 0.5)]
        return usual @ abs(self.grid.centre - median)

    def look(self, value, scale, steps):
        chance, usual, counts, telling = chances(self.grid, value, scale), self.usual(), math.sqrt(5), 1.0
        if self.posterior is None:
            joint = np.tile(usual * chance, (MODELS, 1))
        else:
            telling = self.spread() / (self.spread() + scale)
            self.untaught += steps
            counts = math.sqrt(self.untaught) * telling
            self.untaught *= 1 - telling
            joint = np.array([self.predicted(model, steps, usual) * chance for model in range(MODELS)])
        total = joint.sum(axis=1)
        kept = (1 - 0.005 * telling) * (self.log_weight - self.log_weight.max())
        self.log_weight = kept + 0.005 * telling * LOG_PRIOR + np.log(total)
        self.posterior = joint / total[:, None]
        self.lesson = 0.998**counts * self.lesson + counts * self.mixture(0)

    def predicted(self, model, steps, usual):
        stays = (1 - JUMP[model]) ** steps
        drifted = self.posterior[model] @ dense_drift(self.grid, steps, self.least_scale, model)
        return stays * drifted + (1 - stays) * usual

    def mixture(self, steps):
        weight = np.exp(self.log_weight - self.log_weight.max())
        stays = ((1 - JUMP) ** steps)[:, None]
        return weight / weight.sum() @ (stays * self.posterior + (1 - stays) * self.usual())

    def quantile(self, part, steps):
        mixture = self.mixture(steps)
        reached = np.cumsum(mixture)
        cell = np.searchsorted(reached, part)
        if self.grid.width[cell] == 1:
            return self.grid.first[cell]
        inside = (part - (reached[cell] - mixture[cell])) / mixture[cell]
        return self.grid.first[cell] - 0.5 + inside * self.grid.width[cell]


def test_cells_are_whole_counts_without_gaps():
    grid = grid_up_to(5000, bins=1)
    assert grid.first[0] == 0
    assert (grid.first[1:] == grid.first[:-1] + grid.width[:-1]).all()
    assert (grid.width[:12] == 1).all()
    assert (grid.width >= 1).all()
    assert (grid.width <= np.maximum(1, 0.08 * grid.first)).all()
    assert grid.prior.sum() == pytest.approx(1)
    assert grid_up_to(5000, bins=2).prior[0] > 0.5 > grid.prior[0]


@pytest.mark.parametrize("scale", [0.2, 3.0, 150.0])
@pytest.mark.parametrize("look", [-40, 0, 7, 7.5, 60, 333, 10_000])
def test_the_chance_of_a_look_is_that_of_discrete_noise(look, scale):
    grid = grid_up_to(500, bins=1)
    ratio, average, found = np.empty((3, len(grid.first)))
    cell_factors(grid.width, scale, ratio, average)
    chance_of_look(grid.first, grid.width, ratio, average, look, scale, found)
    plain = chances(grid, min(look, grid.first[-1] + grid.width[-1] - 1), scale)
    assert found == pytest.approx(plain, rel=1e-9, abs=1e-19)


@pytest.mark.parametrize("steps", [7, *(pytest.param(steps, marks=pytest.mark.slow) for steps in (1, 200))])
def test_drift_tables_are_the_dense_kernel(steps):
    grid = grid_up_to(60, bins=1)
    passing, staying = np.empty((2, len(grid.first), MODELS))
    drift_over(grid, steps, 2.0, passing, staying)
    for model in range(MODELS):
        found = np.diag(staying[:, model].astype(np.float64))
        for source in range(len(grid.first)):
            for target in range(len(grid.first)):
                between = passing[min(source, target) : max(source, target), model]
                found[source, target] = staying[source, model] * np.prod(between.astype(np.float64))
        assert found == pytest.approx(dense_drift(grid, steps, 2.0, model), rel=1e-5, abs=1e-9)


@pytest.mark.parametrize(("seed", "steps"), [(0, 15), pytest.param(1, 40, marks=pytest.mark.slow)])
def test_values_are_quantiles_of_the_plain_posterior(seed, steps):
    """Counts so small next to the noise that the grid speaks alone, at every step between the looks."""
    random = np.random.default_rng(seed)
    known = {"epsilon": 0.5, "window": 10, "sensitivity": 1}
    fast = PosteriorMedian(coverage=0.8).started(1, 1, **known)
    plain, since = Plain(fast.grid, 2.0), 0
    level = random.integers(0, 9)
    for step in range(steps):
        since += 1
        look = None
        if step == 0 or random.random() < 0.4:
            scale = random.choice([2.0, 5.0, 20.0])
            value = level + round(random.laplace(0, scale))
            plain.look(value, scale, since)
            look, since = measured([[value]], scale), 0
        fast.step(look)
        low, value, high = fast._read(1).ravel()  # before the interval is calibrated
        found = [value, low, high]
        assert fast.rows.grid_share[0] > 0.9
        if fast.rows.grid_share[0] > 0.999:
            expected = [plain.quantile(part, since) for part in (0.5, 0.1, 0.9)]
            assert found == pytest.approx(expected, rel=2e-3, abs=1e-3)


@pytest.mark.parametrize("look", [-30.0, -0.5, 0.0, 4.0, 90.0])
@pytest.mark.parametrize("known", [0.05, 1.0, 8.0])
def test_a_gaussian_after_a_laplace_look_has_the_true_moments(look, known):
    scale, variance = 3.0, (3.0 * known) ** 2
    grid = np.linspace(-15 * 3 * known - 100, 15 * 3 * known + 100, 400_001)
    density = stats.norm.pdf(grid, 0, math.sqrt(variance)) * stats.laplace.pdf(look - grid, 0, scale)
    evidence = integrate.trapezoid(density, grid)
    mean = integrate.trapezoid(density * grid, grid) / evidence
    spread = integrate.trapezoid(density * (grid - mean) ** 2, grid) / evidence
    found = laplace_update(look, variance, scale)
    assert found == pytest.approx((mean, spread, math.log(evidence)), rel=2e-3, abs=1e-4)


@pytest.mark.parametrize("target", [-1.6, 0.0, 1.6])
def test_quantiles_of_the_bank_are_those_of_the_mixture(target):
    random = np.random.default_rng(5)
    for _ in range(20):
        mean, deviation = random.normal(100, 30, PACES), random.exponential(20, PACES) + 0.1
        weight = random.dirichlet(np.ones(PACES))
        found = bank_quantile(mean, deviation, weight, mean.mean(), target)
        reached = weight @ stats.norm.cdf(found, mean, deviation)
        assert reached == pytest.approx(stats.norm.cdf(target), abs=1e-3)


def test_three_quantiles_at_once_are_those_of_the_mixture():
    random, lanes, none = np.random.default_rng(6), lanes_of_bank(), np.zeros((1, PACES))
    for _ in range(40):
        mean, variance = random.normal(100, 30, PACES), random.exponential(20, PACES) ** 2 + 0.1
        weight = random.dirichlet(np.full(PACES, 0.3))
        known = bank_state(mean[None], variance[None], weight[None], none, 0, 5, lanes)
        assert known == pytest.approx((weight @ mean, math.exp(0.5 * weight @ np.log(variance))))
        found = bank_quantiles(lanes, *known, 1.6449, 0.05)
        reached = [weight @ stats.norm.cdf(place, mean, np.sqrt(variance)) for place in found]
        assert reached == pytest.approx([0.05, 0.5, 0.95], abs=1.5e-3)


def test_the_most_believed_state_passes_to_all_and_is_itself_left_alone():
    mean, variance, weight = np.linspace(0, 900, PACES), np.logspace(0, 6, PACES), np.full(PACES, 0.01)
    weight[2] = 1 - weight.sum() + weight[2]
    means, variances = mean.copy(), variance.copy()
    mix(mean, variance, weight, 0.98)
    assert (mean[2], variance[2]) == (means[2], variances[2])  # what fast filters know does not blur it
    share = 0.02 * PRIOR / (0.02 * PRIOR + 0.98 * np.where(np.arange(PACES) == 2, 1 - 0.01 * (PACES - 1), 0.01))
    assert mean == pytest.approx((1 - share) * means + share * means[2])
    second = (1 - share) * (variances + means**2) + share * (variances[2] + means[2] ** 2)
    assert variance == pytest.approx(second - mean**2)
    assert weight.sum() == pytest.approx(1)


@pytest.mark.parametrize("burst", [9000, 10**7])
def test_the_bank_sees_a_burst_at_once(burst):
    """Seventy looks at 0, then one far above its noise: only beginning anew explains it."""
    mean, variance, weight = np.empty((3, PACES))
    begin_bank(1.0, 300.0, mean, variance, weight)
    for look in [*np.rint(np.random.default_rng(3).laplace(0, 300, 70)), burst]:
        update_bank(look, 300.0, 1, 0.01, mean, variance, weight, np.full(PACES, 1.0), lanes_of_bank())
    assert weight[ANEW] > 0.99
    assert mean[ANEW] == burst


@pytest.mark.parametrize(("look", "scale"), [(5000.0, 10.0), (20.0, 300.0), (-400.0, 300.0)])
def test_beginning_anew_has_the_evidence_of_the_tail_and_the_state_of_the_look(look, scale):
    moved, variance, evidence = begun_anew(look, 7.0, scale)
    assert (7.0 + moved, variance) == (max(look, 0), 2 * scale**2)
    tail = QUIET_LEVEL / (max(look, 0) + QUIET_LEVEL + scale) ** 2
    assert evidence == pytest.approx(math.log(tail) - max(-look, 0) / scale)


def test_the_mean_lesson_counts_every_bin_that_was_looked_at_the_same():
    lessons = {"lesson": [[2.0, 2.0], [0.0, 0.0], [0.0, 0.0]], "far_lesson": [[6.0, 0.0, 3.0]]}
    known = {name: np.array(lesson, np.float32) for name, lesson in lessons.items()}
    rows = (
        PosteriorMedian()
        .started(1, 3)
        .rows._replace(learned=np.array([4.0, 0.0, 9.0]), far=np.array([-1, -1, 0]), **known)
    )
    mean = np.full(3, 7.0)
    mean_lesson(rows, 0, 3, mean)
    assert mean == pytest.approx([7 / 12, 1 / 4, 1 / 6])


def test_a_few_bins_that_need_more_room_do_not_make_it_for_all():
    """Of 200 bins at 5, three burst in turn: they have room of their own, and what they learned stays."""
    posterior = PosteriorMedian().started(1, 200, epsilon=1.0, window=50)
    for step in range(12):
        values = np.full((1, 200), 5.0)
        values[0, :3] = 3000 * (step % 3 == np.arange(3))
        estimate = posterior.step(measured(values, 2.0))
        assert abs(estimate - values).max() < 300
    rows = posterior.rows
    assert 3 * rows.posterior.shape[1] < len(posterior.grid.first)
    assert rows.far[:3].tolist() == [0, 1, 2]
    assert (rows.far[3:] == -1).all()


def test_a_state_with_room_for_all_cells_goes_on_as_one_without():
    """As older versions saved it."""
    values = np.random.default_rng(9).poisson([900] + [5] * 39, (12, 1, 40))
    looks = [measured(each, 2.0) for each in values]
    first, second = (PosteriorMedian().started(1, 40, epsilon=0.5, window=9) for _ in range(2))
    for look in looks[:6]:
        first.step(look)
    state = first.snapshot()
    rows, cells = state["_rows"], len(first.grid.first)
    assert rows["posterior"].shape[1] < cells
    assert rows["far"].max() == 0
    for name in ("posterior", "lesson"):
        far = rows.pop("far_" + name)
        whole = np.zeros((40, cells, *far.shape[2:]), np.float32)
        whole[:, : rows[name].shape[1]] = rows[name]
        whole[rows["far"] >= 0] = far[rows["far"][rows["far"] >= 0]]
        rows[name] = whole
    del rows["far"]
    second.restore(state)
    for look in looks[6:]:
        assert np.array_equal(first.step(look), second.step(look))
        assert np.array_equal(first.high, second.high)


def test_first_usual_values_are_those_of_bin_after_bin_each_judged_by_the_others():
    grid = grid_up_to(100, bins=50)
    looks = np.random.default_rng(3).poisson(2, 50) + np.rint(np.random.default_rng(4).laplace(0, 3, 50))
    posteriors = np.zeros((50, len(grid.first)))
    for _ in range(10):
        others = PRIOR_LOOKS * grid.prior + posteriors.sum(axis=0) - posteriors
        posteriors = others * [chances(grid, look, 3.0) for look in looks]
        posteriors /= posteriors.sum(axis=1, keepdims=True)
    spread = (PRIOR_LOOKS * grid.prior + posteriors.sum(axis=0)) / (PRIOR_LOOKS + 50)
    distinct, bins = np.unique(np.stack([looks, np.full(50, 3.0)], axis=1), axis=0, return_counts=True)
    assert first_usual_values(grid, PRIOR_LOOKS, distinct, bins) == pytest.approx(spread, rel=1e-6, abs=1e-12)


def test_one_far_look_among_many_is_not_its_own_witness():
    grid = grid_up_to(2000, bins=60)
    near = np.clip(np.rint(np.random.default_rng(5).laplace(0, 20, 60)), -40, 40)
    looks = np.stack([near, np.full(60, 20.0)], axis=1)
    looks[0, 0] = 120.0  # six scales: such noise is met in one of thirteen first looks at 60 empty bins
    distinct, bins = np.unique(looks, axis=0, return_counts=True)
    spread = first_usual_values(grid, PRIOR_LOOKS, distinct, bins)
    assert spread[grid.first > 70].sum() < 0.3 / 60


def test_what_one_bin_of_two_is_believed_may_be_noise_in_one_of_many():
    """Noise of 13 scales is as rare as bursts are, in one bin; of 300 bins some bin meets it 150 times as often."""
    found = []
    for bins in (2, 300):
        random, posterior = np.random.default_rng(3), PosteriorMedian().started(1, bins, epsilon=1.0, window=20)
        for step in range(6):
            values = np.rint(np.clip(random.laplace(0, 20, (1, bins)), -60, 60))
            values[0, 0] = 260 if step == 5 else values[0, 0]
            estimate = posterior.step(measured(values, 20.0))
        found.append(estimate[0, 0])
    assert found[0] > 150
    assert found[1] == 0


def random_looks(random, shape, steps):
    """Looks with fresh masks and scales of their own for each bin; some steps without any."""
    for _ in range(steps):
        fresh = random.random(shape) < 0.5
        scale = random.choice([1.0, 10.0, 60.0], shape)
        truth = np.resize([0, 3, 4000], shape)
        values = truth + np.rint(random.laplace(0, scale))
        yield None if random.random() < 0.2 else measured(values, scale, fresh)


def rows_of(look, replica):
    return (
        None
        if look is None
        else Measured(*(field[replica : replica + 1] for field in (look.values, look.scale, look.fresh)))
    )


def test_replicas_and_bins_with_looks_of_their_own():
    looks = list(random_looks(np.random.default_rng(8), (3, 3), 30))
    known = {"epsilon": 1.0, "window": 20}
    together = PosteriorMedian().started(3, 3, **known)
    alone = [PosteriorMedian().started(1, 3, **known) for _ in range(3)]
    for look in looks:
        values = together.step(look)
        assert np.isfinite(values).all()
        assert (together.low >= 0).all()
        assert (together.low <= values).all()
        assert (values <= together.high).all()
        for replica, single in enumerate(alone):
            assert np.array_equal(single.step(rows_of(look, replica))[0], values[replica])


def test_a_column_of_scales_is_one_for_all_bins():
    one, each = (PosteriorMedian().started(2, 2) for _ in range(2))
    values = np.array([[3.0, 50.0], [0.0, 1.0]])
    scale, fresh = np.array([[5.0], [np.inf]]), np.array([[True], [False]])
    column = one.step(Measured(values * fresh, scale, fresh))
    every = each.step(Measured(values * fresh, np.tile(scale, 2), np.tile(fresh, 2)))
    assert np.array_equal(column, every)
    assert (column[1] == 0).all()


def test_it_goes_on_from_a_snapshot_at_any_step():
    looks = list(random_looks(np.random.default_rng(9), (2, 3), 24))
    for cut in range(0, 24, 5):
        first, second = (PosteriorMedian().started(2, 3, epsilon=0.5, window=9) for _ in range(2))
        for look in looks[:cut]:
            first.step(look)
        second.restore(first.snapshot())
        for look in looks[cut:]:
            assert np.array_equal(first.step(look), second.step(look))
            assert np.array_equal(first.high, second.high)


def test_a_wider_coverage_is_a_wider_interval():
    widths = []
    for coverage in (0.5, 0.9, 0.99):
        posterior = PosteriorMedian(coverage).started(1, 2, epsilon=1.0, window=30)
        posterior.step(measured([[20, 9000]], 12.0))
        widths.append(posterior.high - posterior.low)
    assert (widths[0] < widths[1]).all()
    assert (widths[1] < widths[2]).all()
    with pytest.raises(ev.InputError):
        PosteriorMedian(1.0)


def test_bins_learn_from_each_other():
    """Ninety-nine empty bins make a hundredth that shows 6 an empty one; alone it is taken at its word."""
    alone = PosteriorMedian().started(1, 1, epsilon=1.0, window=5)
    among = PosteriorMedian().started(1, 100, epsilon=1.0, window=5)
    looks = np.zeros((1, 100))
    looks[0, 0] = 6
    assert alone.step(measured([[6.0]], 2.0)).item() > 2
    assert among.step(measured(looks, 2.0))[0, 0] == 0
    assert SHARED_LOOKS > PRIOR_LOOKS


@pytest.mark.parametrize("name", ["uniform", "hybrid", "ba"])
def test_it_lowers_the_error_of_other_mechanisms(name):
    stream = np.tile(np.random.default_rng(1).poisson(5, 200)[:, None], 1)
    errors = {}
    for chosen in (None, "posterior-median"):
        mechanism = ev.mechanism(name, epsilon=1, window=20, bins=1, replicas=20, seed=2, filter=chosen)
        errors[chosen] = np.abs(ev.run(mechanism, stream).values - stream).mean()
    assert errors["posterior-median"] < 0.7 * errors[None]


def test_waits_that_it_never_met_before_need_no_more_memory():
    """Drift tables kept for each would be 15 kB: how much a long run needs would depend on the noise."""
    posterior = PosteriorMedian().started(1, 1, epsilon=1.0, window=300)
    arrays = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)  # what else lives in this process is not counted

    def kept_after(waits):
        for wait in waits:
            for _ in range(wait - 1):
                posterior.step(None)
            posterior.step(measured([[4.0]], 100.0))
        return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)

    tracemalloc.start()
    try:
        known = kept_after([2, 2])
        assert kept_after([3, 5, 11, 23, 47, 95, 190]) - known < 15_000
    finally:
        tracemalloc.stop()


def test_many_rows_side_by_side_are_the_same_as_row_after_row(monkeypatch):
    looks = list(random_looks(np.random.default_rng(8), (2, 900), 6))
    runs = []
    for enough in (64, 10**9):
        monkeypatch.setattr(side_by_side, "ENOUGH", enough)
        posterior = PosteriorMedian().started(2, 900, epsilon=1.0, window=20)
        runs.append([posterior.step(look) for look in looks])
    assert np.array_equal(*runs)


def test_a_slice_that_fails_is_heard_of():
    def work(begin, end):
        if end == 10_000:
            raise InputError("a slice")

    with pytest.raises(InputError, match="a slice"):
        in_slices(10_000, work)
