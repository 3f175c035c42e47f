"""The report of a small study: what its page holds, what it shows of true counts, and the command that writes it."""

from __future__ import annotations

import base64
import csv
import html
import json
import re
import zlib
from dataclasses import astuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import eventide as ev
from eventide.bench import build_report, load_study, read_results, run_study
from eventide.bench.report.figures import BAND, write_images
from eventide.bench.report.page_parts import paint
from eventide.bench.report.paper_table import as_latex, table_writer
from eventide.bench.report.scores import read_scores
from eventide.bench.report.streams import read_shown
from eventide.cli import main
from eventide.display.drawings import DISTANCE, HeatMap
from eventide.display.images import check_image, draw
from eventide.errors import InputError

STUDY = """\
title = "Small"
seed = {seed}
repetitions = {repetitions}
metrics = ["mae", "publications"]

[[mechanisms]]
vary.name = ["uniform", "sample", "ba"]

[[streams]]
generator = "seasonal"
length = 60
vary.amplitude = [10, 1000]

[[streams]]
file = "secret.csv"

[[privacy]]
window = 4
vary.epsilon = [0.5, 1.0]

[[privacy]]
epsilon = 1.0
vary.window = [2, 4]
"""
TIDE_STUDY = """\
repetitions = 3
metrics = ["mae"]

[[mechanisms]]
vary.name = ["uniform", "tide"]

[[streams]]
generator = "random-walk"
length = 30
vary.bins = [1, 3]

[[privacy]]
epsilon = 1.0
window = 4
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Results of the study under two seeds, next to the file of counts that nobody may see."""
    place = tmp_path_factory.mktemp("report")
    (place / "secret.csv").write_text("a\n" + "\n".join(str(777_000 + step) for step in range(30)))
    for seed in (1, 2):
        (place / f"study{seed}.toml").write_text(STUDY.format(seed=seed, repetitions=5))
        run_study(load_study(place / f"study{seed}.toml"), place / f"{seed}.parquet")
    return place


@pytest.fixture(scope="module")
def results(folder):
    return read_results(folder / "1.parquet")


@pytest.fixture(scope="module")
def report(results):
    return build_report(results)


def text_of(page):
    body = page.split("<script")[0]
    return html.unescape(re.sub(r"<[^>]+>", " ", body))


def charts_of(page):
    packed = re.search(r'id="data">([^<]*)</script>', page)[1]
    return json.loads(zlib.decompress(base64.b85decode(packed.replace(",", "<"))))


def with_rows(results, change):
    """The same results with changed rows."""
    rows = [change(dict(row)) for row in results.table.to_pylist()]
    table = pa.Table.from_pylist([row for row in rows if row], results.table.schema)
    return results._replace(table=table)


def test_distances_are_those_of_the_results(results):
    scores = read_scores(results)
    places = {(contest.stream, *astuple(contest.setting)): place for place, contest in enumerate(scores.contests)}
    rows = [row for row in results.table.to_pylist() if row["metric"] == "mae"]
    assert len(rows) == scores.deltas.size
    for row in rows:
        place = places[row["stream"], row["experiment"], row["epsilon"], row["window"]]
        assert scores.deltas[place, scores.mechanisms.index(row["mechanism"])] == row["delta"]


def test_streams_get_the_shortest_names_that_tell_them_apart(results):
    shorts = [stream.short for stream in read_scores(results).streams.values()]
    assert shorts == ["seasonal amplitude 10", "seasonal amplitude 1000", "secret.csv"]


def test_the_page_begins_with_the_verdict_and_holds_every_part(report):
    text = text_of(report.page)
    assert all(" ".join(sentence.split()) in " ".join(text.split()) for sentence in report.verdict)
    headings = re.findall(r"<h2>(.*?)</h2>", report.page)
    assert headings == [
        "The verdict",
        "Ranking",
        "How far from the best",
        "Error over w and over epsilon",
        "True and released",
        "What else was measured",
        "The streams",
        "Where we differ from the published benchmark, and why",
        "The benchmark&#x27;s requirements",
        "How to repeat this",
    ]
    assert "NOT MET" in text
    assert "5 repetitions are too few" in text


def test_every_figure_has_a_caption_and_a_table_of_its_values(report):
    figures = re.findall(r"<figure.*?</figure>", report.page, re.DOTALL)
    assert len(figures) == len(report.figures)
    for figure in figures:
        assert "<figcaption>" in figure
        assert "<table>" in figure
        assert figure.count('role="img" aria-label="') == figure.count('class="chart"') > 0


