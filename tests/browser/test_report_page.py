"""The report's page in a real browser: it draws what the results hold, fits any screen and loads nothing from outside.

Values are read back from the drawing itself (positions of marks between labelled ticks, texts and colours of cells),
and compared with the file of results, not with what the report computed.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from eventide.bench import build_report, load_study, read_results, run_study

pytestmark = pytest.mark.browser

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 375, "height": 800}, "has_touch": True, "is_mobile": True}
MECHANISMS = ["uniform", "sample", "ba", "bd"]
STUDY = f"""\
repetitions = 6
metrics = ["mae"]

[[mechanisms]]
vary.name = {MECHANISMS}

[[streams]]
generator = "seasonal"
length = 80
vary.amplitude = [10, 100, 1000]

[[privacy]]
window = 8
vary.epsilon = [0.1, 1.0]

[[privacy]]
epsilon = 1.0
vary.window = [4, 8, 20]
"""
COLOURS = ["fde725", "9fda3a", "4ac16d", "1fa187", "277f8e", "365c8d", "46327e", "440154"]  # 1 to 100 times the best

# Values of the marks of a curve, by where they stand between the labelled ticks of the axis.
READ_CURVE = """([chart, name]) => {
  const div = document.getElementById(chart);
  const number = (text) => parseFloat(text.replaceAll(",", ""));
  const middle = (box, low, high) => (box[low] + box[high]) / 2;
  const ticks = [...div.querySelectorAll(".ytick > text")]
    .map((tick) => [middle(tick.getBoundingClientRect(), "top", "bottom"), Math.log(number(tick.textContent))]);
  const [first, last] = [ticks[0], ticks[ticks.length - 1]];
  const value = (y) => Math.exp(first[1] + (y - first[0]) / (last[0] - first[0]) * (last[1] - first[1]));
  const place = div.data.findIndex((trace) => trace.name === name);
  const marks = div.querySelectorAll(".scatterlayer .trace")[place].querySelectorAll("path.point");
  return [...marks].map((mark) => value(middle(mark.getBoundingClientRect(), "top", "bottom")));
}"""
# Texts in the cells of a heat map, row by row.
READ_TEXTS = """(chart) => {
  const cells = [...document.querySelectorAll(`#${chart} .heatmap-label text`)].map((text) => {
    const box = text.getBoundingClientRect();
    return [Math.round((box.top + box.bottom) / 2), Math.round((box.left + box.right) / 2), text.textContent];
  });
  return cells.sort((one, other) => one[0] - other[0] || one[1] - other[1]).map((cell) => cell[2]);
}"""
# Colours in the middle of the cells of a heat map, row by row.
READ_COLOURS = """async ([chart, rows, columns]) => {
  const picture = new Image();
  picture.src = document.querySelector(`#${chart} .heatmaplayer image`).getAttribute("href");
  await picture.decode();
  const canvas = Object.assign(document.createElement("canvas"), {width: picture.width, height: picture.height});
  const pen = canvas.getContext("2d", {willReadFrequently: true});
  pen.drawImage(picture, 0, 0);
  const found = [];
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const [x, y] = [(column + 0.5) * picture.width / columns, (row + 0.5) * picture.height / rows];
    found.push([...pen.getImageData(Math.floor(x), Math.floor(y), 1, 1).data].slice(0, 3));
  }
  return found;
}"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("report")
    (place / "study.toml").write_text(STUDY)
    run_study(load_study(place / "study.toml"), place / "results.parquet")
    report = build_report(read_results(place / "results.parquet"), without="ba")
    (place / "report.html").write_text(report.page, encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def rows(folder):
    return read_results(folder / "results.parquet").table.to_pylist()


@pytest.fixture
def opened(quiet, folder):
    address = (folder / "report.html").as_uri()
    return lambda **screen: quiet(address, "#cells-chart-4 .heatmaplayer image", **screen)


def figures(rows, column, **wanted):
    return [row[column] for row in rows if all(row[key] == value for key, value in wanted.items())]


def once(rows):
    """The rows without those of settings that an experiment before has, too."""
    first = {}
    for row in rows:
        first.setdefault((row["stream"], row["mechanism"], row["metric"], row["epsilon"], row["window"]), row)
    return list(first.values())


def stream(amplitude):
    return f"seasonal length=80 amplitude={amplitude}"


def colour_of(ratio):
    """The colour of a distance from the best, by straight lines between the colours of the scale."""
    stops = np.array([[int(code[i : i + 2], 16) for i in (0, 2, 4)] for code in COLOURS])
    place = min(math.log10(ratio) / 2, 1.0) * (len(stops) - 1)
    return [np.interp(place, range(len(stops)), stops[:, channel]) for channel in range(3)]


def test_curves_show_the_errors_of_the_results(opened, rows):
    page = opened(**DESKTOP)
    for number, amplitude in enumerate((10, 100, 1000), start=1):
        page.locator("#curves-1").locator("xpath=..").locator("select").select_option(f"curves-{number}")
        page.locator(f"#curves-{number}-chart-2 .scatterlayer path.point").first.wait_for()
        for chart, fixed, axis in ((1, {"epsilon": 1.0}, "window"), (2, {"window": 8}, "epsilon")):
            swept = sorted(once(rows), key=lambda row, axis=axis: row[axis])
            for mechanism in MECHANISMS:
                drawn = page.evaluate(READ_CURVE, [f"curves-{number}-chart-{chart}", mechanism])
                wanted = {"mechanism": mechanism, "stream": stream(amplitude), **fixed}
                assert drawn == pytest.approx(figures(swept, "mean", **wanted), rel=0.05)


def test_the_overview_shows_geometric_means_of_distances(opened, rows):
    texts = opened(**DESKTOP).evaluate(READ_TEXTS, "overview-chart-2")
    means = [
        np.exp(np.mean(np.log(figures(rows, "delta", stream=stream(amplitude), mechanism=mechanism))))
        for amplitude in (10, 100, 1000)
        for mechanism in MECHANISMS
    ]
    assert [float(text) for text in texts] == pytest.approx(means, rel=0.05, abs=0.0501)


def test_without_the_chosen_mechanism_distances_are_from_the_best_of_the_others(opened, rows):
    texts = opened(**DESKTOP).evaluate(READ_TEXTS, "overview-chart-1")
    others = [row for row in rows if row["mechanism"] != "ba"]
    contests = {(row["stream"], row["experiment"], row["epsilon"], row["window"]) for row in others}
    logs = {}
    for contest in sorted(contests):
        here = [r for r in others if (r["stream"], r["experiment"], r["epsilon"], r["window"]) == contest]
        for row in here:
            log = math.log(row["mean"] / min(each["mean"] for each in here))
            logs.setdefault((row["stream"], row["mechanism"]), []).append(log)
    names = [name for name in MECHANISMS if name != "ba"]
    means = [np.exp(np.mean(logs[stream(amplitude), name])) for amplitude in (10, 100, 1000) for name in names]
    assert [float(text) for text in texts] == pytest.approx(means, rel=0.05, abs=0.0501)


def test_cells_have_the_colours_of_their_distances(opened, rows):
    page = opened(**DESKTOP)
    for number, mechanism in enumerate(MECHANISMS, start=1):
        drawn = page.evaluate(READ_COLOURS, [f"cells-chart-{number}", 3, 4])
        deltas = [figures(once(rows), "delta", stream=stream(a), mechanism=mechanism) for a in (10, 100, 1000)]
        expected = [colour_of(delta) for row in deltas for delta in row]
        assert np.abs(np.array(drawn) - np.array(expected)).max() <= 3


def test_the_ranking_shows_geometric_means(opened, rows):
    page = opened(**DESKTOP)
    for mechanism in MECHANISMS:
        (drawn,) = page.evaluate(READ_CURVE, ["ranking-chart-1", mechanism])
        expected = np.exp(np.mean(np.log(figures(rows, "delta", mechanism=mechanism))))
        assert drawn == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everything_fits_the_screen_and_follows_its_colours(opened, screen, scheme):
    page = opened(color_scheme=scheme, **screen)
    page.evaluate("document.querySelectorAll('details').forEach((details) => { details.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    too_wide = (
        "[...document.querySelectorAll('.chart svg')].filter(s => s.getBoundingClientRect().right > innerWidth).length"
    )
    assert page.evaluate(too_wide) == 0
    ink = page.evaluate("getComputedStyle(document.querySelector('.ytick text')).fill")
    assert ink == page.evaluate("getComputedStyle(document.body).color")
    assert ink == ("rgb(23, 32, 43)" if scheme == "light" else "rgb(230, 235, 241)")


def test_print_is_light_and_fits_the_paper(opened, tmp_path):
    page = opened(color_scheme="dark", **DESKTOP)
    page.evaluate(
        "addEventListener('beforeprint', () => { window.width = document.querySelector('main').offsetWidth; })"
    )
    page.pdf(path=tmp_path / "report.pdf", format="A4")
    assert page.evaluate("width") < 700  # of 794 pixels, less the margins
    page.emulate_media(media="print")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.querySelector('.ytick text')).fill") == "rgb(23, 32, 43)"


def test_what_is_outside_would_be_noticed_and_refused(browser, folder):
    page = browser.new_context().new_page()
    page.goto((folder / "report.html").as_uri())
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text) as refused:
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/pixel.png'}))")
    assert "https://example.org/pixel.png" in refused.value.text
    page.context.close()
