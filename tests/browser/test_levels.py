"""Levels on the dashboard: it starts at the total, opens a district, and every sum is that of the rows below it."""

from __future__ import annotations

import pytest
from running_service import configuration, event, running, stream

pytestmark = pytest.mark.browser

BINS = ("Alder Green", "Alder Road", "Birch Hill", "Birch Road", "Cedar Green", "Cedar Road")
LEVELS = {"quarter": [name.split()[0] for name in BINS], "kind": [name.split()[1] for name in BINS]}
LEVELS["kind"][2] = "Green"


@pytest.fixture
def city(tmp_path):
    settings = stream(tmp_path, bins=BINS, levels=LEVELS)
    with running(configuration(tmp_path, [settings])) as up:
        for minute in range(6):
            people = [(place, f"{place} {person}") for place, name in enumerate(BINS) for person in range(3 + place)]
            up.post([event(BINS[place], name, minute) for place, name in people])
            up.pass_steps()
        yield up


@pytest.fixture
def page(browser, city):
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{city.address}/#token={city.tokens['read']}")
    opened.locator("#status[data-state=live]").wait_for()
    opened.wait_for_function("document.getElementById('open-sum').textContent !== ''")
    yield opened
    context.close()
    assert complaints == []


def latest(city):
    return city.client("read").get("/v1/streams/city/releases?latest=1").json()["releases"][0]


def names(page):
    return page.locator("#heat-names span").all_inner_texts()


def test_it_starts_at_the_total_and_opens_a_district(page, city, tmp_path):
    release = latest(city)
    assert page.locator("#chosen .name").all_inner_texts() == ["total"]
    assert page.locator("#open-name").inner_text() == "total"
    assert page.locator("#open-sum").inner_text() == f"{sum(release['values']):,}"
    assert names(page) == ["Green", "Road"]
    page.locator("#divided").select_option("quarter")
    assert names(page) == ["Alder", "Birch", "Cedar"]
    page.locator("#heat").focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    assert page.locator("#open-name").inner_text() == "Birch"
    assert names(page) == ["Birch Hill", "Birch Road"]
    assert page.locator("#open-sum").inner_text() == f"{sum(release['values'][2:4]):,}"
    assert "Birch" in page.locator("#chosen").inner_text()
    page.locator("#open-total").click()
    assert names(page) == ["Alder", "Birch", "Cedar"]
    page.screenshot(path=tmp_path / "levels.png", full_page=True)


def test_a_release_that_arrives_moves_the_sum(page, city):
    before = page.locator("#open-sum").inner_text()
    city.post([event(BINS[0], f"new {person}", 6) for person in range(50)])
    city.pass_steps()
    page.wait_for_function("old => document.getElementById('open-sum').textContent !== old", arg=before)
    release = latest(city)
    assert release["levels"]["total"]["values"] == [sum(release["values"])]
    page.wait_for_function(
        "sum => document.getElementById('open-sum').textContent === sum", arg=f"{sum(release['values']):,}"
    )
