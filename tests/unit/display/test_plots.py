"""Pictures of runs, ledgers, plans and studies: what is drawn is what was released, spent, planned and measured."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import eventide as ev
from eventide import windows
from eventide.bench import load_study, read_results, run_study
from eventide.display.drawings import Curve, Panel, Style
from eventide.display.images import draw
from eventide.errors import InputError
from eventide.mechanisms.pictures import released
from eventide.privacy.ledger import WindowLedger

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib: pip install 'eventide[plots]'")
matplotlib.use("Agg")

COUNTS = np.random.default_rng(3).poisson([5, 400, 60, 1, 90, 20], (30, 6))
STUDY = """\
seed = 1
repetitions = 4
metrics = ["mae", "mse"]

[[mechanisms]]
vary.name = ["uniform", "sample", "ba"]

[[streams]]
generator = "seasonal"
length = 60
vary.amplitude = [10, 1000]

[[privacy]]
window = 5
vary.epsilon = {epsilons}
"""


def run_of(name="ba", counts=COUNTS, **settings):
    return ev.run(ev.mechanism(name, epsilon=1, window=4, bins=counts.shape[-1], seed=1, **settings), counts)


def lines(axes):
    """The lines of a panel by the name that the legend gives them, each as x and y."""
    return {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in axes.get_lines()}


def amplitude_of(row):
    return json.loads(row["stream_parameters"])["amplitude"]


def level_in_each_step(line, begin):
    """The values of a curve that stays level through each step."""
    x, y = map(np.asarray, line)
    assert np.array_equal(x, begin + np.repeat(np.arange(len(x) // 2 + 1) - 0.5, 2)[1:-1])
    assert np.array_equal(y[::2], y[1::2])
    return y[::2]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("study")
    for name, epsilons in {"several": "[0.1, 1.0]", "one": "[1.0]"}.items():
        (folder / f"{name}.toml").write_text(STUDY.format(epsilons=epsilons))
        run_study(load_study(str(folder / f"{name}.toml")), folder / f"{name}.parquet")
    return folder


def test_a_run_is_drawn_as_it_was_released():
    run = run_of()
    *panels, spending = run.plot().axes
    for place, axes in zip([1, 4, 2, 5], panels, strict=True):
        drawn = lines(axes)
        assert set(drawn) == {"released", "looks"}
        assert axes.get_title() == str(place)
        assert np.array_equal(level_in_each_step(drawn["released"], 0), run.values[:, place])
        assert np.array_equal(drawn["looks"][0], np.flatnonzero(run.fresh))
        assert max(drawn["looks"][1]) < min(0, run.values[:, place].min())
    steps, spent = lines(spending)["spent"]
    assert np.array_equal(steps, np.flatnonzero(run.spent))
    assert np.array_equal(spent, run.spent[run.spent > 0])
    assert spending.get_lines()[0].get_linestyle() == "None", "charges are points, not a comb"
    assert 0 < np.count_nonzero(run.fresh) < len(COUNTS)


def test_bins_can_be_chosen_by_name():
    run = ev.run(ev.Uniform(epsilon=1, window=4, bins=list("abcdef"), noise=ev.noise.Zero()), COUNTS)
    first, second, _ = run.plot(bins=["f", "a"]).axes
    assert (first.get_title(), second.get_title()) == ("f", "a")
    assert np.array_equal(level_in_each_step(lines(first)["released"], 0), COUNTS[:, 5])
    assert np.array_equal(level_in_each_step(lines(run_of("uniform").plot([3]).axes[0])["released"], 0).shape, (30,))
    with pytest.raises(InputError, match="there is no bin 'g'; choose one of a, b, c, d, e, f"):
        run.plot(["a", "g"])
    with pytest.raises(InputError, match="name at least one"):
        run.plot([])


def test_a_name_alone_is_one_bin():
    run = ev.run(ev.Uniform(epsilon=1, window=4, bins=["north", "south"], noise=ev.noise.Zero()), COUNTS[:, :2])
    assert run.plot(bins="south").axes[0].get_title() == "south"
    with pytest.raises(InputError, match=r"there is no bin 'nort'; did you mean 'north'\?"):
        run.plot(bins="nort")


def test_truth_is_drawn_only_where_it_is_handed_in():
    run = run_of()
    for place, axes in zip([1, 4, 2, 5], run.plot(truth=COUNTS).axes[:-1], strict=True):
        assert np.array_equal(level_in_each_step(lines(axes)["true"], 0), COUNTS[:, place])
    assert not any("true" in lines(axes) for axes in run.plot().axes)
    with pytest.raises(InputError, match=r"truth has the shape \(30, 2\)"):
        run.plot(truth=COUNTS[:, :2])


def test_true_counts_with_names_are_drawn_in_the_panel_of_their_name():
    run = ev.run(ev.Uniform(epsilon=1, window=4, bins=["north", "south"]), COUNTS[:, :2])
    given = {"south": COUNTS[:, 1], "north": COUNTS[:, 0]}
    drawn = lines(run.plot(bins="south", truth=given).axes[0])["true"]
    assert np.array_equal(level_in_each_step(drawn, 0), COUNTS[:, 1])
    with pytest.raises(InputError, match="missing: 'south'; unknown: 'east'"):
        run.plot(truth={"east": COUNTS[:, 1], "north": COUNTS[:, 0]})


def test_an_interval_is_a_band_around_the_line():
    run = run_of("uniform", filter="posterior-median")
    names = [text.get_text() for text in run.plot().legends[0].get_texts()]
    assert names == ["released", "from low to high", "looks", "spent"]
    assert run.low.shape == run.high.shape == run.values.shape
    assert (run.low <= run.values).all()
    assert (run.values <= run.high).all()
    (band,) = run.plot([1]).axes[0].collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].min() == run.low[:, 1].min()
    assert corners[:, 1].max() == run.high[:, 1].max()
    assert run_of("uniform").low is None
    assert len(run_of("uniform").plot([1]).axes[0].collections) == 0
    nowhere = np.full((3, 1), np.nan)
    assert released([0, 1, 2, 3], np.ones((3, 1)), nowhere, nowhere, 0).band == ""


def test_a_run_that_goes_on_is_drawn_where_it_goes_on():
    mechanism = ev.Uniform(epsilon=1, window=4, bins=6, noise=ev.noise.Zero())
    ev.run(mechanism, COUNTS[:10])
    run = ev.run(mechanism, COUNTS[10:])
    assert run.begin == 10
    assert np.array_equal(level_in_each_step(lines(run.plot([1]).axes[0])["released"], 10), COUNTS[10:, 1])


def test_of_replicas_one_is_drawn():
    run = run_of(replicas=3)
    for replica in range(3):
        drawn = lines(run.plot([1], replica=replica).axes[0])
        assert np.array_equal(level_in_each_step(drawn["released"], 0), run.values[replica, :, 1])
        assert np.array_equal(drawn["looks"][0], np.flatnonzero(run.fresh[replica]))
    with pytest.raises(InputError, match="there is no replica 3"):
        run.plot(replica=3)


def test_a_run_without_steps_cannot_be_drawn():
    with pytest.raises(InputError, match="nothing to draw"):
        run_of(counts=COUNTS[:0]).plot()


def test_a_ledger_is_drawn_with_its_sum_and_its_bounds():
    ledger = WindowLedger(epsilon=1, window=4)
    amounts = [300, 0, 200, 100, 50, 400]
    for amount in amounts:
        ledger.charge(amount * 10**6)
        ledger.advance()
    ledger.charge(10**6)
    drawn = lines(ledger.plot().axes[0])
    assert np.allclose(level_in_each_step(drawn["charged to the step"], 3), [0.1, 0.05, 0.4, 0.001])
    assert np.allclose(level_in_each_step(drawn["sum over the window"], 3), [0.1, 0.15, 0.55, 0.551])
    assert list(drawn["epsilon"][1]) == [1, 1]
    assert list(drawn["fullest window so far"][1]) == [0.75, 0.75]
    assert "open spans" not in drawn


@pytest.mark.parametrize("window", [1, 3, 100])
@pytest.mark.parametrize("name", ["uniform", "ba", "dsat", "spas", "pegasus"])
def test_the_drawn_sum_is_what_the_window_holds(name, window):
    mechanism = ev.mechanism(name, epsilon=1, window=window, bins=6, seed=1)
    for row in COUNTS:
        _, charges, spans = mechanism.ledger.window_charges()
        assert charges.sum(axis=0) + spans == 10**9 - mechanism.ledger.left_nano()
        mechanism.release(row)
    drawn = lines(mechanism.ledger.plot().axes[0])
    assert drawn["sum over the window"][1][-1] == pytest.approx(1 - mechanism.ledger.left(), abs=1e-12)


def test_open_spans_are_part_of_the_sum():
    ledger = WindowLedger(epsilon=1, window=2)
    ledger.open_span(250_000_000)
    for _ in range(5):
        ledger.advance()
    drawn = lines(ledger.plot().axes[0])
    assert list(drawn["open spans"][1]) == [0.25, 0.25]
    assert list(level_in_each_step(drawn["sum over the window"], 4)) == [0.25, 0.25]
    assert list(level_in_each_step(drawn["charged to the step"], 4)) == [0, 0]
    ledger.close_span()
    drawn = lines(ledger.plot().axes[0])
    assert "open spans" not in drawn
    assert list(level_in_each_step(drawn["sum over the window"], 4)) == [0, 0.25]
    assert list(level_in_each_step(drawn["charged to the step"], 4)) == [0, 0.25]


def test_of_several_accounts_the_fullest_is_drawn():
    ledger = WindowLedger(epsilon=1, window=2, replicas=2, bins=3)
    ledger.charge(np.array([[1, 2, 3], [4, 9, 5]]) * 10**8)
    assert list(lines(ledger.plot().axes[0])["charged to the step"][1]) == [0.9, 0.9]


def test_a_plan_is_drawn_with_the_error_of_every_query():
    queries = [ev.Query(20, 5, "often"), ev.Query(120, 60)]
    plan = windows.plan(queries)
    slots, errors = plan.plot(queries[0]).axes
    assert len(slots.collections) == len(plan.scheme.partitions)
    everything, chosen = errors.get_lines()
    assert np.allclose(everything.get_ydata(), np.sqrt(plan.query_errors))
    assert np.allclose(chosen.get_ydata(), np.sqrt(plan.query_errors[0]))
    assert [label.get_text() for label in errors.get_xticklabels()] == ["often", "120 every 60"]
    assert errors.get_ylim()[0] == 0


def test_many_queries_are_drawn_by_the_length_of_their_windows():
    plan = windows.plan([ev.Query(10 * number, 10) for number in range(20, 0, -1)])
    everything, _ = plan.plot().axes[1].get_lines()
    assert list(everything.get_xdata()) == [10 * number for number in range(1, 21)]
    assert np.allclose(everything.get_ydata(), np.sqrt(plan.query_errors)[::-1])


def test_results_are_drawn_as_distances_from_the_best(results):
    several = read_results(results / "several.parquet")
    heat, bar = several.plot().axes
    rows = [row for row in several.table.to_pylist() if row["metric"] == "mae"]
    drawn = 100 ** np.array(heat.images[0].get_array())
    for line, amplitude in zip(drawn, (10, 1000), strict=True):
        for distance, name in zip(line, ["uniform", "sample", "ba"], strict=True):
            own = [row["delta"] for row in rows if row["mechanism"] == name and amplitude_of(row) == amplitude]
            assert len(own) == 2
            assert distance == pytest.approx(np.sqrt(np.prod(own)))
    assert [label.get_text() for label in heat.get_xticklabels()] == ["uniform", "sample", "ba"]
    assert bar.get_ylabel() == "times the best error"


def test_of_one_stream_errors_are_drawn_as_curves(results):
    several = read_results(results / "several.parquet")
    for metric in ("mae", "mse"):
        (axes,) = several.plot("amplitude 10", metric).axes
        drawn = [line for line in axes.get_lines() if len(line.get_xdata()) == 2 and line.get_linestyle() == "-"]
        rows = [row for row in several.table.to_pylist() if row["metric"] == metric and amplitude_of(row) == 10]
        for name, line in zip(["uniform", "sample", "ba"], drawn, strict=True):
            assert list(line.get_xdata()) == [0.1, 1.0]
            assert list(line.get_ydata()) == [row["mean"] for row in rows if row["mechanism"] == name]
    with pytest.raises(InputError, match="choose one of 'amplitude 10', 'amplitude 1000'"):
        several.plot("amplitude 5")
    with pytest.raises(InputError, match="under one setting alone"):
        read_results(results / "one.parquet").plot("amplitude 10")


def pictures():
    mechanism = ev.Uniform(epsilon=1, window=4, bins=["$a$", "b_{$"], seed=1)
    yield ev.run(mechanism, [[1, 2], [3, 4]]).plot()
    yield mechanism.ledger.plot()
    yield windows.plan([ev.Query(4, 2, "$x_{$")]).plot()


def test_a_picture_shows_itself_and_takes_names_as_they_are():
    for picture in pictures():
        assert picture._repr_png_().startswith(b"\x89PNG")
        assert isinstance(picture, matplotlib.figure.Figure)


@pytest.mark.parametrize("thing", ["run", "ledger", "plan", "results"])
def test_without_matplotlib_plotting_says_what_to_install(thing, results, monkeypatch):
    run = run_of()
    plotted = {
        "run": run,
        "ledger": WindowLedger(epsilon=1, window=2),
        "plan": windows.plan([ev.Query(20, 5)]),
        "results": read_results(results / "one.parquet"),
    }[thing]
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(InputError, match=r"pip install 'eventide\[plots\]'"):
        plotted.plot()
    assert "<strong>" in plotted._repr_html_()


@pytest.mark.slow
def test_matplotlib_is_loaded_by_drawing_alone():
    code = (
        "import sys, eventide as ev; mech = ev.Uniform(epsilon=1, window=2, bins=2); run = ev.run(mech, [[1, 2]]);"
        "[thing._repr_html_() for thing in (mech, run, mech.ledger)]; import eventide.bench;"
        "sys.exit('matplotlib' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert subprocess.run([sys.executable, "-c", code.replace("sys.exit", "run.plot(); sys.exit")]).returncode == 1


@pytest.mark.parametrize(("values", "shown", "hidden"), [([40, 90], "60", ""), ([3, 90_000], "10,000", "20")])
def test_a_logarithmic_axis_has_plain_numbers_and_not_too_many(values, shown, hidden):
    picture = draw("errors", [Panel("", "w", "error", [Curve("ba", Style("#000000"), [1.0, 2.0], values)])])
    picture.draw_without_rendering()
    axis = picture.axes[0].yaxis
    labels = {label.get_text() for which in ("major", "minor") for label in axis.get_ticklabels(which=which)}
    assert shown in labels
    assert hidden not in labels - {""}
    assert not any("$" in label or "e+" in label for label in labels)
