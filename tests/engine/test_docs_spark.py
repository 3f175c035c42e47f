"""The page about Spark, spark.md, followed on one machine: its stream comes from a real NATS server."""

from __future__ import annotations

import pytest
from documents import ROOT, Reader
from nats_server import NatsServer
from spark_cluster import environment

pytestmark = pytest.mark.engine


def test_spark(spark, tmp_path, capsys):
    page = (ROOT / "docs" / "how-to" / "spark.md").read_text(encoding="utf-8")
    server = NatsServer(tmp_path).start()
    server.make_stream("VISITS", "visits.>")
    here = {
        "spark://10.0.0.1:7077": "local[2]",
        "nats://10.0.0.2:4222": server.address,
        "/mnt/shared/visits": str(tmp_path / "work"),
        "publishing.await_termination()  # or publishing.stop()": "publishing.stop()  #",
    }
    try:
        assert Reader(tmp_path, here, **environment()).follow(page) >= 3
    finally:
        server.kill()
