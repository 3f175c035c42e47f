"""What the page says windows hold is what the stored entries add up to, by other computations than its own."""

from __future__ import annotations

from itertools import groupby

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import eventide as ev
from eventide.live.stores.base import Epoch, StoreSetting
from eventide.live.stores.verification import verify
from eventide.privacy.ledger import Entry
from eventide.service.spending import Spending


def totals(entries, steps, window):
    spending = Spending(window)
    by_step = {step: list(group) for step, group in groupby(entries, lambda entry: entry.step)}
    for step in range(steps):
        spending.add(step, by_step.get(step, []))
    return spending


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


@given(st.data(), st.integers(1, 6))
def test_each_window_holds_its_points_and_the_spans_that_touch_it(data, window):
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
    spending = totals(entries, steps, window)
    expected = [brute_force(entries[: _until(entries, step)], step, window) for step in range(steps)]
    assert [each.amount for each in spending.latest] == expected
    assert spending.worst == max(expected)


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
        assert [each.amount for each in totals(kept, 60, 7).latest] == found.spending[0].windows.tolist()
        assert totals(kept, 60, 7).worst == found.worst > 0


def test_what_was_spent_comes_back_a_window_later():
    spending = totals([Entry(1, "point", "", 5), Entry(2, "point", "", 7)], 4, 10)
    assert spending.next_return() == (11, 5)
    assert totals([], 4, 10).next_return() is None
