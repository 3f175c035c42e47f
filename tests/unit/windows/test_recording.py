"""A plan that is written down tick by tick goes on after any of them as if nothing had happened, and draws nothing."""

from __future__ import annotations

import numpy as np
import pytest

from eventide import windows
from eventide.errors import InputError, StateError
from eventide.privacy.archive import unpack
from eventide.privacy.noise import Zero
from eventide.windows.answering.recording import TickRecorder

QUERIES = [windows.Query(6, 2), windows.Query(9, 3), windows.Query(4, 4)]
COUNTS = np.random.default_rng(5).integers(100, 1000, (60, 2))


def started(**settings):
    return windows.plan(QUERIES, epsilon=0.5).start(bins=2, window=7, **settings)


def rest(recorder, tick):
    return [recorder.push(counts)[0] for counts in COUNTS[tick:]]


def as_lists(dues):
    return [(due.begin.tolist(), due.end.tolist(), due.value.tolist(), due.variance.tolist()) for due in dues]


@pytest.mark.parametrize("planner", ["best", "base", "emd"])
@pytest.mark.parametrize(("snapshot_after", "deaths_after"), [(0, 1), (0, 25), (13, 14), (24, 37)])
def test_a_plan_is_taken_up_again_from_its_record(planner, snapshot_after, deaths_after):
    recorder = TickRecorder(windows.plan(QUERIES, 0.5, planner).start(bins=2, window=7, noise=Zero()))
    for counts in COUNTS[:snapshot_after]:
        recorder.push(counts)
    snapshot = recorder.snapshot()
    released = [recorder.push(counts)[1] for counts in COUNTS[snapshot_after:deaths_after]]
    again = TickRecorder.from_record(snapshot, released, recorder.open_slots())
    assert again.answers.tick == deaths_after
    assert again.answers.ledger.snapshot()["_spent"] == recorder.answers.ledger.snapshot()["_spent"]
    expected = as_lists(rest(recorder, deaths_after))
    assert as_lists(rest(again, deaths_after)) == expected
    assert any(begin for begin, *_ in expected)


def test_what_was_released_is_not_drawn_again():
    recorder = TickRecorder(started())
    snapshot = recorder.snapshot()
    due, released = zip(*(recorder.push(counts) for counts in COUNTS[:12]), strict=True)
    again = [TickRecorder.from_record(snapshot, list(released), recorder.open_slots()) for _ in range(2)]
    estimates = [one.answers._epoch._estimates.snapshot()["_released"] for one in (recorder, *again)]
    np.testing.assert_array_equal(estimates[0], estimates[1])
    np.testing.assert_array_equal(estimates[0], estimates[2])
    assert sum(map(len, due)) > 5


def test_a_snapshot_holds_nothing_raw_and_open_slots_do():
    recorder = TickRecorder(started())
    for counts in COUNTS[:5]:
        recorder.push(counts)
    assert recorder.answers.holds_raw
    (stream,) = unpack(recorder.snapshot())["streams"]
    assert not stream["state"]["_sums"]["_sums"].any()
    sums = unpack(recorder.open_slots())["_sums"]
    assert (sums == COUNTS[4]).all(axis=1).any()  # the slot that began with the last tick


def test_a_record_with_a_hole_or_of_another_plan_is_refused():
    recorder = TickRecorder(started())
    snapshot = recorder.snapshot()
    released = [recorder.push(counts)[1] for counts in COUNTS[:3]]
    with pytest.raises(StateError, match="does not fit the plan"):
        TickRecorder.from_record(snapshot, released[1:], recorder.open_slots())
    with pytest.raises(StateError, match="something else"):
        TickRecorder.from_record(windows.plan(QUERIES).save(), [], recorder.open_slots())


@pytest.mark.parametrize("tick", [1, 5, 12, 100_000])
def test_windows_of_a_later_start_begin_at_multiples_of_their_steps(tick):
    answers = started(noise=Zero(), tick=tick)
    due = answers.push_many(COUNTS)
    assert answers.tick == tick + len(COUNTS)
    assert (due.begin >= tick).all()
    for number, query in enumerate(QUERIES):
        begins = due.begin[due.query == number]
        first = -(-tick // query.step) * query.step
        assert begins.tolist() == list(range(first, tick + len(COUNTS) - query.window + 1, query.step))
    running = np.concatenate([np.zeros((1, 2)), np.cumsum(COUNTS, axis=0)])
    np.testing.assert_allclose(due.value, running[due.end - tick] - running[due.begin - tick])
    assert answers.ledger.worst_window() <= 0.5


def test_a_plan_that_does_not_repeat_cannot_begin_later():
    with pytest.raises(InputError, match="begins at tick 0"):
        windows.plan(QUERIES, horizon=10).start(tick=5)
