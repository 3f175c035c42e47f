"""Answers to window queries over HTTP: configured, given in pages and forms, paid from the stream's own epsilon."""

from __future__ import annotations

import io
import json
import math
from fractions import Fraction

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from running_service import configuration, event, running, stream

from eventide.errors import InputError
from eventide.live.stores.open_store import open_store
from eventide.service.config.config_file import examine, read_config
from eventide.windows.workload import Query

QUERIES = (Query(2, 1, "two"), Query(4, 2, "four"), Query(6, 6))
ASKED = {"queries": QUERIES, "queries_epsilon": Fraction(1, 4)}


def people(minute):
    """Some events of a minute: as many in the north as the minute says, one in the harbour."""
    return [*(event("north", f"user {n}", minute) for n in range(minute)), event("harbour", "guest", minute)]


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    """Nine steps and their answers, for tests that only read."""
    folder = tmp_path_factory.mktemp("city")
    with running(configuration(folder, [stream(folder, **ASKED)])) as up:
        for minute in range(9):
            up.post(people(minute))
            up.pass_steps()
        yield up


def asked(up, **parameters):
    return up.client("read").get("/v1/streams/city/answers", params=parameters)


def test_answers_are_those_of_the_windows(city):
    page = asked(city, first=0).json()
    assert page["next"] is None
    assert sorted({(each["query"], each["begin"], each["end"]) for each in page["answers"]}) == sorted(
        [
            *(("two", begin, begin + 2) for begin in range(8)),
            *(("four", begin, begin + 4) for begin in (0, 2, 4)),
            ("6 every 6", 0, 6),
        ]
    )
    for each in page["answers"]:
        steps = range(each["begin"], each["end"])
        assert each["values"] == [sum(steps), 0, len(steps)]
        assert each["step"] == each["end"] - 1
        assert each["start"] == f"2026-01-01T00:{each['begin']:02}:00+00:00"
        assert each["until"] == f"2026-01-01T00:{each['end']:02}:00+00:00"
        assert each["variance"] > 0


def test_answers_come_in_pages_by_the_step_they_were_due_at(city):
    found, first = [], 0
    while first is not None:
        answer = asked(city, first=first, limit=4)
        assert answer.headers.get("Eventide-Next") == (None if answer.json()["next"] is None else str(first + 4))
        found += answer.json()["answers"]
        first = answer.json()["next"]
    assert found == asked(city).json()["answers"]
    some = asked(city, first=3, last=5, query=["four", "two"]).json()["answers"]
    assert [(each["query"], each["step"]) for each in some] == [
        *(("two", 3), ("four", 3), ("two", 4), ("two", 5), ("four", 5)),
    ]


def test_the_latest_of_each_query_may_lie_far_apart(city):
    found = asked(city, latest=2).json()["answers"]
    ends = [(each["query"], each["end"]) for each in found]
    assert sorted(ends) == sorted([("6 every 6", 6), ("two", 8), ("two", 9), ("four", 6), ("four", 8)])
    assert [each["step"] for each in found] == sorted(each["step"] for each in found)


def test_answers_come_as_csv_and_arrow_and_of_some_bins(city):
    whole = asked(city).json()["answers"]
    table = pa_csv.read_csv(io.BytesIO(asked(city, format="csv").content))
    assert table.column_names == ["query", "begin", "end", "north", "south", "harbour", "variance"]
    assert table["north"].to_pylist() == [each["values"][0] for each in whole]
    arrow = pa.ipc.open_stream(asked(city, format="arrow", bin="harbour", query="four").content).read_all()
    assert arrow.column_names == ["query", "begin", "end", "harbour", "variance"]
    assert arrow["harbour"].to_pylist() == [4, 4, 4]
    assert asked(city, bin="harbour", query="four").json()["answers"][0]["values"] == [4]
    empty = pa_csv.read_csv(io.BytesIO(asked(city, first=40, format="csv").content))
    assert len(empty) == 0


def test_answers_are_stored_with_their_releases_and_followed_with_them(city):
    page = city.client("read").get("/v1/streams/city/releases", params={"first": 3, "last": 3}).json()
    (line,) = page["releases"]
    assert [each["query"] for each in line["answers"]] == ["two", "four"]
    reader = open_store(city.service.config.streams[0].store, read_only=True)
    assert json.loads(reader.release(3)) == line
    reader.close()


