"""A spike does not own the axis: it is marked at its end, and shown whole when somebody asks."""

from __future__ import annotations

import pytest
from running_service import configuration, event, running, stream

pytestmark = pytest.mark.browser

SPIKE = 400


@pytest.fixture
def page(browser, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path), stream(tmp_path, "calm")])) as up:
        for minute in range(30):
            people = SPIKE if minute == 12 else 10 + minute % 5
            up.post([event(user=str(person), minute=minute) for person in range(people)])
            up.post([event(user=str(person), minute=minute) for person in range(10 + minute % 5)], "calm")
            up.pass_steps_of_all()
        context = browser.new_context(viewport={"width": 1280, "height": 900})
        opened, complaints = context.new_page(), []
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.goto(f"{up.address}/?stream=city#token={up.tokens['read']}")
        opened.locator("#chart .scatterlayer path.js-line").first.wait_for(state="attached")
        yield opened
        context.close()
        assert complaints == []


def top(page):
    """The upper end of the axis."""
    return page.evaluate("document.getElementById('chart')._fullLayout.yaxis.range[1]")


def marks(page):
    """The marks for values beyond the axis: where they stand, and what they say."""
    return page.evaluate(
        """document.getElementById('chart').data.filter((trace) => trace.marker && trace.marker.size === 11)
            .flatMap((trace) => trace.y.flatMap((y, place) => (y === null ? [] : [[place, y, trace.text[place]]])))"""
    )


def test_a_spike_is_marked_at_the_end_of_the_axis_until_all_is_asked_for(page):
    assert top(page) < 50
    ((place, height, text),) = marks(page)
    assert (place, text) == (12, str(SPIKE))
    assert height <= top(page)
    note = page.locator("#beyond-note").inner_text()
    assert note == f"1 value is beyond the axis, marked ▲; the farthest is {SPIKE}."
    page.get_by_role("button", name="Show all values").click()
    page.wait_for_function(f"() => document.getElementById('chart')._fullLayout.yaxis.range[1] >= {SPIKE}")
    assert marks(page) == []
    page.get_by_role("button", name="Fit the axis to most values").click()
    page.wait_for_function("() => document.getElementById('chart')._fullLayout.yaxis.range[1] < 50")
    page.get_by_label("Stream").select_option("calm")
    page.locator("#health", has_text="calm").wait_for()
    assert page.locator("#beyond").is_hidden()


def test_only_a_few_that_are_far_off_are_beyond(page):
    told = page.evaluate(
        """async () => {
            const { robustRange } = await import("/assets/range.js");
            const many = (value, times) => Array(times).fill(value);
            return [
                robustRange([...many(10, 50), ...many(12, 48), 900, null]),
                robustRange([...many(0, 80), ...many(500, 20)]),
                robustRange([...many(0, 99), 7]),
                robustRange([...many(10, 99), -900]),
                robustRange([]),
            ];
        }"""
    )
    # of streams that are mostly empty, or busy for a part of the day, everything is shown
    assert told == [[0, 12], None, None, [0, 10], None]
