"""The browser that all pages are looked at with: chromium, told to ask nothing of the network by itself."""

from __future__ import annotations

import shutil

import pytest

QUIET = ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"]


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", *QUIET]
        )
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
