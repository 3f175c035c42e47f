"""Sinks: what was half-written is cut, what is whole stays, and only stored bytes go out."""

from __future__ import annotations

import csv
import http.server
import json
import threading
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest

from eventide.errors import InputError, StoreError
from eventide.live.sinks.appending_file import AppendingFile, AppendingTable
from eventide.live.sinks.open_sink import open_sink
from eventide.live.sinks.webhook import Webhook
from eventide.live.sinks.whole_file import WholeFile
from eventide.releases.files import open_releases
from eventide.releases.formats import formats
from eventide.releases.lines import ReleaseLine, read_line, write_line

BINS = ("north", "south, far", "harbour")


def line(step, seed=0):
    values = np.random.default_rng([seed, step]).integers(0, 10 ** (step % 7 + 1), len(BINS)).astype(float)
    return write_line(ReleaseLine(step, step % 2 == 0, values, np.full(len(BINS), 2.5)))


def appending(path, kind):
    return AppendingFile(path) if kind == "jsonl" else AppendingTable(path, BINS, kind)


def filled(path, kind, steps, seed=0):
    sink = appending(path, kind)
    sink.open()
    for step in range(sink.last_step() + 1, steps):
        sink.send(step, line(step, seed))
    sink.close()
    return path.read_bytes()


def test_a_line_holds_a_release_and_the_same_release_gives_the_same_bytes():
    release = ReleaseLine(
        7, True, np.array([1.0, 2.5, -3]), np.array([np.inf, 1, 2]), np.zeros(3), np.ones(3), "2024-01-01T00:00:00Z"
    )
    written = write_line(release, release.start)
    assert json.loads(written)["scale"] == [None, 1, 2]
    back = read_line(written)
    assert (back.step, back.fresh, back.start) == (7, True, release.start)
    for name in ("values", "scale", "low", "high"):
        np.testing.assert_array_equal(getattr(back, name), getattr(release, name))
    assert write_line(back, back.start) == written


@pytest.mark.parametrize("kind", ["jsonl", "wide", "long"])
def test_cut_at_every_byte_a_file_is_completed_as_if_nothing_had_happened(tmp_path, kind):
    whole = filled(tmp_path / "whole", kind, 4)
    for length in range(len(whole)):
        path = tmp_path / "cut"
        path.write_bytes(whole[:length])
        sink = appending(path, kind)
        sink.open()
        last = sink.last_step()
        assert last < 0 or sink.holds(line(last))
        assert not sink.holds(line(last + 1))
        sink.close()
        assert filled(path, kind, 4) == whole


@pytest.mark.parametrize("kind", ["jsonl", "wide", "long"])
def test_a_file_of_another_store_is_known_by_its_last_step(tmp_path, kind):
    filled(tmp_path / "out", kind, 3, seed=1)
    sink = appending(tmp_path / "out", kind)
    sink.open()
    assert sink.last_step() == 2
    assert sink.holds(line(2, seed=1))
    assert not sink.holds(line(2))
    sink.close()


@pytest.mark.parametrize("kind", ["jsonl", "wide", "long"])
@pytest.mark.parametrize(
    "content", ["a diary", "a diary\nof two days\n", "bin,value\nnorth,4\n", '{"step": "x"}\n', "[]\n"]
)
def test_a_file_that_holds_something_else_is_refused_and_kept(tmp_path, kind, content):
    (tmp_path / "out").write_text(content)
    with pytest.raises(InputError, match="choose another file"):
        appending(tmp_path / "out", kind).open()
    assert (tmp_path / "out").read_text() == content


EARLIER_LONG = 'step,bin,value,scale\n0,north,3,2.5\n0,"south, far",4,2.5\n0,harbour,5,2.5\n'


def with_interval(step):
    release = read_line(line(step))
    return write_line(replace(release, low=release.values - 1, high=release.values + 1.5))


