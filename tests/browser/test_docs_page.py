"""The page about the API in a real browser: nothing is asked of the network but the service itself."""

from __future__ import annotations

import pytest
from running_service import configuration, running

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("width", [1280, 360])
def test_it_shows_every_operation_with_the_network_blocked(browser, tmp_path, width):
    with running(configuration(tmp_path)) as up:
        described = up.client().get("/openapi.json").json()["paths"]
        summaries = [each["summary"] for kinds in described.values() for each in kinds.values()]
        context = browser.new_context(viewport={"width": width, "height": 800})
        page, blocked, complaints = context.new_page(), [], []
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        own = up.address + "/"
        context.route(
            lambda url: not url.startswith(own), lambda route: (blocked.append(route.request.url), route.abort())
        )
        page.goto(f"{up.address}/docs")
        assert set(summaries) <= set(page.locator("article h3").all_inner_texts())
        page.get_by_role("link", name="Read releases").click()
        article = page.locator("article:target")
        assert "GET /v1/streams/{name}/releases" in article.inner_text()
        assert "Only these bins" in article.inner_text()
        assert "429" in article.inner_text()
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.docs')).maxWidth") == "992px"
        )  # it has its style
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert blocked == []
        assert complaints == []
        context.close()
