"""Waiting for what a page shows some time after a click."""

from __future__ import annotations

PATIENCE = 300_000  # milliseconds, as a slow machine may need them


def wait_for_count(locator, number):
    """Wait until a page has so many of something."""
    from playwright.sync_api import expect  # not there in an environment without browsers

    expect(locator).to_have_count(number, timeout=PATIENCE)
