"""What the page says windows hold is what the stored entries add up to, by other computations than its own."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given
from running_service import stream

import eventide as ev
from eventide.events.clock import ManualClock
from eventide.live.stores.base import Epoch, StoreSetting
from eventide.live.stores.verification import verify
from eventide.privacy.ledger import Entry
from eventide.service.latest_windows import SHOWN, LatestWindows
from eventide.service.live_stream import Circumstances, LiveStream


def latest_windows(entries, steps, window, at_a_time=1, **changed):
    """The windows of `steps` steps, of which so many at a time are counted."""
    setting = StoreSetting("all", {}, 10**9, window, 1, ("a", "b", "c"), {}, "seeded")._replace(**changed)
    windows = LatestWindows(Epoch(0, 0, 0, setting))
    for last in [*range(at_a_time - 1, steps - 1, at_a_time), steps - 1]:
        windows.add([entry for entry in entries if entry.step > windows.last], last)
    return windows


def brute_force(entries, step, window):
    """Points inside the window, and each span that touches it once."""
    first, opened, total = step - window + 1, [], 0
    for entry in entries:
        if entry.kind == "point" and first <= entry.step <= step:
            total += entry.amount
        if entry.kind == "open":
            opened.append([entry.lane, entry.step, None, entry.amount])
        if entry.kind == "close":
            next(span for span in opened if span[0] == entry.lane and span[2] is None)[2] = entry.step
    for _, begin, end, amount in opened:
        if begin <= step and (end is None or end >= first):
            total += amount
    return total


@given(st.data(), st.integers(1, 6), st.sampled_from([1, 3, 100]))
def test_each_window_holds_its_points_and_the_spans_that_touch_it(data, window, at_a_time):
    entries, is_open = [], {"a": 0, "b": 0}
    for step in range(data.draw(st.integers(1, 20))):
        points = data.draw(st.lists(st.integers(0, 9), max_size=2))
        entries += [Entry(step, "point", "", amount) for amount in points]
        for lane in is_open:
            if is_open[lane] and data.draw(st.booleans()):
                entries.append(Entry(step, "close", lane, is_open[lane]))
                is_open[lane] = 0
            elif not is_open[lane] and data.draw(st.booleans()):
                is_open[lane] = data.draw(st.integers(1, 9))
                entries.append(Entry(step, "open", lane, is_open[lane]))
    steps = step + 1
    windows = latest_windows(entries, steps, window, at_a_time)
    expected = [brute_force(entries[: _until(entries, step)], step, window) for step in range(steps)]
    assert list(windows.held.values()) == expected
    assert windows.worst == max(expected)


def _until(entries, step):
    return sum(entry.step <= step for entry in entries)


def test_it_agrees_with_the_verification_of_a_store():
    for name in ("ba", "dsat", "uniform", "spas"):
        mechanism = ev.mechanism(name, epsilon=1, window=7, bins=3, seed=1)
        entries = mechanism.ledger.entries = []
        counts = np.random.default_rng(2).poisson(50, (60, 3))
        kept = []
        for row in counts:
            mechanism.release(row)
            kept += entries
            entries.clear()
        setting = StoreSetting("all", {}, 10**9, 7, 1, ("a", "b", "c"), {}, "seeded")
        found = verify(kept, [Epoch(0, 0, 0, setting)], 60)
        windows = latest_windows(kept, 60, 7)
        assert list(windows.held.values()) == found.spending[0].windows.tolist()
        assert windows.worst == found.worst > 0


def test_what_was_spent_comes_back_a_window_later():
    windows = latest_windows([Entry(1, "point", "", 5), Entry(2, "point", "", 7)], 4, 10)
    assert windows.next_return() == (11, 5)
    assert latest_windows([], 4, 10).next_return() is None


def test_under_a_cap_each_step_tells_what_one_person_can_lose_by_it():
    entries = [Entry(0, "point", "", 9), Entry(1, "open", "run", 2), Entry(2, "point", "", 5)]
    windows = latest_windows(entries, 3, 10, sensitivity=2, window_sensitivity=5)
    assert windows.held == {0: 23, 1: 5, 2: 18}  # 5 / 2 of the charges, rounded up
    assert (windows.now, windows.worst) == (18, 23)
    assert windows.next_return() == (3, 13)  # all but what is open still
    assert latest_windows(entries[:1], 3, 10, sensitivity=2, window_sensitivity=5).next_return() is None


def test_windows_that_are_shown_no_more_are_forgotten_but_not_the_fullest_nor_open_spans():
    steps, window = 3 * SHOWN, 5
    entries = [Entry(0, "point", "", 90), Entry(1, "open", "a", 3)]
    entries += [Entry(step, "point", "", 2) for step in range(2, steps)]
    windows = latest_windows(entries, steps, window, at_a_time=7)
    assert list(windows.held.items()) == [(step, 3 + window * 2) for step in range(2 * SHOWN, steps)]
    assert windows.worst == 90 + 3 + 3 * 2
    assert len(windows._entries) <= SHOWN + window + 1


def test_the_fullest_window_is_that_of_the_whole_store_also_after_a_restore(tmp_path):
    settings, clock = stream(tmp_path), ManualClock()
    first = LiveStream(settings, clock, for_tests=True)
    for step in range(7):
        first.publisher.publish(step, [0, 0, 0])
    first.stop()
    restored = LiveStream(settings, clock, for_tests=True, circumstances=Circumstances(after_restore=True))
    with restored.windows() as windows:
        assert (windows.now, windows.worst, windows.holds) == (0, 10**9, True)
    restored.stop()


def test_a_window_over_the_epsilon_of_an_earlier_epoch_is_told():
    setting = StoreSetting("all", {}, 10**9, 2, 1, ("a",), {}, "seeded")
    smaller = Epoch(1, 4, 4, setting._replace(epsilon=10**8))
    for amount, holds in ((10**9, True), (2 * 10**9, False)):
        before = verify([Entry(0, "point", "", amount)], [Epoch(0, 0, 0, setting)], 4)
        windows = LatestWindows(smaller, before)
        windows.add([Entry(4, "point", "", 10**8)], 4)
        assert (windows.worst, windows.worst_allowed, windows.holds) == (amount, 10**9, holds)