def test_what_a_hidden_stream_holds_is_nowhere_on_the_page_though_it_could_be_read(results, folder):
    report = build_report(results, data=folder)
    charts = charts_of(report.page)
    drawn = json.dumps([chart for name, chart in charts.items() if name.startswith("streams")])
    assert "secret" not in drawn
    assert not re.search(r"777,?0\d\d", text_of(report.page) + json.dumps(charts))


def test_a_hidden_stream_is_drawn_when_the_user_says_it_is_public(results, folder):
    report = build_report(results, public=["secret.csv"], data=folder)
    drawn = [chart for name, chart in charts_of(report.page).items() if name.startswith("streams")]
    assert any(777_000.0 in trace["y"] for chart in drawn for trace in chart["data"])


def test_a_public_stream_that_is_gone_is_left_out_with_a_sentence(results, tmp_path):
    report = build_report(results, public=["secret.csv"], data=tmp_path)
    assert "secret.csv is not shown" in text_of(report.page)


def test_a_stream_that_is_another_now_is_left_out(results):
    about = json.loads(json.dumps(results.about))
    about["streams"]["seasonal length=60 amplitude=10"]["digest"] = "another"
    shown = read_shown(results._replace(about=about), "mae", (), None)
    assert list(shown.looked) == ["seasonal length=60 amplitude=1000"]
    assert "no longer the stream that was studied" in shown.skipped[0]


def test_streams_that_are_left_out_for_one_reason_share_a_sentence(results):
    about = json.loads(json.dumps(results.about))
    for facts in about["streams"].values():
        facts["digest"] = "another"
    (sentence,) = read_shown(results._replace(about=about), "mae", (), None).skipped
    assert sentence.startswith("2 streams (seasonal) are not shown: ")


def test_long_names_of_streams_are_broken_and_their_rows_have_room():
    def painted(*rows):
        ratios = np.ones((len(rows), 1))
        return paint(HeatMap("", list(rows), ["ba"], ratios, DISTANCE, [["1"] for _ in rows], "mechanism"))

    names = [f"bernoulli length {length}, step_factor 1, window_factor 1" for length in range(20)]
    label = painted(*names)["layout"]["yaxis"]["ticktext"][7]
    assert label.replace("<br>", " ") == names[7]
    assert max(map(len, label.split("<br>"))) <= 32
    assert painted(*names)["height"] - painted(*["short"] * 20)["height"] >= 20 * 10  # of ten pixels a line


def test_a_cell_is_shown_as_it_was_run_or_not_at_all(results):
    scores, shown = read_scores(results), read_shown(results, "mae", (), None)
    contest = scores.contests[0]
    cell = shown.released(contest, "ba")
    assert cell.error == pytest.approx(np.abs(cell.released - cell.truth).mean())
    off = with_rows(results, lambda row: row | {"mean": row["mean"] * 1.001})
    assert read_shown(off, "mae", (), None).released(contest, "ba") is None


@pytest.fixture(scope="module")
def tide_study(tmp_path_factory):
    """A mechanism that gives intervals and one that does not, on one bin and on three."""
    place = tmp_path_factory.mktemp("tide") / "study.toml"
    place.write_text(TIDE_STUDY)
    return load_study(place)


@pytest.fixture(scope="module")
def tide_results(tide_study, tmp_path_factory):
    out = tmp_path_factory.mktemp("tide") / "results.parquet"
    run_study(tide_study, out)
    return read_results(out)


def test_a_cell_of_one_bin_is_shown_with_the_intervals_of_its_mechanism(tide_study, tide_results):
    scores, shown = read_scores(tide_results), read_shown(tide_results, "mae", (), None)
    one, three = scores.contests
    cell = next(each for each in tide_study.cells if (each.mechanism.label, each.stream.label) == ("tide", one.stream))
    truth, seed = cell.stream.read(), tide_study.seed_of(cell)
    run = ev.run(ev.Tide(epsilon=1.0, window=4, bins=1, replicas=3, seed=seed), truth)
    interval = shown.released(one, "tide").interval
    assert interval.tolist() == np.stack([run.low[0, :, 0], run.high[0, :, 0]], axis=1).tolist()
    assert shown.released(one, "uniform").interval is None
    assert shown.released(three, "tide").interval is None


