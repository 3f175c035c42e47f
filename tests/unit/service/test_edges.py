"""Requests at the edges of what may be asked: none is a fault, and a right that was taken away ends at once."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading

import httpx
import pytest
from running_service import PATIENCE, configuration, event, running, stream

from eventide.service.config.settings import Limits
from eventide.windows.workload import Query


@pytest.fixture
def city(tmp_path):
    asked = {"queries": (Query(2, 1),), "queries_epsilon": 0.5}
    with running(configuration(tmp_path, [stream(tmp_path, **asked)])) as up:
        yield up


def test_a_bin_asked_for_twice_is_given_once(city):
    city.post([event("harbour")])
    city.pass_steps(2)
    for kind, form in itertools.product(["releases", "answers"], ["json", "csv", "arrow"]):
        path = f"/v1/streams/city/{kind}"
        once = city.client("read").get(path, params={"bin": ["harbour", "north"], "format": form})
        twice = city.client("read").get(path, params={"bin": ["harbour", "north", "harbour"], "format": form})
        assert (twice.status_code, twice.content) == (200, once.content), (kind, form)


def test_a_follower_that_was_at_no_step_is_refused(city):
    for step in ("0" * 20 + "9" * 30, "0" * 20 + "9" * 4400, "9" * 30, "", "-1"):
        answer = city.client("read").get("/v1/streams/city/stream", headers={"Last-Event-ID": step})
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid-parameter"), step


def test_a_follower_whose_token_is_taken_back_is_sent_away(city):
    heard: queue.Queue[str | None] = queue.Queue()

    def listen():
        with (
            contextlib.suppress(httpx.TransportError),
            city.client("read").stream("GET", "/v1/streams/city/stream", timeout=PATIENCE) as answer,
        ):
            for line in answer.iter_lines():
                if line.startswith("id: "):
                    heard.put(line)
        heard.put(None)

    city.pass_steps()
    follower = threading.Thread(target=listen)
    follower.start()
    assert heard.get(timeout=PATIENCE) == "id: 0"
    tokens = city.service.config.access.tokens
    tokens.write_text("".join(line for line in tokens.read_text().splitlines(True) if not line.startswith("read ")))
    city.pass_steps()
    assert heard.get(timeout=PATIENCE) is None
    follower.join()


def test_as_many_connections_as_configured_are_served(tmp_path):
    with running(configuration(tmp_path, limits=Limits(connections=1))) as up:
        assert up.client().get("/healthz").status_code == 200