def test_a_table_goes_on_with_the_columns_it_was_begun_with(tmp_path):
    """Whether it has intervals is decided by its first line, also in a long table of an earlier version."""
    (tmp_path / "long.csv").write_text(EARLIER_LONG)
    for path, layout, columns in (
        (tmp_path / "long.csv", "long", 4),
        (tmp_path / "wide.csv", "wide", 4),
        (tmp_path / "new.csv", "long", 7),
        (tmp_path / "with.csv", "wide", 10),
    ):
        begun = columns in (7, 10)
        for asked in (begun or None, not begun):
            sink = AppendingTable(path, BINS, layout, intervals=asked)
            sink.check()
            sink.open()
            for step in range(max(1, sink.last_step() + 1), sink.last_step() + 3):
                sink.send(step, with_interval(step))
            assert sink.holds(with_interval(step))
            sink.close()
        with path.open() as file:
            rows = list(csv.reader(file))
        assert {len(row) for row in rows} == {columns}
        assert len({row[0] for row in rows[1:]}) >= 3
    assert (tmp_path / "long.csv").read_text().startswith(EARLIER_LONG)
    low, high = (float(rows[1][place]) - float(rows[1][1]) for place in (2, 3))
    assert (low, high) == (-1, 1.5)


@pytest.mark.parametrize("intervals", [True, False])
@pytest.mark.parametrize("layout", ["wide", "long"])
def test_a_parquet_file_keeps_its_columns_and_what_its_store_lost(tmp_path, layout, intervals):
    path = tmp_path / "out.parquet"
    with open_releases(str(path), BINS, layout, None, formats(starts=False, intervals=intervals)) as file:
        for step in range(3):
            file.write(read_line(with_interval(step)))
        file.commit()
    before = pq.read_table(path)
    sink = WholeFile(path, BINS, layout, intervals=not intervals, keeps=True)
    sink.check()
    sink.open()
    assert sink.last_step() == 2
    assert sink.holds(with_interval(2))
    sink.send(0, with_interval(0))
    sink.send(3, with_interval(3))  # 1 and 2 are not in the store any more
    sink.finish()
    after = pq.read_table(path)
    assert after.schema == before.schema
    assert after[: len(before)].to_pylist() == before.to_pylist()
    assert sorted(set(after["step"].to_pylist())) == [0, 1, 2, 3]


def test_a_table_of_other_bins_is_refused(tmp_path):
    filled(tmp_path / "out", "wide", 2)
    with pytest.raises(InputError, match="other columns"):
        AppendingTable(tmp_path / "out", ("north", "west"), "wide").open()


def test_a_full_disk_leaves_whole_steps_only(tmp_path, monkeypatch):
    path = tmp_path / "out"
    before = filled(path, "jsonl", 3)
    sink = appending(path, "jsonl")
    sink.open()
    written = []

    class Full:
        def __init__(self, file):
            self._file = file

        def write(self, data):
            if written:
                raise OSError(28, "No space left on device")
            written.append(True)
            return self._file.write(data[:5])

        def __getattr__(self, name):
            return getattr(self._file, name)

    file = sink._file
    monkeypatch.setattr(sink, "_file", Full(file))
    with pytest.raises(OSError, match="No space"):
        sink.send(3, line(3))
    assert path.read_bytes() == before
    monkeypatch.setattr(sink, "_file", file)
    sink.send(3, line(3))
    sink.close()
    assert path.read_bytes() == before + line(3) + b"\n"


def send(sink, steps):
    for step in steps:
        sink.send(step, line(step))


@pytest.mark.parametrize("kind", ["jsonl", "wide", "long"])
def test_a_step_that_another_process_has_written_is_not_written_again(tmp_path, kind):
    whole = filled(tmp_path / "whole", kind, 6)
    paused, other = appending(tmp_path / "out", kind), appending(tmp_path / "out", kind)
    paused.open()
    send(paused, range(2))
    other.open()
    send(other, range(2, 5))
    send(paused, range(2, 6))
    send(other, range(5, 6))
    for sink in (paused, other):
        sink.close()
    assert (tmp_path / "out").read_bytes() == whole


