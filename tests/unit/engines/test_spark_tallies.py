"""What Spark's executors do, without Spark: any division of events into partitions gives the counts of one machine."""

import itertools
import json
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide import engines
from eventide.engines.spark_tallies import SUMMARY, Counting, Tallying, bounded, capped, remembered, unpacked
from eventide.engines.spark_work_folder import WorkFolder
from eventide.errors import InputError
from eventide.live.feeds.base import Resume
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.sources.base import FOREVER, EventBatch
from eventide.live.stream_spec import StreamSpec

BINS = ("north", "south", "harbour")
KEY = bytes(range(16))
STEPS = 4
SCHEMA = pa.schema([(name, pa.string()) for name in ("timestamp", "user", "bin", "arrival", "fare")])
STATISTICS = {
    "events": "",
    "people": "",
    "people/20s": "",
    "sum:fare": "fare=0,100,0.5",
    "mean:fare": "fare=0,100,0.5",
    ("people", "mean:fare"): "fare=0,100,0.5",
}


def counting(user="user", shards=3, cap=None, statistic="events", **more):
    spec = StreamSpec(
        bins=BINS,
        user=user,
        start="1970-01-01T00:00:00Z",
        step="10s",
        until="1970-01-01T00:00:40Z",
        late="5s",
        max_per_step=2 if user else 1,
        cap=cap,
        statistic=statistic,
        between=STATISTICS[statistic],
    )
    return Counting(spec, "arrival", key=KEY, shards=shards, **more)


def nothing(rule):
    """As many zeros as a statistic has numbers at all steps."""
    return np.zeros((STEPS, len(rule.tally().counts(0))), np.int64)


def tallied(rule, partitions):
    """The rows of all partitions: tallies, and what was summed up."""
    rows = []
    for number, events in enumerate(partitions):
        batches = [pa.RecordBatch.from_pylist(events[:1], SCHEMA), pa.RecordBatch.from_pylist(events[1:], SCHEMA)]
        for batch in Tallying(rule, number).rows(batches):
            rows += batch.to_pylist()
    return [row for row in rows if row["step"] != SUMMARY], [
        json.loads(row["tally"]) for row in rows if row["step"] == SUMMARY
    ]


def counted(rule, partitions):
    """The counts of each step, bounded by two partitions that each hold whole shards."""
    counts, left_out = nothing(rule), 0
    rows, _ = tallied(rule, partitions)
    for worker in (0, 1):
        mine = sorted((row for row in rows if row["shard"] % 2 == worker), key=lambda row: (row["step"], row["shard"]))
        for batch in bounded(rule, [pa.RecordBatch.from_pylist([row]) for row in mine]):
            for row in batch.to_pylist():
                step, bins, some = unpacked(row)
                counts[step, bins] += some
                left_out += row["left_out"]
    return counts, left_out


def counted_under_a_cap(rule, partitions, at_once):
    """The same under a cap, so many closed steps at once; and what each step keeps."""
    counts, left_out, kept = nothing(rule), np.zeros(2, np.int64), []
    rows, memory = tallied(rule, partitions)[0], rule.spec.made_statistic().memory(rule.spec.cap_in_steps(), KEY)
    for first in range(0, STEPS, at_once):
        steps, used = range(first, min(STEPS, first + at_once)), {}
        closing = [row for row in rows if row["step"] in steps] + remembered(memory, first, rule.shards).to_pylist()
        closing.sort(key=lambda row: (row["shard"], row["step"]))
        for worker in (0, 1):
            mine = [pa.RecordBatch.from_pylist([row]) for row in closing if row["shard"] % 2 == worker]
            for row in [row for batch in capped(rule, mine) for row in batch.to_pylist() if row["step"] in steps]:
                step, bins, some = unpacked(row)
                counts[step, bins] += some
                left_out += np.array([row["left_out"], row["left_out_by_cap"]])
                used.setdefault(step, []).append(row["used"])
        kept += [memory.to_keep(step, memory.take_together(step, used.get(step, ()))) for step in steps]
    return counts, left_out.tolist(), kept


