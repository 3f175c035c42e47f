"""A stream that brings nothing new does not look like data: the page says that nothing was released, or measured."""

from __future__ import annotations

from fractions import Fraction

import pytest
from running_service import MINUTE, configuration, event, running, stream

pytestmark = pytest.mark.browser


@pytest.fixture
def opened(browser):
    contexts, complaints = [], []

    def open_page(up, name="city"):
        contexts.append(browser.new_context(viewport={"width": 1280, "height": 900}))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(f"{up.address}/?stream={name}#token={up.tokens['read']}")
        page.locator("#health dd").first.wait_for()
        page.locator("#status[data-state=live]").wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def shades(page):
    return page.evaluate("(document.getElementById('chart').layout.shapes || []).map((each) => each.label.text)")


def test_a_stream_without_a_release_for_longer_than_its_step_says_so(opened, tmp_path):
    with running(configuration(tmp_path)) as up:
        up.post([event()])
        up.pass_steps(3)
        page = opened(up)
        assert page.locator("#idle").is_hidden()
        assert page.locator("#status-text").inner_text().startswith("live")
        assert shades(page) == []
        feed = up.service.streams["city"].feed
        up.service.streams["city"].end_soon()  # so that nothing is released any more
        up.clock.set(feed.timeline.end(2) + 5 * MINUTE + 1)
        page.locator("#idle", has_text="No new release for 5 minutes").wait_for()
        assert "the last one is of 1 Jan 2026, 00:02" in page.locator("#idle").inner_text()
        assert page.locator("#status-text").inner_text().startswith("no new release")
        page.wait_for_function("() => (document.getElementById('chart').layout.shapes || []).length === 1")
        assert shades(page) == ["no release"]
        assert page.evaluate("document.getElementById('chart').layout.shapes[0].x1") == "2026-01-01T00:08:00"


def test_a_stream_whose_releases_only_repeat_says_so(opened, tmp_path):
    with running(configuration(tmp_path)) as up:
        up.pass_steps(4)
        page = opened(up)
        assert page.locator("#idle").is_hidden()
        told = page.evaluate(
            """async () => {
                const { History } = await import("/assets/history.js");
                const { Levels } = await import("/assets/levels.js");
                const { idleness } = await import("/assets/idle.js");
                const info = { window: 4, lag_seconds: 0, measured_from: 0, next_step: 9, statistics: ["events"] };
                const of = (...fresh) => {
                    const history = new History(info, new Levels(["north"], []), "events");
                    fresh.forEach((each, step) => history.add({ step, fresh: each, values: [3], scale: [1] }));
                    return idleness(history)?.sentence ?? null;
                };
                return [of(), of(true, false, false, false), of(true, false, false, false, false), of(false, false)];
            }"""
        )
    repeats = "Nothing was measured since step 0: the last 4 releases only repeat what was known before."
    nothing = "Nothing was measured in the steps shown here: the last 2 releases only repeat what was known before."
    assert told == [None, None, repeats, nothing]


def test_a_stream_that_waits_for_its_people_to_have_budget_says_so(opened, tmp_path):
    """After a restore nothing is measured for a window: the page must not show these repeats as data."""
    with running(configuration(tmp_path, [stream(tmp_path, window=30)])) as up:
        up.post([event()])
        up.pass_steps(2)
    (tmp_path / "tokens").unlink()
    with running(configuration(tmp_path, [stream(tmp_path, window=30)]), after_restore=True) as up:
        up.pass_steps(10)
        page = opened(up)
        page.locator("#idle", has_text="Nothing was measured since 1 Jan 2026, 00:01").wait_for()
        assert "Step 31 is the next to be measured" in page.locator("#idle").inner_text()
        assert page.locator("#status-text").inner_text().startswith("only repeats")
        page.wait_for_function("() => (document.getElementById('chart').layout.shapes || []).length === 1")
        assert shades(page) == ["not measured"]


def test_a_stream_that_has_not_begun_shows_no_axes(opened, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, start="2030-01-01T00:00:00Z")])) as up:
        page = opened(up)
        page.locator("#nothing-yet", has_text="The first step begins at 1 Jan 2030, 00:00").wait_for()
        for id in ("#chart", "#history", "#heat", "#chart-csv", "#heat-csv"):
            assert page.locator(id).is_hidden()
        assert page.locator("#status-text").inner_text() == "waiting · no step released yet"


def test_small_budgets_are_told_with_enough_digits(opened, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, epsilon=Fraction(1, 10_000), window=8)])) as up:
        up.pass_steps(2)
        page = opened(up)
        page.locator("#budget-note", has_text="Next to come back: 0.0000125 at 1 Jan 2026, 00:08.").wait_for()
        assert page.locator("#gauge-value").inner_text() == "0.000025"
        assert page.locator("#gauge-unit").inner_text() == "of 0.0001 epsilon spent"
        assert page.locator("#budget-note").inner_text().startswith("0.000075 left in the last 8 steps")