def test_intervals_are_a_band_around_the_released_line_and_the_caption_says_so(tide_results):
    report = build_report(tide_results)
    three, one = (figure for figure in report.figures if figure.name.startswith("streams"))
    assert [BAND in figure.caption for figure in (one, three)] == [True, False]
    traces = {
        (figure.name, panel.title): charts_of(report.page)[f"{figure.name}-chart-{number}"]["data"]
        for figure in (one, three)
        for number, panel in enumerate(figure.charts, start=1)
    }
    low, high, released, true = traces.pop((one.name, "tide"))
    assert (low.get("fill"), high["fill"]) == (None, "tonexty")
    assert (np.array(low["y"]) <= released["y"]).all()
    assert (np.array(high["y"]) >= released["y"]).all()
    assert [len(others) for others in traces.values()] == [2, 2, 2]
    assert not any("error_y" in trace for trace in (released, true))
    bands = [len(axes.collections) for axes in draw(one.title, one.charts).axes]
    assert bands == [int(panel.title == "tide") for panel in one.charts]


def test_zeros_cost_the_mean_of_the_counts(results):
    shown = read_shown(results, "mae", (), None)
    means = {label: pytest.approx(looked.truth.mean()) for label, looked in shown.looked.items()}
    assert shown.errors_of_zeros() == means


def test_the_effect_of_a_chosen_mechanism_is_shown(results):
    report = build_report(results, without="ba")
    assert report.verdict[0].startswith("Ba beats the best of all others in ")
    assert "2 mechanisms compete" in report.verdict[2]
    assert [figure.name for figure in report.figures][:3] == ["ranking", "overview", "effect"]
    without, with_ba = report.figures[1].charts
    assert (without.columns, with_ba.columns) == (["uniform", "sample"], ["uniform", "sample", "ba"])
    headings, rows = report.figures[1].table
    assert headings[:3] == ["stream", "uniform, without ba", "sample, without ba"]
    assert {len(row) for row in rows} == {6}


def test_our_own_mechanism_is_chosen_by_itself(results):
    def renamed(row):
        names = {key: "tide" for key in ("mechanism", "mechanism_name") if row[key] == "ba"}
        return row | names | {"stream_source": "file"}  # so that nothing is run again

    report = build_report(with_rows(results, renamed))
    assert report.verdict[0].startswith("Tide beats the best of all others in ")


def test_coverage_has_a_table_where_it_was_measured(results):
    def covered(row):
        return row | {"metric": "coverage", "mean": 0.875} if row["metric"] == "publications" else row

    text = text_of(build_report(with_rows(results, covered)).page)
    assert "Do intervals hold the truth?" in text
    assert "0.875" in text


def test_two_results_are_compared(results, folder):
    report = build_report(results, read_results(folder / "2.parquet"))
    assert report.verdict[0].startswith("Both results hold 36 errors of a mechanism in a cell: ")
    assert "Against the other results" in text_of(report.page)
    same = build_report(results, results)
    assert "36 are the same to the last digit" in same.verdict[0]
    other = with_rows(results, lambda row: row | {"metric": "mse"} if row["metric"] == "mae" else row)
    with pytest.raises(InputError, match="the other results hold no error 'mae'; choose one of mse"):
        build_report(results, other)


def test_images_show_the_values_of_the_page(report):
    for figure in report.figures:
        axes = [each for each in draw(figure.title, figure.charts).axes if each.get_label() != "<colorbar>"]
        assert len(axes) >= len(figure.charts)
    curves = next(figure for figure in report.figures if figure.name == "curves-1")
    lines = draw(curves.title, curves.charts).axes[0].get_lines()
    assert curves.charts[0].curves[0].y in [line.get_ydata().tolist() for line in lines]


