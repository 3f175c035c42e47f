"""The browser that all pages are looked at with: chromium, told to ask nothing of the network by itself."""

from __future__ import annotations

import shutil

import pytest
from page_waits import PATIENCE

QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


def patient(make):
    """Makes the same, which then waits for as long as it takes."""

    def made(**options):
        opened = make(**options)
        opened.set_default_timeout(PATIENCE)
        return opened

    return made


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--disable-gpu", *QUIET]
        program = shutil.which("chromium")
        chromium = playwright.chromium.launch(executable_path=program, args=options, timeout=PATIENCE)
        chromium.new_context, chromium.new_page = patient(chromium.new_context), patient(chromium.new_page)
        yield chromium
        chromium.close()


@pytest.fixture
def quiet(browser):
    """Open a file on some screen once it is drawn, and on closing require quiet: no complaint, no further request."""
    contexts, asked, requests, complaints = [], [], [], []

    def open_page(address, drawn, **screen):
        contexts.append(browser.new_context(**screen))
        asked.append(address)
        page = contexts[-1].new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.goto(address)
        page.locator(drawn).first.wait_for()
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [url for url in requests if not url.startswith("data:")] == asked
    assert complaints == []
