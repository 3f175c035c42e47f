"""A pan-private stream of the service: what it holds between two requests, what it refuses, and intrusions."""

import json
import sqlite3

from click.testing import CliRunner
from running_service import EXACT, configuration, event, running, stream, wait_until

from eventide.cli import main

PAN = {"mechanism": "bd", "window": 8, "user": None, "parameters": {"pan_private": "announced"} | EXACT}


def cells(service):
    return service.streams["city"].publisher.mechanism._open._cells


def test_requests_go_into_cells_and_leave_nothing_else(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, **PAN)])) as up:
        up.clock.set(up.clock.now() + 30_000_000)
        sent = up.post([event("north"), event("south", second=20), event("nowhere")]).json()
        assert (sent["accepted"], sum(sent["refused"].values())) == (2, 1)
        up.post([event("north", second=12)])
        assert cells(up.service)[0]._look.tolist() == [[2, 1, 0]]
        refused = up.post([event()], key="once")
        assert (refused.status_code, refused.json()["code"]) == (400, "no-keys")
        feed = up.service.streams["city"].feed
        assert (feed.totals.accepted, feed.counters.accepted, feed.waiting) == (0, 0, 0)
        assert not up.service.doorkeeper.rate._buckets, "when a sender was there last is not remembered"
        state = up.server.server_state
        wait_until(lambda: not state.tasks)  # the answer is sent before the server has done with the request
        assert (feed._waiting.unfinished_tasks, state.total_requests) == (0, 0)
        assert not [each.cycle for each in state.connections if each.cycle], "a request is held"
        with sqlite3.connect(tmp_path / "city.store") as reader:
            kept, batches = (reader.execute(f"SELECT COUNT(*) FROM {table}").fetchone() for table in ("kept", "batch"))
        reader.close()
        assert (kept, batches) == ((0,), (0,))
        found = CliRunner().invoke(main, ["intrusion", str(tmp_path / "city.store")])
        assert found.exit_code == 0, found.output
        up.post([event("north", second=13)])
        assert all(each.intruded for each in cells(up.service))
        up.pass_steps()
        (released,) = up.service.streams["city"].lines(0, 1)
        assert json.loads(released[1])["values"] == [3, 1, 0]
        assert not any(each._look.any() for each in cells(up.service))