def test_a_file_in_the_hand_of_another_process_is_left_for_later(tmp_path):
    sink, other = appending(tmp_path / "out", "jsonl"), appending(tmp_path / "out", "jsonl")
    sink.open()
    with sink._locked(), pytest.raises(InputError, match="being written by another process"):
        other.open()
    other.open()
    with other._locked(), pytest.raises(OSError):
        sink.send(0, line(0))
    sink.send(0, line(0))
    for each in (sink, other):
        each.close()
    assert (tmp_path / "out").read_bytes() == line(0) + b"\n"


def test_a_file_that_was_emptied_meanwhile_goes_on_without_a_hole(tmp_path):
    sink = appending(tmp_path / "out", "wide")
    sink.open()
    sink.send(0, line(0))
    (tmp_path / "out").write_bytes(b"")
    sink.send(1, line(1))
    sink.close()
    assert (tmp_path / "out").read_bytes() == sink.header + sink.encode(line(1))


def test_a_parquet_file_appears_when_it_is_finished(tmp_path):
    path = tmp_path / "out.parquet"
    for steps in (3, 5):
        sink = open_sink(path, BINS)
        sink.open()
        for step in range(steps):
            sink.send(step, line(step))
        assert sink.last_step() == {3: -1, 5: 2}[steps]  # what was there before
        assert steps == 3 or (sink.holds(line(2)) and not sink.holds(line(2, seed=1)))
        sink.finish()
        sink.close()
        np.testing.assert_array_equal(pq.read_table(path)["step"], range(steps))
    sink = open_sink(path, BINS)
    sink.open()
    sink.send(0, line(0))
    sink.close()  # not finished
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.parquet"]
    assert pq.read_table(path).num_rows == 5


class Receiver(http.server.BaseHTTPRequestHandler):
    """Keeps what is posted; answers as the list of statuses says, then 200."""

    statuses: ClassVar[list[int]] = []
    posted: ClassVar[list[tuple[str, str, bytes]]] = []

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.posted.append((self.path, self.headers["Idempotency-Key"], body))
        self.send_response(self.statuses.pop(0) if self.statuses else 200)
        self.send_header("Location", "/elsewhere")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    Receiver.statuses, Receiver.posted = [], []
    server = http.server.HTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/in?token=secret"
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_webhook_gets_the_stored_bytes_with_the_step_as_key(receiver):
    sink = open_sink(receiver, BINS)
    sink.send(4, line(4))
    assert Receiver.posted == [("/in?token=secret", "4", line(4))]
    assert "secret" not in sink.name
    assert sink.name == Webhook(receiver).name != Webhook(receiver + "2").name


@pytest.mark.parametrize("status", [301, 307, 400, 404, 500, 503])
def test_a_webhook_that_does_not_say_yes_is_tried_again_later(receiver, status):
    Receiver.statuses.append(status)
    with pytest.raises(OSError, match=str(status)):
        Webhook(receiver).send(4, line(4))
    assert len(Receiver.posted) == 1  # and not followed elsewhere


def test_a_webhook_that_holds_another_release_is_ahead(receiver):
    Receiver.statuses.append(409)
    with pytest.raises(StoreError, match="--after-restore"):
        Webhook(receiver).send(4, line(4))


def test_a_webhook_where_nobody_listens_is_tried_again_later():
    with pytest.raises(OSError):
        Webhook("http://127.0.0.1:9/").send(0, line(0))


@pytest.mark.parametrize("url", ["http://", "https://user:password@example.org/"])
def test_an_address_that_is_none_is_refused_without_showing_it(url):
    with pytest.raises(InputError) as refused:
        open_sink(url, BINS)
    assert "password@" not in str(refused.value)


@pytest.mark.parametrize("place", ["out.xlsx", "out"])
def test_an_ending_that_means_nothing_is_refused(place):
    with pytest.raises(InputError, match="none of"):
        open_sink(place, BINS)
