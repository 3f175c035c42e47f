"""The page to sign in a real browser: quiet, one sheet of paper, and opened from the dashboard.

A picture of each is written to the folder named by EVENTIDE_SCREENSHOTS, or else to a temporary one.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from running_service import configuration, event, running, stream

import eventide as ev
from eventide.cli import main
from eventide.live.accounts.open_account import create_account

pytestmark = pytest.mark.browser

EVIL = "</p><script>document.title = 1</script>"
BINS = [EVIL, *(f"ward {number}" for number in range(60))]


@pytest.fixture
def folder(tmp_path):
    """A store of a week that draws from an account."""
    rows = [f"2024-03-{1 + hour // 24:02}T{hour % 24:02}:10,user {hour % 5},ward 1" for hour in range(7 * 24)]
    (tmp_path / "events.csv").write_text("\n".join(["timestamp,user,bin", *rows]) + "\n")
    create_account(tmp_path / "people.account", EVIL, 1, "1d")
    mechanism = ev.mechanism("ba", epsilon=0.6, window=25, bins=BINS)
    cut = {"step": "1h", "user": "user", "start": "2024-03-01", "until": "2024-03-08"}
    how = {"account": tmp_path / "people.account", "population": EVIL}
    with ev.Publisher(tmp_path / "events.csv", mechanism, tmp_path / "hourly.db", [], **cut, **how) as publisher:
        publisher.run()
    return tmp_path


def sheets(page):
    """How many sheets of paper a page takes."""
    return len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))


def picture(page, name, folder):
    page.screenshot(path=Path(os.environ.get("EVENTIDE_SCREENSHOTS") or folder) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("what", ["hourly.db", "people.account"])
def test_it_is_drawn_takes_texts_as_they_are_and_fits_on_one_sheet(quiet, folder, what):
    out = folder / "page.html"
    assert CliRunner().invoke(main, ["guarantee", str(folder / what), "--out", str(out)]).exit_code == 0
    page = quiet(out.as_uri(), "svg.steps .line", viewport={"width": 1000, "height": 1300})
    assert page.title() == f"What is promised to {EVIL}"
    assert EVIL in page.locator(".promise").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert sheets(page) == 1
    picture(page, what, folder)
    narrow = quiet(out.as_uri(), "svg.steps .line", viewport={"width": 390, "height": 844}, color_scheme="dark")
    assert narrow.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_the_dashboard_opens_it(browser, tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, parameters={}, mechanism="ba")]), for_tests=False) as up:
        up.post([event()])
        up.pass_steps(3)
        context = browser.new_context()
        page, complaints = context.new_page(), []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto(f"{up.address}/#token={up.tokens['read']}")
        page.locator("#status[data-state=live]").wait_for()
        with context.expect_page() as opened:
            page.locator("#to-sign").click()
        shown = opened.value
        shown.locator("svg.steps .line").wait_for()
        assert shown.url.startswith("blob:")
        assert "inside any 5 minutes" in shown.locator(".promise").inner_text()
        assert shown.evaluate("getComputedStyle(document.querySelector('.promise')).fontSize") != "16px"  # it has style
        assert complaints == []
        context.close()