def test_ledger_and_guarantee_speak_of_both(city):
    read = city.client("read")
    ledger = read.get("/v1/streams/city/ledger").json()
    assert (ledger["epsilon"], ledger["verified"]) == (1, True)
    assert math.isclose(ledger["spent"], 1)  # uniform spends all of 0.75, and the plan all of 0.25
    guarantee = read.get("/v1/streams/city/guarantee").json()
    assert guarantee["epsilon"] == 1
    assert "Of this epsilon 0.25 is for answers to window queries" in guarantee["sentence"]
    questions = read.get("/v1/streams/city").json()["questions"]
    assert (questions["of"], questions["epsilon"]) == ("bins", 0.25)
    assert questions["queries"][2] == {"name": "6 every 6", "window": 6, "step": 6}


@pytest.mark.parametrize(
    ("parameters", "status", "code"),
    [
        ({"query": "none"}, 404, "unknown-query"),
        ({"bin": "atlantis"}, 404, "unknown-bin"),
        ({"latest": 0}, 422, "invalid-parameter"),
        ({"format": "xml"}, 422, "invalid-parameter"),
    ],
)
def test_what_cannot_be_had_is_refused(city, parameters, status, code):
    answer = asked(city, **parameters)
    assert (answer.status_code, answer.json()["code"]) == (status, code)


def test_a_stream_without_queries_says_so_and_a_token_is_needed(tmp_path):
    with running(configuration(tmp_path)) as up:
        assert asked(up).json()["code"] == "no-queries"
        assert up.client().get("/v1/streams/city/answers").status_code == 401
        assert up.client("ingest").get("/v1/streams/city/answers").status_code == 403


def test_a_total_is_one_number_and_a_restart_goes_on(tmp_path):
    settings = stream(tmp_path, **ASKED, queries_of="total")
    config = configuration(tmp_path, [settings])
    for first in (0, 5):
        with running(config) as up:
            for minute in range(first, first + 5):
                up.clock.set(up.service.streams["city"].feed.timeline.begin(minute))
                up.post(people(minute))
                up.pass_steps()
            found = asked(up, query="four").json()["answers"]
        config.access.tokens.unlink()
    assert [(each["begin"], each["values"]) for each in found] == [
        (begin, [sum(range(begin, begin + 4)) + 4]) for begin in (0, 2, 4, 6)
    ]


STREAM = """
[[streams]]
name = "city"
epsilon = 1
window = "1h"
step = "10min"
start = 2026-01-01T00:00:00Z
bins = 3
store = "city.store"
"""


def written(folder, more, queries='[[query]]\nwindow = "1h"\nstep = "20min"\nname = "hour"\n'):
    (folder / "queries.toml").write_text(queries)
    (folder / "eventide.toml").write_text(STREAM + more)
    return folder / "eventide.toml"


def test_queries_are_configured_with_their_share(tmp_path):
    more = 'queries = "queries.toml"\nqueries_epsilon = 0.3\nqueries_of = "total"\n'
    (city,) = read_config(written(tmp_path, more)).streams
    assert city.queries == (Query(6, 2, "hour"),)
    assert city.build_mechanism().epsilon == 0.7
    questions = city.questions()
    assert (questions.epsilon, questions.of, questions.truncate) == (Fraction(3, 10), "total", True)


@pytest.mark.parametrize(
    ("more", "line", "part"),
    [
        ('queries = "queries.toml"\n', 10, "need a share of epsilon"),
        ("queries_epsilon = 0.3\n", 10, "name their file"),
        ('queries = "queries.toml"\nqueries_epsilon = 1.0\n', 11, "leaves nothing of epsilon 1 for releases"),
        ('queries = "nowhere.toml"\nqueries_epsilon = 0.3\n', 10, "cannot be read"),
        ('queries = "queries.toml"\nqueries_epsilon = 0.3\nqueries_of = "some"\n', 12, "choose one of them"),
        ('queries = "queries.toml"\nqueries_epsilon = 0.000001\n', 10, "leaves less than"),
    ],
)
def test_a_mistake_about_queries_is_named(tmp_path, more, line, part):
    _, (said,) = examine(written(tmp_path, more))
    assert said.startswith(f"eventide.toml, line {line}: "), said
    assert part in said


def test_a_mistake_in_the_file_of_queries_is_named(tmp_path):
    more = 'queries = "queries.toml"\nqueries_epsilon = 0.3\n'
    with pytest.raises(InputError, match=r"queries.toml, query 1: .* no whole number of ticks"):
        read_config(written(tmp_path, more, '[[query]]\nwindow = "15min"\nstep = "15min"\n'))
