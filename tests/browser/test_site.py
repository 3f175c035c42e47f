"""The documentation site: it is built without a warning, and works in a browser that reaches nothing but loopback."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import subprocess
import sys
import threading
import urllib.parse

import pytest
from documents import ROOT, site_pages

pytestmark = pytest.mark.browser
pytest.importorskip("mkdocs", reason="needs mkdocs: pip install '.[test-all]'")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The address of the site, built strictly: a warning, such as one about a link, stops it."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(build, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    with serving(folder) as address:
        yield address


@contextlib.contextmanager
def serving(folder):
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *words):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def page(browser):
    """A page that notes whom it asked, what failed and what went wrong."""
    opened = browser.new_page()
    opened.asked, opened.trouble = [], []
    opened.on("request", lambda request: opened.asked.append(request.url))
    opened.on("response", lambda answer: answer.status >= 400 and opened.trouble.append(answer.url))
    opened.on("pageerror", lambda error: opened.trouble.append(str(error)))
    yield opened
    opened.close()


def strangers(asked):
    return [url for url in asked if urllib.parse.urlsplit(url).hostname not in ("127.0.0.1", None)]


def places():
    written = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    return sorted({*map(str, written), *site_pages()})


def address_of(place):
    stem = place.removesuffix(".md").removesuffix("index")
    return stem if stem.endswith("/") or not stem else f"{stem}/"


def test_no_page_asks_anybody_else(site, page):
    for place in places():
        page.goto(f"{site}/{address_of(place)}", wait_until="load")
    assert len(page.asked) > len(places())
    assert strangers(page.asked) == []
    assert page.trouble == []


def test_a_stranger_is_found(page):
    page.route("**/*", lambda route: route.fulfill(body=""))
    page.set_content('<script src="https://example.org/script.js"></script>', wait_until="load")
    assert strangers(page.asked) == ["https://example.org/script.js"]


def test_search_finds_a_page(site, page):
    page.goto(site)
    search = page.get_by_role("textbox", name="Search").first
    search.fill("Clopper-Pearson")
    search.press("End")  # the page looks at what was typed when a key is let go
    found = page.locator(".md-search-result__link").first
    found.wait_for()
    assert "Audit a mechanism" in found.inner_text()
    assert strangers(page.asked) == []
    assert page.trouble == []


@pytest.mark.parametrize(("preference", "scheme"), [("light", "default"), ("dark", "slate")])
def test_the_page_is_as_light_as_the_reader_likes(site, browser, preference, scheme):
    page = browser.new_page(color_scheme=preference)
    page.goto(site)
    assert page.locator("body").get_attribute("data-md-color-scheme") == scheme
    page.get_by_title("Change to").locator("visible=true").first.click()
    page.locator(f"body:not([data-md-color-scheme={scheme}])").wait_for()
    page.close()


def test_the_comparison_is_in_the_menu(site, page):
    """The theme shows an index only behind the name of its part, so this one needs a part of its own."""
    page.goto(f"{site}/guarantees/")
    menu = page.get_by_role("navigation").get_by_role("link", name="The comparison study")
    menu.locator("visible=true").first.click()
    page.wait_for_url(f"{site}/results/")
    assert page.get_by_role("heading", level=1).inner_text().startswith("Comparison of all mechanisms")


def test_pictures_are_there(site, page):
    page.goto(site, wait_until="load")
    widths = page.eval_on_selector_all("article img", "images => images.map(image => image.naturalWidth)")
    assert widths
    assert all(widths)
