"""The way of a batch through a folder, with a frame that stands for Spark's."""

import dataclasses
import threading
from pathlib import Path

import pytest

from eventide.engines.spark_batches import HandedOver, HandOver
from eventide.engines.spark_tallies import Counting
from eventide.errors import StateError
from eventide.live.stream_spec import StreamSpec


class Frame:
    """Writes one file where Spark would write tallies."""

    def __getattr__(self, name):
        return lambda *given, **named: self

    @property
    def write(self):
        return self

    def parquet(self, place):
        Path(place).mkdir()
        (Path(place) / "tallies").write_text("raw")


def sides(tmp_path, next_step=0):
    handed = HandedOver(tmp_path / "handover", next_step)
    counting = Counting(StreamSpec(bins=["a"], step="1min", start="2024-03-30", until="2024-03-31"), None)
    return handed, HandOver(handed.folder, tmp_path / "mark", counting)


def test_spark_commits_a_batch_only_when_it_is_published(tmp_path):
    handed, hand_over = sides(tmp_path)
    committed = threading.Thread(target=hand_over, args=(Frame(), 4))
    committed.start()
    while handed.written() is None:
        assert committed.is_alive()
    assert handed.written() == 4
    (tmp_path / "open").mkdir()
    (tmp_path / "open" / "of an earlier life").touch()
    handed.take(4, tmp_path / "open")
    assert [path.name for path in (tmp_path / "open").iterdir()] == ["tallies"]
    assert handed.written() is None
    handed.publish(3, 1)
    assert committed.is_alive()
    handed.publish(4, 2)
    committed.join(60)
    assert not committed.is_alive()


def test_what_a_killed_publisher_left_behind_fails_and_is_read_by_nobody(tmp_path):
    _, left_behind = sides(tmp_path)
    handed, _ = sides(tmp_path)
    with pytest.raises(StateError, match="has ended"):
        left_behind(Frame(), 0)
    assert handed.written() is None


def test_a_batch_in_hand_fails_when_the_publisher_ends(tmp_path):
    handed, hand_over = sides(tmp_path)
    failures = []

    def spark():
        try:
            hand_over(Frame(), 0)
        except StateError as failure:
            failures.append(failure)

    calling = threading.Thread(target=spark)
    calling.start()
    while handed.written() is None:
        assert calling.is_alive()
    handed.end()
    calling.join(60)
    assert len(failures) == 1


def test_the_key_is_not_shown(tmp_path):
    _, hand_over = sides(tmp_path)
    counting = dataclasses.replace(hand_over.counting, key=b"secret of the store")
    assert "secret" not in repr(dataclasses.replace(hand_over, counting=counting))