def counted_by_one_machine(rule, events):
    counts, (left_out, _), _ = kept_by_one_machine(rule, events)
    return counts, left_out


def kept_by_one_machine(rule, events):
    feed, kept = EventFeed(None, **rule.spec.counting()), []
    feed.begin(Resume(rule.next_step, None, KEY, []))
    good = [event for event in events if event["arrival"] is not None]
    arrival = np.array([round(float(event["arrival"]) * 1e6) for event in good], np.int64)
    feed.take(EventBatch(feed.reader.read(good, 0, arrival), None, FOREVER))
    counts = nothing(rule)
    for step in feed.closed():
        counts[step.index] = step.counts
        kept.append(step.kept)
    return counts, [feed.left_out, feed.left_out_by_cap], kept


EVENTS = st.lists(
    st.fixed_dictionaries(
        {
            "timestamp": st.sampled_from([*map(str, range(-5, 50, 3)), "never", "4102444800"]),
            "user": st.sampled_from(["a", "b", "c", "", None]),
            "bin": st.sampled_from([*BINS, "nowhere"]),
            "arrival": st.sampled_from([*map(str, range(0, 60, 4)), None]),
            "fare": st.sampled_from(["0", "7.26", "12", "99", "1e308", "-3", "nan", "x", None]),
        }
    ),
    max_size=60,
)


@pytest.mark.parametrize(
    ("statistic", "user"), [*itertools.product(STATISTICS, ["user"]), ("events", None), ("sum:fare", None)]
)
@given(EVENTS, st.integers(1, 4), st.integers(1, 5), st.integers(0, 2))
@settings(max_examples=20)
def test_partitions_and_shards_change_nothing(statistic, user, events, partitions, shards, next_step):
    rule = counting(user, shards, statistic=statistic, next_step=next_step)
    divided = [events[number::partitions] for number in range(partitions)]
    random.Random(1).shuffle(divided)
    (counts, left_out), (expected, left_out_by_one) = counted(rule, divided), counted_by_one_machine(rule, events)
    np.testing.assert_array_equal(counts, expected)
    assert left_out == left_out_by_one


@pytest.mark.parametrize(
    ("cap", "statistic"),
    [
        *itertools.product(["2/1", "2/2", "3/3", "2/9"], ["events"]),
        *itertools.product(["3/3"], ["people", "sum:fare", ("people", "mean:fare")]),
    ],
)
def test_under_a_cap_nothing_changes_either_nor_by_which_steps_close_together(cap, statistic):
    chance = random.Random(8)
    seconds = sorted(chance.randrange(10 * STEPS) for _ in range(90))
    events = [
        {"timestamp": str(at), "user": f"user {chance.randrange(20)}", "bin": chance.choice(BINS), "arrival": str(at)}
        | {"fare": str(at % 17 * 3.7)}
        for at in seconds
    ]
    expected, left_out, kept = kept_by_one_machine(counting(cap=cap, statistic=statistic), events)
    assert left_out[0] >= left_out[1] >= (cap != "2/1")
    for shards, at_once in itertools.product((1, 4), range(1, STEPS + 1)):
        rule = counting(shards=shards, cap=cap, statistic=statistic)
        counts, *more = counted_under_a_cap(rule, [events[::2], events[1::2]], at_once)
        np.testing.assert_array_equal(counts, expected)
        assert more == [left_out, kept]


