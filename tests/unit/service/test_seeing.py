"""What operators can see: where releases were delivered and why not, who read and who operated; and nobody else."""

from __future__ import annotations

import json
import re
import sqlite3
import stat
from contextlib import closing

import pytest
from running_service import configuration, event, running, stream, wait_until

from eventide.service.config.config_file import examine
from eventide.service.config.settings import Access


@pytest.fixture
def sinks(tmp_path):
    """A stream that is delivered to a file and to an address at which nobody is."""
    places = (str(tmp_path / "city.jsonl"), "http://127.0.0.1:9/hook")
    with running(configuration(tmp_path, [stream(tmp_path, out=places)])) as up:
        for delivery in up.service.streams["city"].publisher._deliveries._each:
            delivery._last_patience = 0.0
        yield up


def figures(up, role="operate"):
    return dict(re.findall(r"^([a-z].*) (\S+)$", up.client(role).get("/metrics").text, re.MULTILINE))


def test_a_table_grows_with_the_service(tmp_path):
    """It is opened in one thread, and filled and closed in others."""
    table = tmp_path / "city.sqlite"
    with running(configuration(tmp_path, [stream(tmp_path, out=(str(table),))])) as up:
        up.post([event()])
        up.pass_steps(3)
        wait_until(lambda: up.service.streams["city"].publisher.sinks()[0].last == 2)
        with closing(sqlite3.connect(table)) as reader:
            found = reader.execute("SELECT step, value FROM releases WHERE bin = 'north' ORDER BY step")
            assert found.fetchall() == [(0, 1), (1, 0), (2, 0)]


def test_releases_are_delivered_and_operators_see_how_far(sinks, tmp_path, caplog):
    sinks.post([event()])
    sinks.pass_steps(3)
    lines = (tmp_path / "city.jsonl").read_text().splitlines()
    served = sinks.client("read").get("/v1/streams/city/releases").json()["releases"]
    assert [json.loads(line) for line in lines] == served
    wait_until(lambda: any("webhook" in name and value != "0.0" for name, value in figures(sinks).items()))
    seen = {name: value for name, value in figures(sinks).items() if name.startswith("eventide_sink_")}
    file = f'{{sink="file {tmp_path}/city.jsonl",stream="city"}}'
    (hook,) = {name.partition("{")[2] for name in seen if "webhook" in name}
    assert seen[f"eventide_sink_lag_steps{file}"] == seen[f"eventide_sink_failures_total{file}"] == "0.0"
    assert seen[f"eventide_sink_lag_steps{{{hook}"] == "3.0"
    assert float(seen[f"eventide_sink_failures_total{{{hook}"]) >= 1
    assert not any(name.startswith(("eventide_sink_", "eventide_raw_")) for name in figures(sinks, "read"))
    failed = next(record for record in caplog.records if record.getMessage() == "sink failed")
    assert failed.fields["reason"] == "Connection refused"


def test_a_service_ends_though_a_sink_is_away_and_says_what_it_lacks(sinks, caplog):
    sinks.pass_steps(2)
    sinks.service.stop()
    said = [record.getMessage() for record in caplog.records]
    assert any("webhook 127.0.0.1" in sentence and "has no release yet: Connection" in sentence for sentence in said)


def test_events_that_were_refused_or_left_out_are_counted_for_operators(tmp_path):
    with running(configuration(tmp_path)) as up:
        up.post([event("north"), event("south"), event("atlantis")])  # of one person, of whom one event counts
        up.pass_steps()
        seen = figures(up)
        assert seen['eventide_raw_left_out_events_total{stream="city"}'] == "1.0"
        assert 'eventide_raw_refused_events_total{reason="bin is not in the list",stream="city"} 1.0' in (
            up.client("operate").get("/metrics").text
        )


def test_the_access_log_says_who_read_and_who_operated_and_nothing_of_what_was_sent(tmp_path):
    log = tmp_path / "access.jsonl"
    with running(configuration(tmp_path, access=Access(tmp_path / "tokens", log=log))) as up:
        up.post([event(user="anna")])
        up.client("read").get("/v1/streams/city/releases", params={"bin": "north"})
        up.client("operate").get("/v1/streams/city/operations")
        up.client("read").get("/v1/streams/city/operations")
        up.client().get("/v1/streams", headers={"Authorization": "Bearer wrong"})
        up.client().get("/healthz")
        log.rename(tmp_path / "access.jsonl.1")
        up.client("read").get("/v1/streams")
    lines = [json.loads(line) for line in (tmp_path / "access.jsonl.1").read_text().splitlines()]
    assert [(line["who"], line["needs"], line["path"], line["outcome"]) for line in lines] == [
        ("read", "read", "/v1/streams/city/releases", "admitted"),
        ("operate", "operate", "/v1/streams/city/operations", "admitted"),
        ("read", "operate", "/v1/streams/city/operations", "wrong-token"),
        (None, "read", "/v1/streams", "no-token"),
    ]
    assert {line["address"] for line in lines} == {"127.0.0.1"}
    assert len(log.read_text().splitlines()) == 1
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


def test_an_access_log_that_cannot_be_written_is_said_once(tmp_path, caplog):
    with running(configuration(tmp_path, access=Access(tmp_path / "tokens", log=tmp_path / "no" / "log"))) as up:
        for _ in range(2):
            assert up.client("read").get("/v1/streams").status_code == 200
    said = [record.getMessage() for record in caplog.records]
    assert said == ["the access log cannot be written: No such file or directory"]


def test_places_of_a_configuration_are_beside_it_and_each_takes_one_stream(tmp_path):
    text = """
[access]
log = "access.jsonl"
[[streams]]
name = "city"
epsilon = 1
window = 5
step = "1min"
start = 2026-01-01T00:00:00Z
bins = 3
store = "city.store"
out = ["city.jsonl", "https://example.org/hook"]
"""
    path = tmp_path / "eventide.toml"
    path.write_text(text)
    config, mistakes = examine(path)
    assert not mistakes
    assert config.access.log == tmp_path / "access.jsonl"
    assert config.streams[0].out == (str(tmp_path / "city.jsonl"), "https://example.org/hook")
    path.write_text(
        text + text[text.index("[[streams]]") :].replace('"city"', '"town"').replace("city.store", "town.store")
    )
    assert any("each place takes one stream" in mistake for mistake in examine(path)[1])
    path.write_text(text.replace("city.jsonl", "city.txt"))
    assert any("out:" in mistake for mistake in examine(path)[1])
