"""The page of a choice in a real browser: what is drawn is what was found, and nothing is asked of the network."""

from __future__ import annotations

import numpy as np
import pytest

from eventide.bench import choose, describe
from eventide.cli.choose_result import build_page
from eventide.cli.html_files import write_page

pytestmark = pytest.mark.browser

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 375, "height": 812}, "has_touch": True, "is_mobile": True}
CHARTS = ["candidates", "series", "over-window", "over-epsilon"]


@pytest.fixture(scope="module")
def choice():
    stream = describe(level=300, amplitude=200, season=30, steps=90, bins=5)
    return choose(stream, epsilon=1, window=10, mechanisms=["hybrid", "ba"], repetitions=3, hide=4)


@pytest.fixture(scope="module")
def address(choice, tmp_path_factory):
    file = tmp_path_factory.mktemp("page") / "choice.html"
    write_page(file, build_page(choice, "eventide choose --level 300"))
    return file.as_uri()


@pytest.fixture
def opened(quiet, address):
    def open_page(where=address, **screen):
        return quiet(where, "#over-epsilon .scatterlayer path.js-line", **screen)

    return open_page


def drawn(page, chart):
    """The lines and marks of a chart as the browser holds them, by name."""
    return page.evaluate(
        "id => document.getElementById(id).data.map(({name, x, y}) => ({name, x: Array.from(x), y: Array.from(y)}))",
        chart,
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_chart_is_drawn_and_fits_the_screen(opened, screen, scheme):
    page = opened(color_scheme=scheme, **screen)
    for chart in CHARTS:
        assert page.locator(f"#{chart} .scatterlayer .trace").count() >= 2
        assert page.locator(f"#{chart}").bounding_box()["width"] <= screen["viewport"]["width"]
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]


def test_candidates_are_drawn_at_their_errors(opened, choice):
    page = opened(**DESKTOP)
    others, recommended, zeros, medians = drawn(page, "candidates")
    assert dict(zip(others["y"], others["x"], strict=True)) == {
        trial.label: trial.error for trial in choice.candidates[1:]
    }
    assert (recommended["y"], recommended["x"]) == ([choice.recommended.label], [choice.recommended.error])
    assert (zeros["name"], zeros["x"][0]) == ("all zeros", choice.level)
    assert (medians["name"], medians["x"][0]) == ("bin medians", choice.movement)
    assert page.locator("#candidates .points path.point").count() == len(choice.candidates)
    assert page.locator("#candidates .errorbar").count() == len(choice.candidates)
    assert page.locator("#verdict").inner_text() == choice.verdict
    assert page.locator("#table tbody tr").count() == len(choice.candidates) + 2
    assert page.locator("#table tr.recommended td").first.inner_text() == choice.recommended.label


def test_costs_are_drawn_over_the_settings(opened, choice):
    page = opened(**DESKTOP)
    for chart, trials, setting in (
        ("over-window", choice.over_window, "window"),
        ("over-epsilon", choice.over_epsilon, "epsilon"),
    ):
        *lines, zeros = drawn(page, chart)
        found = {(line["name"], x): y for line in lines for x, y in zip(line["x"], line["y"], strict=True)}
        assert found == {(trial.label, getattr(trial, setting)): trial.error for trial in trials}
        assert set(zeros["y"]) == {choice.level}


def test_true_and_released_lines_are_those_of_the_chosen_bin(opened, choice):
    page = opened(**DESKTOP)
    busiest = int(np.argmax(choice.history.counts.sum(axis=0)))
    true, released = drawn(page, "series")
    assert true["y"] == choice.history.counts[:, busiest].tolist()
    assert released["y"] == choice.released[:, busiest].tolist()
    page.get_by_label("Show").select_option("all bins together")
    true, released = drawn(page, "series")
    assert true["y"] == choice.history.counts.sum(axis=1).tolist()
    assert released["y"] == choice.released.sum(axis=1).tolist()


def test_the_page_follows_a_change_of_colour_scheme(opened):
    page = opened(color_scheme="light", **DESKTOP)
    line = page.locator("#series path.js-line").nth(1)
    light = line.evaluate("line => line.style.stroke")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "old => document.querySelectorAll('#series path.js-line')[1].style.stroke !== old", arg=light
    )
    assert line.evaluate("line => line.style.stroke") != light


def test_a_useless_release_is_called_so_and_remedies_are_listed(opened, tmp_path):
    useless = choose(describe(level=1, steps=60, bins=4), epsilon=0.1, window=20, mechanisms=["ba"], repetitions=2)
    write_page(tmp_path / "useless.html", build_page(useless, "eventide choose --level 1"))
    page = opened((tmp_path / "useless.html").as_uri(), **PHONE)
    assert page.locator("#verdict.useless").inner_text().startswith("Nothing here is worth publishing")
    assert page.locator("#remedies li").all_inner_texts() == [str(remedy) for remedy in useless.remedies]
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
