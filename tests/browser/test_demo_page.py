"""The demo's page in a real browser: everything is drawn, everything reacts, and nothing is asked of the network."""

from __future__ import annotations

import pytest
from page_waits import wait_for_count

from eventide.cli.demo_page import build_page, publish_city
from eventide.streams.city import build_city

pytestmark = pytest.mark.browser

DESKTOP = {"viewport": {"width": 1280, "height": 900}}
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    town = build_city(people=2000, days=2, steps_per_day=48)
    published = [publish_city(town, name, epsilon=1.0, window=48) for name in ("tide", "uniform", "sample")]
    file = tmp_path_factory.mktemp("page") / "city.html"
    file.write_text(build_page(town, published, epsilon=1.0, window=48), encoding="utf-8")
    return file.as_uri()


@pytest.fixture
def opened(quiet, address):
    return lambda **screen: quiet(address, "#budget .scatterlayer path.js-line", **screen)


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("screen", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_every_chart_is_drawn_and_fits_the_screen(opened, screen, scheme, tmp_path):
    page = opened(color_scheme=scheme, **screen)
    assert page.locator("#series .scatterlayer path.js-fill").count() == 1  # the band
    assert page.locator("#series .scatterlayer path.js-line").count() == 4
    assert page.locator("#heat-true .heatmaplayer image").count() == 1
    assert page.locator("#heat-private .heatmaplayer image").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= screen["viewport"]["width"]
    page.screenshot(path=tmp_path / "page.png", full_page=True)
    assert (tmp_path / "page.png").stat().st_size > 20_000


def test_choosing_a_place_or_a_mechanism_draws_other_lines(opened):
    page = opened(**DESKTOP)
    private_line = page.locator("#series .scatterlayer path.js-line").last
    first = private_line.get_attribute("d")
    page.get_by_role("button", name="Uniform").click()
    wait_for_count(page.locator("#series .scatterlayer path.js-fill"), 0)
    second = private_line.get_attribute("d")
    page.get_by_label("Place").select_option("The whole city")
    third = private_line.get_attribute("d")
    assert len({first, second, third}) == 3
    assert page.locator("#series-title").inner_text() == "The whole city, true and private"
    assert "spent by uniform" in page.locator("#budget-text").inner_text()


def test_the_page_follows_a_change_of_colour_scheme(opened):
    page = opened(color_scheme="light", **DESKTOP)
    light = background(page), page.locator("#heat-true image").get_attribute("href")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(
        "old => document.querySelector('#heat-true image').getAttribute('href') !== old", arg=light[1]
    )
    assert background(page) != light[0]


def test_what_is_outside_would_be_noticed_and_refused(browser, address):
    page = browser.new_context().new_page()
    page.goto(address)
    with page.expect_console_message(lambda message: "Content Security Policy" in message.text) as refused:
        page.evaluate("document.body.append(Object.assign(new Image(), {src: 'https://example.org/pixel.png'}))")
    assert "https://example.org/pixel.png" in refused.value.text
    page.context.close()
