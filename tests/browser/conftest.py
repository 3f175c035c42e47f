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
