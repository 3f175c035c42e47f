"""A ward that is added while the service runs: no step is lost, nothing is measured less, and readers see its name."""

import csv
import io
import logging

import pytest
from click.testing import CliRunner
from running_service import configuration, event, running, stream, wait_until

from eventide.cli import main
from eventide.live.publisher import publisher as publishing

WARDS = "bin,clinic\nW1,surgery\nW2,surgery\nW3,eyes\n(spare 1),eyes\n"


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(publishing, "LOOK_FOR_NAMES", 0.0)


def settings(folder, text=WARDS, **changed):
    (folder / "wards.csv").write_text(text)
    bins = tuple(line.split(",")[0] for line in text.splitlines()[1:] if "spare" not in line)
    return stream(folder, bins=bins, levels=str(folder / "wards.csv"), spare_bins=2, **changed)


@pytest.fixture
def hospital(tmp_path):
    with running(configuration(tmp_path, [settings(tmp_path)])) as up:
        for minute in range(3):
            up.post([event(name, f"{name}{minute}", minute) for name in ("W1", "W3", "W4", "(spare 1)")])
            up.pass_steps()
        yield up


def releases(up):
    return up.client("read").get("/v1/streams/city/releases").json()["releases"]


def test_a_ward_of_a_grown_configuration_is_counted_from_the_next_step_on(hospital, tmp_path):
    one = hospital.service.streams["city"]
    one.take_names(settings(tmp_path, WARDS + "W4,eyes\n"))
    wait_until(lambda: "W4" in one.bins)
    for minute in range(3, 7):
        answer = hospital.post([event(name, f"{name}{minute}", minute) for name in ("W1", "W4")])
        assert answer.status_code == 200
        hospital.pass_steps()
    client, found = hospital.client("read"), releases(hospital)
    assert [release["step"] for release in found] == list(range(7))
    assert all(release["fresh"] for release in found)
    assert [release["values"][0] for release in found] == [1] * 7
    assert [release["values"][3] for release in found] == [0, 0, 0, 0, 1, 1, 1]  # the clock was in step 3
    assert [release["levels"]["total"]["values"] for release in found] == [[sum(one["values"])] for one in found]
    told = client.get("/v1/streams/city/bins").json()
    assert (told["bins"], told["spare"]) == (["W1", "W2", "W3", "W4", "(spare 2)"], [4])
    assert told["levels"][0] == {"name": "clinic", "groups": ["surgery", "eyes", "spare"], "group_of": [0, 0, 1, 1, 2]}
    assert client.get("/v1/streams/city").json()["bins"] == 4
    rows = csv.DictReader(io.StringIO(client.get("/v1/streams/city/releases?format=csv&bin=W4").text))
    assert [row["W4"] for row in rows] == ["0"] * 4 + ["1"] * 3
    assert len(one.publisher.store.epochs()) == 1
    assert hospital.client("read").get("/v1/streams/city/ledger").json()["worst"] <= 1


def test_a_ward_that_the_verb_names_is_counted_too(hospital, tmp_path):
    words = ["bins", str(tmp_path / "city.store"), "--name", "W4", "--like", "W3", "--from", "4"]
    told = CliRunner().invoke(main, words)
    assert told.exit_code == 0, told.stderr
    wait_until(lambda: "W4" in hospital.service.streams["city"].bins)
    for minute in range(3, 6):
        hospital.post([event("W4", "anna", minute)])
        hospital.pass_steps()
    assert [release["values"][3] for release in releases(hospital)] == [0, 0, 0, 0, 1, 1]


RESTART = "stream city: other changes of its settings wait for a restart; run `eventide config check` before it"


@pytest.mark.parametrize(
    ("text", "changed", "warning"),
    [
        (WARDS + "W4,skin\n", {}, "no spare bin is left in skin"),
        (WARDS.replace("W2,surgery\n", ""), {}, RESTART),
        (WARDS + "W4,eyes\n", {"late": "1min"}, RESTART),
    ],
)
def test_what_takes_a_restart_is_told_and_all_goes_on(hospital, tmp_path, caplog, text, changed, warning):
    with caplog.at_level(logging.WARNING):
        hospital.service.streams["city"].take_names(settings(tmp_path, text, **changed))
    assert warning in caplog.text
    hospital.pass_steps()
    assert len(releases(hospital)) == 4


def test_a_ward_that_was_closed_is_told_from_one_with_nobody(hospital, tmp_path):
    hospital.pass_steps()
    words = ["bins", str(tmp_path / "city.store"), "--close", "W3", "--from", "6"]
    assert CliRunner().invoke(main, words).exit_code == 0

    def closed():
        return hospital.client("read").get("/v1/streams/city/bins").json()["closed"]

    assert closed() == []
    hospital.pass_steps(4)
    wait_until(lambda: closed() == [2])
