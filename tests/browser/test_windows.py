"""The histogram of the last steps on the dashboard: the largest bins first; it moves with the stream and looks back."""

from __future__ import annotations

import pytest
from running_service import EXACT, configuration, event, running, stream

pytestmark = pytest.mark.browser

BINS = tuple(f"/page/{number}" for number in range(20))


@pytest.fixture
def site(tmp_path):
    settings = stream(tmp_path, bins=BINS, mechanism="rg-baseline", window=1, parameters=EXACT | {"span": 3})
    with running(configuration(tmp_path, [settings])) as up:
        for minute in range(6):
            read = [(place, person) for place in range(20) for person in range(3 + place * (minute % 2))]
            up.post([event(BINS[place], f"{place} {person}", minute) for place, person in read])
            up.pass_steps()
        yield up


@pytest.fixture
def page(browser, site):
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{site.address}/#token={site.tokens['read']}")
    opened.locator("#windows-bars li").first.wait_for()
    yield opened
    context.close()
    assert complaints == []


def bars(page):
    """The rows from top to bottom: names with their values."""
    return page.evaluate(
        """() => [...document.querySelectorAll("#windows-bars li")]
            .sort((one, other) => one.style.getPropertyValue("--rank") - other.style.getPropertyValue("--rank"))
            .map((row) => [row.children[0].textContent, row.children[2].textContent])"""
    )


def test_the_largest_bins_stand_first_and_move(page, site, tmp_path):
    latest = site.client("read").get("/v1/streams/city/releases?latest=1").json()["releases"][0]
    assert "3 steps of 1 minute" in page.locator("#windows-note").inner_text()
    shown = bars(page)
    assert [name for name, _ in shown] == [f"/page/{number}" for number in range(19, 7, -1)]
    assert shown[0][1].split(" ± ")[0] == str(latest["window_values"][19])
    assert float(shown[0][1].split(" ± ")[1]) == round(2 * 2**0.5 * latest["window_scale"][19])
    page.screenshot(path=tmp_path / "windows.png", full_page=True)
    site.post([event(BINS[0], f"new {person}", 6) for person in range(200)])
    site.pass_steps()
    page.wait_for_function(
        """() => [...document.querySelectorAll("#windows-bars li")]
            .some((row) => row.children[0].textContent === "/page/0" && row.style.getPropertyValue("--rank") === "0")"""
    )


def test_it_looks_back_and_comes_again(page, site):
    now = bars(page)
    assert page.locator("#windows-live").is_hidden()
    page.locator("#windows-time").fill("1")
    assert bars(page)[0][1].split(" ± ")[0] == str(3 + 3 + 19)
    page.locator("#windows-live").click()
    assert bars(page) == now


def test_a_bar_puts_its_bin_into_the_chart(page):
    page.locator("#windows-bars button", has_text="/page/12").click()
    assert "/page/12" in page.locator("#chosen").inner_text()


def test_streams_without_histograms_have_no_such_picture(browser, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path)])) as up:
        up.post([event("north", "anna", 0)])
        up.pass_steps()
        opened = browser.new_page()
        opened.goto(f"{up.address}/#token={up.tokens['read']}")
        opened.locator("#chosen li").first.wait_for()
        assert opened.locator("#windows").is_hidden()
        opened.close()
