"""The plain page of a verb in a real browser: drawn, texts as texts, and nothing is asked of the network."""

from __future__ import annotations

import pytest

from eventide.cli.html_files import plain_page, write_page

pytestmark = pytest.mark.browser

EVIL = "</script><script>document.title = 1</script>"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_plain_page_is_drawn_and_takes_texts_as_they_are(quiet, tmp_path, scheme):
    chart = {"data": [{"type": "bar", "x": [1, 2], "y": [3, 4], "name": EVIL}], "layout": {}}
    write_page(tmp_path / "page.html", plain_page(EVIL, [EVIL], chart, [EVIL, "b"], [[EVIL, "2"]], 300))
    page = quiet((tmp_path / "page.html").as_uri(), "#chart .barlayer path", color_scheme=scheme)
    assert page.title() == EVIL
    assert [page.locator(place).first.inner_text() for place in ("h1", "p", "th", "td")] == [EVIL] * 4
    assert page.evaluate("document.getElementById('chart').data[0].y") == [3, 4]
    assert page.evaluate("document.getElementById('chart').data[0].name") == EVIL
    lightness = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")
    assert (min(lightness) > 200) == (scheme == "light")
