"""Tokens that are good for some streams: of the others their holders see nothing, wherever they look."""

from __future__ import annotations

from fractions import Fraction

import pytest
from click.testing import CliRunner
from running_service import configuration, event, running, stream

from eventide.cli import main
from eventide.service.http.tokens import Tokens, add_token

OURS, THEIRS = "wards", "pharmacy"
READS = ("", "/bins", "/guarantee", "/guarantee.html", "/ledger", "/releases", "/stream", "/answers")
LONG = "/releases?format=csv&layout=long"  # as the dashboard saves it


@pytest.fixture
def up(tmp_path):
    shared = {"population": "patients", "epsilon": Fraction(1, 2)}
    config = configuration(
        tmp_path,
        (stream(tmp_path, OURS, **shared), stream(tmp_path, THEIRS, **shared)),
        populations={"patients": Fraction(1)},
    )
    with running(config) as up:
        for role in ("ingest", "read", "operate"):
            up.tokens[f"our {role}"] = add_token(config.access.tokens, role, f"our-{role}", [OURS])
        yield up


def test_a_stream_that_a_token_is_not_good_for_is_as_if_it_were_not_there(up):
    up.pass_steps(2, OURS)
    reader, operator = up.client("our read"), up.client("our operate")
    for rest in (*READS, LONG):
        nowhere = reader.get(f"/v1/streams/nowhere{rest}")
        theirs = reader.get(f"/v1/streams/{THEIRS}{rest}")
        assert (theirs.status_code, theirs.json()) == (404, nowhere.json()), rest
        if rest not in ("/stream", "/answers"):  # one never ends, the other is not asked for here
            ours = reader.get(f"/v1/streams/{OURS}{rest}")
            assert (ours.status_code, THEIRS in ours.text) == (200, False), rest
    assert operator.get(f"/v1/streams/{THEIRS}/operations").status_code == 404
    assert operator.get(f"/v1/streams/{OURS}/operations").status_code == 200
    assert [one["name"] for one in reader.get("/v1/streams").json()["streams"]] == [OURS]
    for who in (reader, operator):
        figures = who.get("/metrics").text
        assert (f'stream="{OURS}"' in figures, THEIRS in figures) == (True, False)
    assert THEIRS in up.client("read").get(f"/v1/streams/{OURS}/guarantee").json()["sentence"]
    assert "other streams" in reader.get(f"/v1/streams/{OURS}/guarantee").json()["sentence"]


def test_events_are_taken_for_its_streams_alone(up):
    client = up.client("our ingest")
    assert client.post(f"/v1/streams/{OURS}/events", json=[event()]).status_code == 200
    refused = client.post(f"/v1/streams/{THEIRS}/events", json=[event()])
    assert (refused.status_code, refused.json()["code"]) == (404, "unknown-stream")
    assert up.service.streams[THEIRS].feed.totals.accepted == 0


def test_who_follows_is_sent_away_when_the_token_is_narrowed(up):
    up.pass_steps(1, OURS)
    path = up.service.config.access.tokens
    with up.client("our read").stream("GET", f"/v1/streams/{OURS}/stream") as followed:
        lines = followed.iter_lines()
        assert next(line for line in lines if line.startswith("data:"))
        path.write_text(path.read_text().replace(f" {OURS}\n", f" {THEIRS}\n"))
        up.pass_steps(1, OURS)
        assert not [line for line in lines if line.startswith("data:")][1:]  # at most what was on its way
    assert up.client("our read").get(f"/v1/streams/{OURS}").status_code == 404
    assert up.client("our read").get(f"/v1/streams/{THEIRS}").status_code == 200


def test_the_page_to_sign_names_no_holder_and_no_place(up):
    page = up.client("our read").get(f"/v1/streams/{OURS}/guarantee.html")
    assert page.headers["content-type"].startswith("text/html")
    assert "holders of a token for it" in page.text
    assert ("our-read" in page.text, "store" in page.text.split("read the store")[0]) == (False, False)
    assert "Nothing is promised: NOT PRIVATE" in page.text  # its noise is none, so that events show


STREAM = """
[[streams]]
name = "wards"
epsilon = 1.0
window = 5
step = "1min"
start = 2026-01-01T00:00:00Z
bins = ["north", "south"]
user = "user"
mechanism = "uniform"
store = "wards.store"
"""


def test_the_command_line_makes_one_for_a_stream(tmp_path):
    (tmp_path / "eventide.toml").write_text(STREAM)
    make = ["config", "token", "read", str(tmp_path / "eventide.toml"), "--stream"]
    made = CliRunner().invoke(main, [*make, "wards"])
    found = Tokens(tmp_path / "eventide.tokens").find(made.stdout.strip())
    assert (found.streams, found.sees("wards"), found.sees("others")) == (("wards",), True, False)
    refused = CliRunner().invoke(main, [*make, "wardz", "--name", "other"])
    assert (refused.exit_code, "choose from wards" in refused.stderr) == (2, True)


def test_lines_of_before_are_good_for_all_streams(tmp_path):
    secret = add_token(tmp_path / "tokens", "read", "reader")
    assert len((tmp_path / "tokens").read_text().split()) == 3
    assert Tokens(tmp_path / "tokens").find(secret).sees("anything")
