"""A pan-private publisher is killed at every point at which it writes: nothing raw is left or counted twice."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_server import PostgresServer

SUPPORT = Path(__file__).parents[1] / "support"


def outcomes(folder, store):
    """What each way of living left behind, after it was looked at for what must never be there."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(SUPPORT), *sys.path])}
    script = [sys.executable, str(SUPPORT / "noisy_deaths.py"), str(folder), store]
    found = json.loads(subprocess.run(script, env=environment, check=True, capture_output=True, text=True).stdout)
    for name, each in found.items():
        assert (each["problems"], each["position"], each["kept"]) == ([], "null", 0), name
        assert each["intrusions"] == name.startswith("seen")
        assert len(each["lines"]) == 9
    return found


@pytest.mark.slow
def test_killed_at_every_write_point_with_a_file_as_store(tmp_path):
    found = outcomes(tmp_path, str(tmp_path / "{}.db"))
    assert found["killed"]["lines"] == found["twin"]["lines"]


@pytest.mark.slow
@pytest.mark.database
def test_killed_at_every_write_point_with_postgresql(tmp_path):
    server = PostgresServer().start()
    try:
        found = outcomes(tmp_path, server.address + "#{}")
    finally:
        server.kill()
    assert found["killed"]["lines"] == found["twin"]["lines"]
