"""Levels in a service: named beside the bins, in every release, and in every form of a page."""

import csv
import io

import pytest
from running_service import configuration, event, running, stream

from eventide.errors import InputError
from eventide.service.config.settings import StreamConfig

BINS = ("a", "b", "c")


@pytest.fixture
def city(tmp_path):
    (tmp_path / "levels.csv").write_text("bin,ward\na,W1\nb,W1\nc,W2\n")
    with running(configuration(tmp_path, [stream(tmp_path, bins=BINS, levels=str(tmp_path / "levels.csv"))])) as up:
        for minute in range(3):
            up.post([event(name, f"{name}{person}", minute) for name in BINS for person in range(4)])
            up.pass_steps()
        yield up


def test_levels_are_named_and_released(city):
    client = city.client("read")
    assert client.get("/v1/streams/city/bins").json() == {
        "bins": list(BINS),
        "spare": [],
        "closed": [],
        "levels": [
            {"name": "ward", "groups": ["W1", "W2"], "group_of": [0, 0, 1]},
            {"name": "total", "groups": ["total"], "group_of": [0, 0, 0]},
        ],
    }
    releases = client.get("/v1/streams/city/releases").json()["releases"]
    for release in releases:
        values = release["values"]
        assert release["levels"]["ward"]["values"] == [values[0] + values[1], values[2]]
        assert release["levels"]["total"]["values"] == [sum(values)]
    assert "ward, total and bins together" in client.get("/v1/streams/city/guarantee").json()["sentence"]


def test_pages_as_tables_have_a_level_and_those_of_chosen_bins_have_none(city):
    client = city.client("read")
    rows = list(csv.DictReader(io.StringIO(client.get("/v1/streams/city/releases?format=csv").text)))
    assert [(row["level"], row["bin"]) for row in rows[:6]] == [
        *(("bin", name) for name in BINS),
        *(("ward", "W1"), ("ward", "W2"), ("total", "total")),
    ]
    chosen = client.get("/v1/streams/city/releases?bin=b").json()["releases"][0]
    assert len(chosen["values"]) == 1
    assert "levels" not in chosen


def test_a_configuration_names_a_file(tmp_path):
    (tmp_path / "levels.csv").write_text("bin,ward\na,W1\nb,W1\n")
    written = {"name": "x", "bins": ["a", "b", "c"], "step": "1h", "levels": "levels.csv"}
    with pytest.raises(InputError, match="bin 'c' is in no group"):
        StreamConfig.read(written, tmp_path)


def test_pages_begin_where_the_groups_became_those_of_now(tmp_path):
    for number, text in enumerate(("bin,ward\na,W1\nb,W1\nc,W2\n", "bin,part\na,left\nb,right\nc,right\n")):
        (tmp_path / "levels.csv").write_text(text)
        config = configuration(tmp_path, [stream(tmp_path, bins=BINS, levels=str(tmp_path / "levels.csv"))])
        (tmp_path / "tokens").unlink(missing_ok=True)
        with running(config, new_epoch=bool(number)) as up:
            up.pass_steps(2)
            rows = csv.DictReader(io.StringIO(up.client("read").get("/v1/streams/city/releases?format=csv").text))
            assert {int(row["step"]) for row in rows} == {2 * number, 2 * number + 1}