def test_results_without_an_error_cannot_be_reported(results):
    with pytest.raises(InputError, match="no error to compare mechanisms by"):
        build_report(with_rows(results, lambda row: row if row["delta"] is None else None))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"metric": "mre"}, "hold no error 'mre'; choose one of mae"),
        ({"without": "bd"}, "'bd' takes no part in these results; choose one of uniform, sample, ba"),
        ({"public": ["nowhere"]}, "hold no stream 'nowhere'"),
        ({"reference": "nowhere.csv"}, "nowhere.csv is no reference"),
    ],
)
def test_what_is_not_there_is_named(results, options, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        build_report(results, **options)


def run(*arguments):
    return CliRunner().invoke(main, ["report", *map(str, arguments)])


@pytest.mark.slow
def test_the_command_writes_page_and_images_and_prints_the_verdict(folder, tmp_path):
    outcome = run(folder / "1.parquet", "--out", tmp_path / "report.html", "--figures", tmp_path / "images")
    assert outcome.exit_code == 0
    assert "mechanisms compete in 12 cells" in outcome.output
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    names = {path.name for path in (tmp_path / "images").iterdir()}
    assert {"ranking.pdf", "ranking.png", "overview.svg", "cells.png", "curves-1.pdf", "streams-1.svg"} <= names
    assert (tmp_path / "images" / "curves-1.pdf").read_bytes().startswith(b"%PDF")


def test_images_are_of_the_kinds_asked_for_and_equal_figures_are_equal_files(report, tmp_path):
    figure = report.figures[0]
    (first,) = write_images([figure], tmp_path / "one", ["pdf"])
    (second,) = write_images([figure], tmp_path / "two", ["pdf"])
    assert first.name == "ranking.pdf"
    assert first.read_bytes() == second.read_bytes()


def test_an_image_of_somebody_else_is_not_replaced(report, tmp_path):
    (mine := tmp_path / "cells.pdf").write_text("mine")
    with pytest.raises(InputError, match=r"cells\.pdf exists, and nothing in it says that eventide wrote it"):
        write_images(report.figures, tmp_path, ["pdf"])
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    mine.unlink()
    figure = report.figures[0]
    assert write_images([figure], tmp_path) == write_images([figure], tmp_path)


@pytest.mark.parametrize("kind", ["pdf", "svg", "png"])
def test_an_image_of_an_older_version_is_replaced(report, tmp_path, kind):
    path = tmp_path / f"plan.{kind}"
    picture = draw(report.figures[0].title, report.figures[0].charts)
    picture.savefig(path, dpi=20)  # without a word of ours, as it was done then
    assert b"eventide" not in path.read_bytes()
    check_image(path)


def test_an_image_of_a_kind_that_names_nobody_is_replaced(tmp_path):
    (tmp_path / "plan.jpg").write_bytes(b"any")
    check_image(tmp_path / "plan.jpg")


def test_a_kind_of_images_needs_a_place_for_them(folder, tmp_path):
    outcome = run(folder / "1.parquet", "--out", tmp_path / "report.html", "--format", "pdf")
    assert outcome.exit_code == 2
    assert "--figures DIR" in outcome.output
    assert not (tmp_path / "report.html").exists()


def test_every_axis_of_every_figure_says_what_it_shows(report):
    titles = {(chart.x_title, chart.y_title) for figure in report.figures for chart in figure.charts}
    assert titles == {
        ("mechanism", "error, times the best of each cell"),
        ("mechanism", "stream"),
        ("privacy setting", "stream"),
        ("window w, in steps", "mean absolute error"),
        ("privacy budget epsilon", "mean absolute error"),
        ("step", "value of all bins"),
    }
    axes = [axis for chart in charts_of(report.page).values() for axis in map(chart["layout"].get, ("xaxis", "yaxis"))]
    assert all(axis["title"]["text"] for axis in axes)


def test_a_page_with_its_script_is_below_two_megabytes(report):
    assert len(report.page.encode()) < 2_000_000


def test_the_command_prints_one_document(folder, tmp_path):
    outcome = run(folder / "1.parquet", folder / "2.parquet", "--out", tmp_path / "report.html", "--json")
    document = json.loads(outcome.output)
    assert document["out"] == str(tmp_path / "report.html")
    assert {rank["mechanism"] for rank in document["ranking"]} == {"uniform", "sample", "ba"}
    assert document["figures"] == []


def test_the_table_of_a_paper_holds_the_means_of_the_results(results, folder, tmp_path):
    written = run(folder / "1.parquet", "--out", tmp_path / "report.html", "--table", tmp_path / "errors.csv")
    assert written.exit_code == 0, written.output
    with (tmp_path / "errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    scores = read_scores(results)
    assert len(rows) == len(scores.contests) == 12
    for row, means, errors in zip(rows, scores.means, scores.errors, strict=True):
        assert [float(row[mechanism]) for mechanism in scores.mechanisms] == means.tolist()
        assert (row["metric"], int(row["repetitions"])) == ("mae", scores.repetitions)
        assert float(row["ba (standard error)"]) == errors[scores.mechanisms.index("ba")]


def test_the_table_in_latex_sets_the_best_of_each_row_in_bold(results):
    odd = with_rows(results, lambda row: row | {"stream_name": "50%_of {us}"} if "secret" in row["stream"] else row)
    scores = read_scores(odd)
    lines = as_latex(scores).splitlines()
    body = lines[lines.index(r"\midrule") + 1 : lines.index(r"\bottomrule")]
    assert len(body) == len(scores.contests)
    for line, winner in zip(body, scores.winners, strict=True):
        cells = line.removesuffix(r" \\").split(" & ")[-len(scores.mechanisms) :]
        assert [cell.startswith(r"\textbf{") for cell in cells].index(True) == winner
    assert any(r"50\%\_of \{us\}" in line for line in body)
    assert lines[0] == f"% mean of mae over {scores.repetitions} repetitions; the least of each row in bold"
    alone = with_rows(results, lambda row: row if "amplitude=10 " in row["stream"] + " " else None)
    assert "seasonal length" in as_latex(read_scores(alone))


@pytest.mark.parametrize("name", ["mine.csv", "mine.tex"])
def test_a_table_replaces_its_like_alone(results, tmp_path, name):
    path = tmp_path / name
    path.write_text(table_writer(path)(read_scores(results, "mae")))
    table_writer(path)
    without_metric = path.read_text().replace(",metric,repetitions", "")  # as older versions wrote it
    path.write_text("\n".join(line for line in without_metric.splitlines() if not line.startswith("% mean of")))
    table_writer(path)
    path.write_text("stream,mine\n% mean of mine")
    with pytest.raises(InputError, match=f"{name} exists, and nothing in it says that eventide wrote it"):
        table_writer(path)


def test_a_table_of_an_unknown_kind_is_refused_before_any_work(folder, tmp_path):
    outcome = run(folder / "1.parquet", "--out", tmp_path / "report.html", "--table", tmp_path / "errors.xlsx")
    assert (outcome.exit_code, "use .csv or .tex" in outcome.output) == (2, True)
    assert not (tmp_path / "report.html").exists()


def test_an_interval_that_does_not_exist_is_null_in_the_document(tmp_path):
    study = STUDY.format(seed=1, repetitions=1).replace('[[streams]]\nfile = "secret.csv"\n', "")
    (tmp_path / "study.toml").write_text(study)
    run_study(load_study(tmp_path / "study.toml"), tmp_path / "results.parquet")
    printed = run(tmp_path / "results.parquet", "--out", tmp_path / "report.html", "--json").output
    ranks = json.loads(printed, parse_constant=pytest.fail)["ranking"]
    assert [(rank["low"], rank["high"]) for rank in ranks] == [(None, None)] * 3


def test_help_shows_an_example():
    assert "eventide report results.parquet --out report.html" in run("--help").output


def test_bad_input_ends_with_a_sentence(folder, tmp_path):
    (tmp_path / "text.parquet").write_text("no results")
    (tmp_path / "begun.parquet.partial").write_text("{}")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "table.parquet")
    (tmp_path / "other.toml").write_text(STUDY.format(seed=1, repetitions=1).replace("length = 60", "length = 50"))
    other = (tmp_path / "other.toml").read_text().replace('[[streams]]\nfile = "secret.csv"\n', "")
    (tmp_path / "other.toml").write_text(other)
    run_study(load_study(tmp_path / "other.toml"), tmp_path / "other.parquet")
    good, out = folder / "1.parquet", tmp_path / "report.html"
    for arguments, sentence in [
        ((tmp_path / "missing.parquet", "--out", out), "missing.parquet is not a file; check the path"),
        (
            (tmp_path / "begun.parquet", "--out", out),
            "the study is not finished; give the `eventide bench` command again",
        ),
        ((tmp_path / "text.parquet", "--out", out), "text.parquet is no file of results"),
        ((tmp_path / "table.parquet", "--out", out), "table.parquet is no file of results"),
        ((good, tmp_path / "other.parquet", "--out", out), "no cell in common"),
        ((good, "--out", tmp_path / "no" / "where.html"), "cannot write"),
        ((good, "--out", tmp_path / "report.pdf"), "must end in .html"),
        ((good, "--out", good), "is the file that is read"),
        ((good, tmp_path / "other.parquet", "--out", tmp_path / "other.parquet"), "is the file that is read"),
        ((good, "--out", out, "--figures", good), "choose another --figures"),
    ]:
        outcome = run(*arguments)
        assert (outcome.exit_code, sentence in outcome.output) == (2, True), outcome.output


def test_images_without_matplotlib_are_refused_before_any_work(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    outcome = run(folder / "1.parquet", "--out", tmp_path / "report.html", "--figures", tmp_path)
    assert (outcome.exit_code, "pip install 'eventide[plots]'" in outcome.output) == (2, True)
    assert not (tmp_path / "report.html").exists()


def test_names_in_results_are_text_wherever_they_stand(results):
    evil = "<script>alert(1)</script>"

    def renamed(row):
        return row | {key: row[key].replace("secret.csv", evil) for key in ("stream", "stream_name")}

    report = build_report(with_rows(results, renamed))
    assert evil not in report.page
    assert "&lt;script&gt;alert(1)" in report.page
