"""A whole run leaves nothing raw in logs, figures and answers: no user, no event, no true count."""

from __future__ import annotations

import json
import logging
import os
import re
from fractions import Fraction

import pytest
from running_service import configuration, event, running, stream

from eventide.privacy.noise import Seeded
from eventide.windows.workload import Query

PEOPLE = 1237  # a number that nothing else here has, and so has each bin
SHARES = {"north": 709, "south": 431, "harbour": 97}
USERS = [f"person-{number:05}-q7" for number in range(PEOPLE)]


OF_EVERY_RECORD = vars(logging.makeLogRecord({})).keys()  # such as the millisecond, which may be any number


def raw_numbers():
    return [PEOPLE, *SHARES.values()]


def written(record):
    """What a record of the log says: its message, what was added to it, and its exception."""
    message = record.getMessage().replace(f"process [{os.getpid()}]", "process")  # which may be any number as well
    added = {name: value for name, value in vars(record).items() if name not in OF_EVERY_RECORD}
    return json.dumps([message, str(added), str(record.exc_info)])


def holds(text, number):
    return re.search(rf"(?<![\d.]){number}(?:\.0)?(?![\d.])", text) is not None


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Everything that a run says, by who hears it."""
    folder, records = tmp_path_factory.mktemp("leaks"), []
    handler = logging.Handler(logging.DEBUG)
    handler.emit = lambda record: records.append(record)
    root = logging.getLogger()
    root.addHandler(handler)
    level = root.level
    root.setLevel(logging.DEBUG)
    # large noise, always the same: drawn anew, a release would show a true count by chance now and then
    settings = stream(
        folder,
        epsilon=Fraction(1, 500),
        parameters={"noise": Seeded(1)},
        mechanism="uniform",
        filter="none",
        queries=(Query(2, 1), Query(6, 6)),  # of which the second is open all the time
        queries_epsilon=Fraction(1, 1000),
    )
    heard = {}
    try:
        with running(configuration(folder, [settings])) as up:
            places = [name for name, share in SHARES.items() for _ in range(share)]
            batch = [event(place, user) for place, user in zip(places, USERS, strict=True)]
            heard["ingest"] = up.post([*batch, event("person-x-q7", "person-y-q7"), "person-z-q7"], key="k").text
            heard["ingest"] += up.post(batch, key="k").text
            up.pass_steps(3)
            reader = up.client("read")
            description = reader.get("/openapi.json")
            described = description.json()["paths"].items()
            paths = [path.replace("{name}", "city") for path, kinds in described if "get" in kinds]
            paths = [path for path in paths if not path.endswith("/stream")]  # which never ends; see below
            forms = [(what, form) for what in ("releases", "answers") for form in ("csv", "arrow")]
            paths += [f"/v1/streams/city/{what}?format={form}" for what, form in forms]
            paths += ["/v1/streams/city/releases?format=csv&layout=long", "/docs", "/"]
            heard["read"] = description.text + "".join(reader.get(path).content.decode("latin-1") for path in paths)
            with reader.stream("GET", "/v1/streams/city/stream") as answer:
                for line in answer.iter_lines():
                    heard["read"] += line
                    if line.startswith("id: 2"):
                        break
            heard["operate"] = up.client("operate").get("/v1/streams/city/operations").text
            heard["operate metrics"] = up.client("operate").get("/metrics").text
            for wrong in ("/v1/streams/person-0-q7", "/person-0-q7", "/v1/streams/city/releases?first=person-0-q7"):
                heard["read"] += reader.get(wrong).text
            heard["read"] += up.post({"person-0-q7": 1}).text
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    own = [record for record in records if not record.name.startswith(("httpx", "httpcore"))]  # the client's own
    heard["log"] = "\n".join(map(written, own))
    return heard


def test_the_run_was_worth_looking_at(told):
    assert f'"accepted":{PEOPLE}' in told["ingest"]
    assert f'"accepted":{PEOPLE}' in told["operate"]
    assert holds(told["operate metrics"], PEOPLE)
    assert '"step": 2' in told["read"]
    assert '"query":"2 every 1"' in told["read"]
    assert told["log"]


@pytest.mark.parametrize("hearer", ["ingest", "read", "operate", "operate metrics", "log"])
def test_nobody_hears_of_a_user_or_an_event(told, hearer):
    assert "q7" not in told[hearer]


@pytest.mark.parametrize("hearer", ["read", "log"])
def test_no_true_count_is_told(told, hearer):
    assert [number for number in raw_numbers() if holds(told[hearer], number)] == []


def test_a_true_count_would_be_found():
    assert holds('{"values": [709.0, 12]}', 709)
    assert holds("accepted 1237", 1237)
    assert not holds("17097 and 0.709", 709)
