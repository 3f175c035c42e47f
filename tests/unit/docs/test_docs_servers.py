"""The pages about brokers, the service and the database, followed to the end against servers that really run."""

from __future__ import annotations

import json
import shutil

import pytest
from documents import ROOT, Reader
from nats_server import free_port
from postgres_server import PostgresServer

pytestmark = pytest.mark.slow


def page(name):
    return (ROOT / "docs" / "how-to" / name).read_text(encoding="utf-8")


def test_nats(tmp_path, capsys):
    """The server is started as nats.md says, on another port and in another folder."""
    port = free_port()
    here = {"/var/lib/nats -a": f"{tmp_path}/nats -p {port} -a", "127.0.0.1:4222": f"127.0.0.1:{port}"}
    Reader(tmp_path, here).follow(page("nats.md"))
    assert (tmp_path / "visits.db").exists()


def test_kafka(tmp_path, capsys):
    """kafka.md, against the mock cluster of confluent-kafka, which does not say when a message was appended."""
    kafka = pytest.importorskip("confluent_kafka", reason="needs confluent-kafka: pip install '.[test]'")
    cluster = kafka.Producer({"test.mock.num.brokers": 1, "bootstrap.servers": "mock", "log_level": 0})
    brokers = next(iter(cluster.list_topics(timeout=300).brokers.values()))
    cluster.produce("visits", json.dumps({"timestamp": "2026-01-01T00:00:00Z", "user": 1, "page": "home"}))
    assert cluster.flush(300) == 0
    here = {"127.0.0.1:9092": f"127.0.0.1:{brokers.port}", "visits?group=": "visits?arrival=read&group="}
    Reader(tmp_path, here).follow(page("kafka.md"))
    assert (tmp_path / "visits.db").exists()


@pytest.mark.skipif(shutil.which("curl") is None, reason="needs curl: install it with the system's package manager")
def test_service(tmp_path, capsys):
    """serve.md, with ports that nobody else has."""
    port, other = str(free_port()), str(free_port())
    here = {
        "eventide init ": f"eventide init && sed -i s/port.=.8710/port={port}/ eventide.toml ",
        "demo --serve": f"demo --serve --no-browser --port {other}",
        "127.0.0.1:8710": f"127.0.0.1:{port}",
    }
    Reader(tmp_path, here).follow(page("serve.md"))
    assert (tmp_path / "city.store").exists()


@pytest.mark.database
def test_postgres(tmp_path, capsys):
    """postgres.md; the commands of PostgreSQL find the server by their variables."""
    server = PostgresServer().start()
    here = {
        "eventide@127.0.0.1/city": f"eventide@127.0.0.1:{server.port}/city",
        "host 'store.example.org'": f"host '127.0.0.1', port '{server.port}'",
    }
    known = {"PGHOST": "127.0.0.1", "PGPORT": str(server.port), "PGUSER": "eventide", "PGDATABASE": "city"}
    try:
        Reader(tmp_path, here, **known).follow(page("postgres.md"))
    finally:
        server.kill()
    assert "CREATE VIEW visits.releases" in (tmp_path / "visits.sql").read_text()
