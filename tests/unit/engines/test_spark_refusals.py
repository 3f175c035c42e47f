"""What Spark does not publish is refused before Spark is asked for anything."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from eventide.engines.spark import spark_feed
from eventide.engines.spark_tallies import Counting
from eventide.errors import InputError
from eventide.live.stream_spec import StreamSpec


def test_people_of_slots_beside_other_statistics_are_refused(tmp_path):
    steps = {"step": "1h", "start": "2026-01-01", "until": "2026-01-02", "bins": ["a"], "user": "user"}
    frame = SimpleNamespace(isStreaming=True, columns=["timestamp", "user", "bin"])
    counting = Counting(StreamSpec(**steps, statistic=["events", "people/1d"]), None)
    with pytest.raises(
        InputError, match="Spark cannot publish people of 1d beside other statistics; publish them alone"
    ):
        spark_feed(frame, counting, tmp_path, skew="1s", available_now=True, trigger="1 second")
