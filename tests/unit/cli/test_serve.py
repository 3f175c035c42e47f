"""`eventide serve` and `eventide demo --serve` as commands: they come up, tell where, and go down when told."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager

import httpx
import pytest
from certificates import make_certificates
from click.testing import CliRunner
from nats_server import PATIENCE, free_port
from running_service import wait_until

from eventide.cli import main
from eventide.cli.serve import require_service
from eventide.errors import InputError


@contextmanager
def started(*arguments, folder):
    """The command, once it has said where it listens."""
    command = [sys.executable, "-m", "eventide", *arguments]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True) as process:
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if found := re.search(r"(http://\S+?)(?:#token=(\S+))?\n", line):
                    yield process, *found.groups()
                    break
            else:
                raise AssertionError(f"it ended without saying where it listens: {''.join(said)}")
        finally:
            process.kill()


@pytest.fixture
def config(tmp_path):
    CliRunner().invoke(main, ["init", str(tmp_path / "eventide.toml")])
    text = (tmp_path / "eventide.toml").read_text()
    (tmp_path / "eventide.toml").write_text(text.replace("port = 8710", f"port = {free_port()}"))
    return tmp_path / "eventide.toml"


def test_the_service_comes_up_and_ends_well_when_told_to(config, tmp_path):
    token = CliRunner().invoke(main, ["config", "token", "read", str(config)]).stdout.strip()
    with started("serve", "eventide.toml", folder=tmp_path) as (process, address, _):
        headers = {"Authorization": f"Bearer {token}"}
        answer = httpx.get(f"{address}v1/streams", headers=headers, trust_env=False, timeout=PATIENCE)
        assert answer.json()["streams"][0]["name"] == "city"
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
    assert os.stat(tmp_path / "city.store").st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_at_a_hang_up_it_reads_its_configuration_again_and_goes_on(config, tmp_path):
    token = CliRunner().invoke(main, ["config", "token", "read", str(config)]).stdout.strip()
    text = re.sub(r"(?m)^bins = .*$", 'bins = ["north", "south"]\nspare_bins = 3', config.read_text())
    config.write_text(text.replace('mechanism = "tide"', 'mechanism = "uniform"'))
    with started("serve", "eventide.toml", folder=tmp_path) as (process, address, _):

        def bins():
            headers = {"Authorization": f"Bearer {token}"}
            told = httpx.get(f"{address}v1/streams/city/bins", headers=headers, trust_env=False, timeout=PATIENCE)
            return told.json()["bins"]

        assert bins() == ["north", "south", "(spare 1)", "(spare 2)", "(spare 3)"]
        config.write_text("nonsense")
        process.send_signal(signal.SIGHUP)
        assert "cannot be read again" in process.stderr.readline()
        config.write_text(text.replace('"south"]', '"south", "harbour"]').replace('"tide"', '"uniform"'))
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: bins()[2] == "harbour")
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_a_port_that_is_taken_is_said_to_be(config, tmp_path):
    port = int(re.search(r"port = (\d+)", config.read_text())[1])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        result = CliRunner().invoke(main, ["serve", str(config)])
    assert result.exit_code == 5  # so that systemd tries again: it may be free in a moment
    assert "end what listens there, or choose another host or port" in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["eventide.toml"]  # no store was made
    config.write_text(config.read_text().replace('host = "127.0.0.1"', 'host = "no such host"'))
    assert CliRunner().invoke(main, ["serve", str(config)]).exit_code == 2


def test_a_bad_configuration_starts_nothing(config, tmp_path):
    config.write_text(config.read_text().replace('mechanism = "tide"', 'mechanism = "bb"'))
    result = CliRunner().invoke(main, ["serve", str(config)])
    assert result.exit_code == 2
    assert "line" in result.stderr
    assert not (tmp_path / "city.store").exists()


def test_tokens_that_others_may_read_start_nothing(config, tmp_path):
    CliRunner().invoke(main, ["config", "token", "read", str(config)])
    (tmp_path / "eventide.tokens").chmod(0o644)
    result = CliRunner().invoke(main, ["serve", str(config)])
    assert result.exit_code == 2
    assert "chmod 600" in result.stderr


def test_a_second_service_on_a_store_is_refused(config, tmp_path):
    with started("serve", "eventide.toml", folder=tmp_path):
        config.write_text(re.sub(r"port = \d+", f"port = {free_port()}", config.read_text()))
        result = CliRunner().invoke(main, ["serve", str(config)])
    assert result.exit_code == 5
    assert "city.store is being written by process" in result.stderr


def test_the_log_says_that_the_service_ended_as_it_was_told_to(config, monkeypatch):
    def serve(service, *_):
        service.stop()

    monkeypatch.setattr("eventide.service.server.serve", serve)
    result = CliRunner().invoke(main, ["serve", str(config), "--log", "json"])
    assert result.exit_code == 0
    assert json.loads(result.stderr.splitlines()[-1])["event"] == "ended, as it was told to"


def test_missing_packages_are_named(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(InputError, match=r"needs uvicorn; .* in a copy of the source: pip install '\.\[service\]'"):
        require_service()


@pytest.mark.parametrize("verb", ["serve", "publish"])
def test_the_help_says_in_what_the_longest_window_is_given(verb):
    told = " ".join(CliRunner().invoke(main, [verb, "--help"]).output.split())
    assert "the longest window since the backup" in told
    assert "in steps or as a duration, if it was longer than the store" in told


def test_a_check_tells_of_missing_packages(config, monkeypatch):
    assert CliRunner().invoke(main, ["config", "check", str(config)]).exit_code == 0
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else object())
    result = CliRunner().invoke(main, ["config", "check", str(config)])
    assert (result.exit_code, "a start would be refused:\nthe service needs uvicorn;" in result.output) == (2, True)


@pytest.mark.slow
def test_the_demo_lives_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with started("demo", "--serve", "--no-browser", folder=tmp_path) as (process, address, token):
        headers = {"Authorization": f"Bearer {token}"}
        with httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=PATIENCE) as client:
            assert "eventide" in client.get("/").text
            with client.stream("GET", "/v1/streams/city/stream") as live:
                assert any(line.startswith("id: 3") for line in live.iter_lines())
            truth = client.get("/v1/streams/city/synthetic").json()["counts"]
            told = client.get("/v1/streams/city/guarantee").json()
        assert (truth[0]["step"], len(truth[0]["values"])) == (0, 240)
        assert told["private"]
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("key", ["text", "of another", "with a passphrase"])
def test_a_certificate_that_is_not_fit_is_told_by_a_check_and_before_a_store_is_made(config, tmp_path, key):
    make_certificates(tmp_path)
    file = tmp_path / "server.key"
    if key == "text":
        file.write_text("no key")
    elif key == "of another":
        shutil.copy(tmp_path / "ca.key", file)
    else:
        command = ["openssl", "pkey", "-in", file, "-aes128", "-passout", "pass:tide", "-out", tmp_path / "closed.key"]
        subprocess.run(command, check=True)
        (tmp_path / "closed.key").replace(file)
    encrypted = '[server]\ncertificate = "server.pem"\nkey = "server.key"'
    config.write_text(config.read_text().replace("[server]", encrypted))
    for verb in (["serve"], ["config", "check"]):
        result = CliRunner().invoke(main, [*verb, str(config)])
        assert result.exit_code == 2
        assert f"cannot use {tmp_path}/server.pem and {file} as certificate and key; give two" in result.output
    assert not list(tmp_path.glob("*.store"))
