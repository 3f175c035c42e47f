"""The container file, done step by step in a root of Debian's own; then the service in it, as its user, read-only."""

from __future__ import annotations

import os
import shutil
import signal
import time
from pathlib import Path

import httpx
import pytest
from container_replay import Replay, instructions
from nats_server import free_port

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "deploy" / "container" / "Containerfile").read_text()
PATIENCE = 600  # seconds
CONFIGURATION = """
[server]
port = {port}
health_port = {health}
[access]
tokens = "/var/lib/eventide/eventide.tokens"
[[streams]]
name = "city"
epsilon = 1
window = 5
step = "1s"
start = {start}
bins = 3
user = "user"
store = "/var/lib/eventide/city.store"
"""


def test_it_ends_as_somebody_without_rights_with_a_health_check_and_a_volume():
    last = dict(instructions(TEXT))
    assert last["FROM"] == "debian:bookworm-slim"
    assert not last["USER"].startswith(("0", "root"))
    assert "8711/healthz" in last["HEALTHCHECK"]
    assert last["VOLUME"] == "/var/lib/eventide"
    assert any(
        argument.endswith("eventide warm /usr/local/lib/eventide/compiled") for _, argument in instructions(TEXT)
    )


@pytest.mark.nightly
def test_the_service_runs_in_it_read_only_and_without_rights(tmp_path):
    if os.geteuid() or shutil.which("mmdebstrap") is None:
        pytest.skip("needs root and mmdebstrap: install it with the system's package manager")
    built = Replay(TEXT, ROOT, tmp_path)
    port, health = free_port(), free_port()
    user = int(built.user.partition(":")[0])
    volume, settings = tmp_path / "volume", tmp_path / "eventide.toml"
    volume.mkdir(mode=0o700)
    os.chown(volume, user, user)
    start = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    settings.write_text(CONFIGURATION.format(port=port, health=health, start=start))
    settings.chmod(0o644)
    mounts = [(str(settings), "/etc/eventide/eventide.toml"), (str(volume), built.volume)]
    for source, target in mounts:
        built.place(source, target)
    held = {"user": built.user, "binds": mounts, "read_only": True}
    token = built.inside(["eventide", "config", "token", "read", "/etc/eventide/eventide.toml"], **held).strip()
    began = time.monotonic()
    process = built.inside([*built.entry, *built.command], start=True, **held)
    try:
        reader = {"headers": {"Authorization": f"Bearer {token}"}, "trust_env": False}
        latest = f"http://127.0.0.1:{port}/v1/streams/city/releases?latest=1"
        while True:
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < began + PATIENCE
            try:
                if httpx.get(latest, **reader).json()["releases"]:
                    break
            except httpx.TransportError:
                pass
            time.sleep(0.2)
        print(f"first release of Tide after {time.monotonic() - began:.1f} s")
        check = [word.replace("8711", str(health)) for word in built.health]
        built.inside(check, **held)
        own = Path(f"/proc/{process.pid}/status").read_text()
        assert f"Uid:\t{user}\t{user}\t{user}\t{user}" in own
        assert "CapEff:\t0000000000000000" in own
    finally:
        process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=PATIENCE)[1]
    assert process.returncode == 0, said
    assert "memory" not in said  # nothing had to be compiled at the start
    assert (volume / "city.store").stat().st_mode & 0o777 == 0o600
    for stage in tmp_path.glob("stage-*"):
        shutil.rmtree(stage)