def test_a_user_is_bounded_once_whatever_the_shards():
    chance = random.Random(7)
    seconds = [chance.randrange(10 * STEPS) for _ in range(600)]
    events = [
        {"timestamp": str(at), "user": f"user {chance.randrange(20)}", "bin": chance.choice(BINS), "arrival": str(at)}
        for at in seconds
    ]
    counts, left_out = counted(counting(shards=5), [events[number::3] for number in range(3)])
    expected, left_out_by_one = counted_by_one_machine(counting(), events)
    np.testing.assert_array_equal(counts, expected)
    assert left_out == left_out_by_one > 0
    assert counts.sum() == 20 * 2 * STEPS


def test_a_partition_is_summed_up():
    events = [
        {"timestamp": "1", "user": "a", "bin": "north", "arrival": "2"},
        {"timestamp": "1", "user": "a", "bin": "north", "arrival": "39"},
        {"timestamp": "1", "user": "b", "bin": "nowhere", "arrival": "3"},
        {"timestamp": "1", "user": "b", "bin": "north", "arrival": None},
    ]
    _, (summary,) = tallied(counting(), [events])
    refused = {"bin is not in the list": 1, "row cannot be read": 1}
    assert summary == {"latest": 39_000_000, "accepted": 1, "late": 1, "again": 0, "refused": refused}


def test_the_key_is_not_shown():
    assert "key" not in repr(counting())


def test_a_work_folder_keeps_its_shards_and_refuses_another_purpose(tmp_path):
    work = WorkFolder(tmp_path / "work")
    assert work.settle(counting(), 4).shards == 4
    assert work.settle(counting(), 8).shards == 4
    assert (tmp_path / "work").stat().st_mode & 0o777 == 0o700
    spec = counting().spec
    specs = [replace(spec, bins=BINS[::-1]), replace(spec, bins=BINS[::-1], until="1970-01-02")]
    others = [counting(user=None), replace(counting(), key=bytes(16)), counting(statistic="people")]
    others += [replace(counting(), spec=other) for other in specs]
    for other in others:
        with pytest.raises(InputError, match="another store or other bins"):
            work.settle(other, 4)


def test_a_work_folder_from_before_there_were_statistics_is_one_of_events(tmp_path):
    work = WorkFolder(tmp_path / "work")
    work.settle(counting(), 4)
    found = json.loads(work.mark.read_text())
    del found["statistic"]
    work.mark.write_text(json.dumps(found))
    assert work.settle(counting(), 8).shards == 4
    with pytest.raises(InputError, match="another store or other bins"):
        work.settle(counting(statistic="sum:fare"), 4)


def test_a_work_folder_is_made_anew_for_another_end(tmp_path):
    """Events behind the old end were read and are in no tally, so the source has to be read again."""
    work = WorkFolder(tmp_path / "work")
    work.settle(counting(), 4)
    for part in (work.checkpoint, work.open_steps / "batch=0"):
        part.mkdir()
    later = replace(counting(), spec=replace(counting().spec, until="1970-01-02"))
    assert work.settle(later, 8).shards == 8
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["open", "setting.json", "work"]
    (work.open_steps / "batch=0").mkdir()
    assert work.settle(later, 4).shards == 8
    assert (work.open_steps / "batch=0").exists()


def test_a_work_folder_whose_end_was_kept_as_it_was_written_is_known_again(tmp_path):
    work = WorkFolder(tmp_path / "work")
    work.settle(counting(), 4)
    written = work.mark.read_text()
    work.mark.write_text(written.replace("1970-01-01T00:00:40+00:00", "1970-01-01T00:00:40Z"))
    assert work.mark.read_text() != written
    assert work.settle(counting(), 8).shards == 4


def test_spark_is_imported_only_when_a_query_starts():
    modules = ", ".join(f"eventide.engines.{path.stem}" for path in Path(engines.__file__).parent.glob("spark*.py"))
    code = f"import sys, {modules}; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_spare_bins_are_refused_in_words():
    spec = StreamSpec(epsilon=1, window=2, step="1h", start="2026-01-01", bins=["a"], spare_bins=2)
    with pytest.raises(InputError, match="Spark cannot have spare bins"):
        Counting(spec, None)
