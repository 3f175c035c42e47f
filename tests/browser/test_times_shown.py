"""Names and times of the dashboard: the heat map has both, and times are those of the zone that was chosen."""

from __future__ import annotations

import pytest
from running_service import configuration, event, running, stream

pytestmark = pytest.mark.browser

ROADS = tuple(f"road {number:03}" for number in range(900))
STEPS = 40


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    folder = tmp_path_factory.mktemp("times")
    streams = [stream(folder, zone="Asia/Kolkata"), stream(folder, "roads", bins=ROADS)]
    with running(configuration(folder, streams)) as up:
        up.post([event(minute=0)])
        up.pass_steps_of_all(STEPS)
        yield up


@pytest.fixture
def opened(browser, up):
    """Open a stream in a browser of some zone; on closing nothing may have gone wrong."""
    contexts, complaints = [], []

    def open_page(name="city", **options):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}, **options))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{up.address}/?stream={name}#token={up.tokens['read']}")
        page.locator("#heat-times span").first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def test_rows_and_columns_of_the_map_are_named(opened):
    page = opened()
    assert page.locator("#heat-names span").all_inner_texts() == ["north", "south", "harbour"]
    marks = page.locator("#heat-times span").all_inner_texts()
    assert marks[0] == "05:30\n1 Jan 2026"
    assert [mark.strip() for mark in marks[1:]] == ["05:35", "05:40", "05:45", "05:50", "05:55", "06:00", "06:05"]
    places = page.evaluate("[...document.querySelectorAll('#heat-times span')].map((each) => each.offsetLeft)")
    width = page.evaluate("document.getElementById('heat').clientWidth")
    assert places[1] == pytest.approx(width * 5 / STEPS, abs=2)


def test_rows_that_stand_for_several_bins_are_named_as_well(opened):
    page = opened("roads")
    names = page.locator("#heat-names span").all_inner_texts()
    assert names[0] == "road 000 …"
    assert len(names) > 10


def test_times_are_those_of_the_stream_the_browser_or_utc(opened):
    page = opened(timezone_id="America/New_York")
    last = {"stream": "1 Jan 2026, 06:09", "browser": "31 Dec 2025, 19:39", "utc": "1 Jan 2026, 00:39"}
    assert page.get_by_label("Times in").input_value() == "stream"
    assert "Asia/Kolkata" in page.get_by_label("Times in").inner_text()
    for zone, time in last.items():
        page.get_by_label("Times in").select_option(zone)
        page.locator("#status-text", has_text=time).wait_for()
        assert time in page.locator("#heat-note").inner_text()
        shown = page.evaluate("document.getElementById('chart').layout.xaxis.range[1]")
        assert shown[11:16] == time[-5:]
    assert page.locator("#series-note").inner_text().endswith("Times: UTC.")
    page.reload()
    page.locator("#status-text", has_text=last["utc"]).wait_for()  # what was chosen is remembered


def test_marks_stand_at_round_times_however_long_the_steps_are(opened):
    page = opened()
    told = page.evaluate(
        """async () => {
            const { marks } = await import("/assets/times.js");
            const walls = (from, step, many) => [...Array(many).keys()].map((place) =>
                new Date(Date.parse(from + "Z") + place * step).toISOString().slice(0, 19));
            const texts = (...which) => marks(walls(...which), 8).map(({ text, below }) => (text + " " + below).trim());
            return {
                seconds: texts("2026-03-01T23:59:40", 1000, 60),
                days: texts("2026-02-26T00:00:00", 86400000, 7),
                months: texts("2025-11-01T00:00:00", 86400000, 150),
                steps: marks([...Array(100).keys()], 8).map(({ text }) => text),
                one: texts("2026-03-01T10:00:00", 1000, 1),
                none: marks([], 8),
            };
        }"""
    )
    assert told["seconds"] == [
        "23:59:40 1 Mar 2026",
        "23:59:50",
        "00:00 2 Mar 2026",
        "00:00:10",
        "00:00:20",
        "00:00:30",
    ]
    assert told["days"] == ["26 Feb 2026", "27 Feb", "28 Feb", "1 Mar", "2 Mar", "3 Mar", "4 Mar"]
    assert told["months"] == ["1 Nov 2025", "1 Dec", "1 Jan 2026", "1 Feb", "1 Mar"]
    assert told["steps"] == ["step 0", "step 20", "step 40", "step 60", "step 80"]
    assert told["one"] == ["10:00 1 Mar 2026"]
    assert told["none"] == []
