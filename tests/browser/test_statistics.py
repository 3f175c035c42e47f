"""Sums on the dashboard: what they are stands above the chart and at its axis, and small values are not rounded off."""

from __future__ import annotations

import pytest
from page_waits import wait_for_count
from running_service import configuration, event, running, stream

pytestmark = pytest.mark.browser


@pytest.fixture
def city(tmp_path):
    settings = stream(tmp_path, statistic="sum:fare", between="fare=0,1,0.01", filter="none")
    with running(configuration(tmp_path, [settings])) as up:
        for minute in range(3):
            up.post([event("north", minute=minute) | {"fare": 0.25}, event("south", "ben", minute) | {"fare": 0.12}])
            up.pass_steps()
        yield up


@pytest.fixture
def page(browser, city):
    context = browser.new_context(viewport={"width": 1360, "height": 900})
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{city.address}/#token={city.tokens['read']}")
    opened.locator("#status[data-state=live]").wait_for()
    opened.locator("#chart .ytitle").wait_for()
    yield opened
    context.close()
    assert complaints == []


@pytest.fixture
def several(tmp_path):
    settings = {"statistic": ["people", "mean:fare"], "between": "fare=0,10,0.1", "filter": "none"}
    with running(configuration(tmp_path, [stream(tmp_path, **settings)])) as up:
        for minute in range(3):
            up.post([event("north", name, minute) | {"fare": fare} for name, fare in (("anna", 2.5), ("ben", 5))])
            up.pass_steps()
        yield up


def test_one_of_several_statistics_is_chosen(browser, several):
    context = browser.new_context()
    opened, complaints = context.new_page(), []
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.goto(f"{several.address}/#token={several.tokens['read']}")
    opened.locator("#chart .ytitle").wait_for()
    assert opened.locator("#series-title").inner_text() == "Released people"
    assert opened.locator("#chosen .value").all_inner_texts()[0] == "2"
    opened.locator("#statistic").select_option("mean:fare")
    opened.locator("#chart .ytitle", has_text="mean:fare").wait_for()
    assert opened.locator("#series-title").inner_text() == "Released mean:fare"
    assert opened.locator("#chosen .value").all_inner_texts() == ["3.75", "–"]
    context.close()
    assert complaints == []


def test_people_of_slots_beside_others_are_shown_slot_by_slot(browser, tmp_path):
    settings = {"statistic": ["events", "people/2min"], "filter": "events=repeat,people/2min=none"}
    with running(configuration(tmp_path, [stream(tmp_path, **settings)])) as up:
        for minute in range(5):  # two slots, and the first step of another
            up.post([event("north", name, minute) for name in ("anna", "ben")])
            up.pass_steps()
        context = browser.new_context()
        opened, complaints = context.new_page(), []
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto(f"{up.address}/#token={up.tokens['read']}")
        opened.locator("#chart .ytitle").wait_for()
        opened.locator("#statistic").select_option("people/2min")
        opened.locator("#chart .ytitle", has_text="people/2min").wait_for()
        assert opened.locator("#chosen .value").all_inner_texts()[0] == "2"
        opened.locator("#table-view summary").click()
        wait_for_count(opened.locator("#table-view tbody tr"), 2)
        context.close()
    assert complaints == []


def test_sums_have_their_own_title_axis_and_digits(page, tmp_path):
    assert page.locator("#series-title").inner_text() == "Released sums of fare"
    assert page.locator("#chart .ytitle").text_content() == "sums of fare"
    assert page.locator("#chosen .value").all_inner_texts() == ["0.25", "0.12"]
    assert page.locator("#heat-high").inner_text() == "0.25 or more"
    assert "sums of fare" in page.locator("#health").inner_text()
    assert "cut to the range from 0 to 1 and rounded to units of 0.01" in page.locator("#guarantee").inner_text()
    page.screenshot(path=tmp_path / "sums.png", full_page=True)
