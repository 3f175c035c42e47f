"""Texts of the dashboard can be read: every colour of text stands out from what is behind it, in light and in dark."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest

STYLE = (files("eventide.service") / "static" / "style.css").read_text()
READABLE = 4.5  # the ratio that WCAG asks of text (level AA)


def colours(selector):
    (block,) = re.findall(rf"^{re.escape(selector)} \{{(.*?)^\}}", STYLE, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", block))


def brightness(colour):
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, bright = sorted(map(brightness, (one, other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("theme", [":root", '[data-theme="dark"]'])
def test_texts_stand_out(theme):
    known = colours(theme)
    pairs = [(text, behind) for text in ("ink", "soft", "accent", "limit") for behind in ("card", "page")]
    pairs += [("on-accent", "accent"), *((line, "card") for line in ("one", "two", "three", "four", "true"))]
    low = {pair: ratio for pair in pairs if (ratio := contrast(*map(known.get, pair))) < READABLE}
    assert low == {}
