"""Histograms of sliding windows in the service: in pages, in what is followed, and in the description of a stream."""

from __future__ import annotations

import csv
import io
import json

import pyarrow as pa
import pytest
from running_service import EXACT, configuration, event, running, stream

BINS = ("start", "help", "jobs")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    settings = stream(
        folder, "city", bins=BINS, mechanism="rg-baseline", window=1, parameters=EXACT | {"span": 3}, filter="none"
    )
    plain = stream(folder, "plain", bins=BINS)
    with running(configuration(folder, [settings, plain])) as up:
        for minute in range(5):
            up.post([event("start", f"{minute} {person}", minute) for person in range(minute + 1)])
            up.pass_steps()
        yield up


def releases(site, query=""):
    return site.client("read").get(f"/v1/streams/city/releases?limit=10{query}")


def test_a_page_has_the_histograms_as_they_were_stored(site):
    told = releases(site).json()["releases"]
    assert [each["window_values"] for each in told] == [[1, 0, 0], [3, 0, 0], [6, 0, 0], [9, 0, 0], [12, 0, 0]]
    assert told[3]["window_scale"] == pytest.approx([3**0.5] * 3)
    assert releases(site, "&bin=help&bin=start").json()["releases"][4]["window_values"] == [0, 12]


def test_tables_of_a_page_have_the_statistic(site):
    rows = list(csv.DictReader(io.StringIO(releases(site, "&format=csv").text)))
    assert list(rows[0]) == ["step", "start", "bin", "statistic", "value", "low", "high", "scale", "fresh"]
    told = [row["value"] for row in rows if (row["bin"], row["statistic"]) == ("start", "window:events")]
    assert told == ["1", "3", "6", "9", "12"]
    arrow = pa.ipc.open_stream(releases(site, "&format=arrow&bin=start").content).read_all()
    assert arrow["value"].to_pylist()[-2:] == [5, 12]


def test_whoever_follows_gets_them(site):
    with site.client("read").stream("GET", "/v1/streams/city/stream?first=4") as followed:
        data = next(line for line in followed.iter_lines() if line.startswith("data: "))
    assert json.loads(data[6:])["window_values"] == [12, 0, 0]


def test_a_stream_says_its_span(site):
    described = {each["name"]: each["span"] for each in site.client("read").get("/v1/streams").json()["streams"]}
    assert described == {"city": 3, "plain": None}
    plain = site.client("read").get("/v1/streams/plain/releases?limit=1&format=csv").text
    assert "statistic" not in plain.splitlines()[0]


def test_the_guarantee_names_the_histograms(site):
    sentence = site.client("read").get("/v1/streams/city/guarantee").json()["sentence"]
    assert "the histograms of the last 3 steps together" in sentence
