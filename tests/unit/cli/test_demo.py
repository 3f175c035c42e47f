"""`eventide demo`: it publishes for real, says what it promises, and its page loads nothing from anywhere."""

from __future__ import annotations

import base64
import json
import re
import webbrowser
import zlib

import numpy as np
import pytest
from click.testing import CliRunner
from plotly.offline import get_plotlyjs

from eventide.cli.demo import command
from eventide.cli.demo_page import build_page, publish_city
from eventide.errors import InputError
from eventide.streams import city
from eventide.streams.city import build_city

LOADS = re.compile(r"""\b(?:src|href|action)\s*=|url\(|@import|fetch\(|XMLHttpRequest|WebSocket|import\(|https?://""")


@pytest.fixture(scope="module")
def town():
    return build_city(people=300, days=2, steps_per_day=24)


@pytest.fixture(scope="module")
def published(town):
    return [publish_city(town, name, epsilon=1.0, window=24) for name in ("ba", "uniform", "sample")]


@pytest.fixture(scope="module")
def page(town, published):
    return build_page(town, published, epsilon=1.0, window=24)


def own_part(page):
    """The page without plotly's script, which stands in it packed, and whole."""
    (packed,) = re.findall(r'<script type="text/plain" id="plotly">([^<]*)</script>', page)
    assert zlib.decompress(base64.b85decode(packed.replace(",", "<"))).decode() == get_plotlyjs()
    return page.replace(packed, "")


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page)[1])


def test_no_window_goes_over_epsilon(published):
    for one in published:
        assert 0 < one.worst_window <= 1
        assert one.spent_in_window.max() == pytest.approx(one.worst_window)


def test_errors_are_those_of_the_releases(town, published):
    uniform = published[1]
    assert uniform.error_per_place == pytest.approx(np.abs(uniform.values - town.counts).mean())
    assert uniform.error_of_total == pytest.approx(np.abs((uniform.values - town.counts).sum(axis=1)).mean())
    assert uniform.error_per_place == pytest.approx(24, rel=0.1)
    assert [one.looks for one in published[1:]] == [48, 2]


def test_the_noise_is_not_seeded(town):
    first, second = (publish_city(town, "uniform", epsilon=1.0, window=24) for _ in range(2))
    assert not np.array_equal(first.values, second.values)
    assert "NOT PRIVATE" not in first.guarantee


def test_the_page_loads_nothing(page):
    assert LOADS.findall(own_part(page)) == []
    assert "default-src 'none'" in page


@pytest.mark.parametrize("line", ['<img src="x.png">', "<style>@import 'a.css'</style>", "fetch(1)", "http://a.org"])
def test_a_page_that_loads_something_is_found(page, line):
    assert LOADS.search(own_part(page) + line)


def test_the_page_says_that_it_is_synthetic_and_what_is_guaranteed(page, published):
    assert "This city is synthetic" in page
    assert published[0].guarantee in page


def test_the_page_holds_true_and_private_numbers(town, published, page):
    data = data_of(page)
    assert data["counts"] == town.counts.tolist()
    assert [mechanism["values"] for mechanism in data["mechanisms"]] == [one.values.tolist() for one in published]
    assert all(mechanism["low"] is None for mechanism in data["mechanisms"])
    assert "{{" not in own_part(page)


def test_the_page_holds_the_interval_where_there_is_one(town):
    tide = publish_city(town, "tide", epsilon=1.0, window=24)
    (drawn,) = data_of(build_page(town, [tide], epsilon=1.0, window=24))["mechanisms"]
    assert np.array_equal(drawn["low"], np.rint(tide.low))
    assert np.array_equal(drawn["high"], np.rint(tide.high))
    assert (np.array(drawn["low"]) <= drawn["values"]).all()


def test_away_from_a_terminal_it_prints_a_table_writes_the_page_and_opens_no_browser(tmp_path, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda address: pytest.fail("a browser was opened"))
    result = CliRunner().invoke(command, ["--out", str(tmp_path / "city.html")], catch_exceptions=False)
    assert "differential privacy with epsilon 1" in " ".join(result.output.split())
    assert {"Tide", "Budget absorption", "Uniform", "Sample"} <= set(re.findall(r"│ (\w[\w ]*?) +│", result.output))
    assert (tmp_path / "city.html").stat().st_size > 10**6


@pytest.fixture
def in_town(monkeypatch, town):
    """A demo that shows a small town."""
    monkeypatch.setattr(city, "build_city", lambda steps_per_day: town)


@pytest.mark.usefixtures("in_town")
def test_json_is_one_document(tmp_path):
    result = CliRunner().invoke(command, ["--json", "--out", str(tmp_path / "city.html")], catch_exceptions=False)
    document = json.loads(result.stdout)
    assert document["synthetic"] is True
    assert [one["mechanism"] for one in document["mechanisms"]] == ["tide", "ba", "uniform", "sample"]
    assert all(one["worst_window"] <= document["epsilon"] for one in document["mechanisms"])


@pytest.mark.usefixtures("in_town")
def test_a_page_that_cannot_be_written_is_refused(tmp_path):
    result = CliRunner().invoke(command, ["--out", str(tmp_path / "missing" / "city.html")])
    assert isinstance(result.exception, InputError)
    assert "choose a file in a folder that exists" in str(result.exception)
