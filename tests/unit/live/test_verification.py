"""The check of stored entries, against sums made window by window and against real ledgers."""

import itertools

import numpy as np
import pytest
from capped_changes import changes
from hypothesis import given
from hypothesis import strategies as some

import eventide as ev
from eventide.events.caps import Cap
from eventide.live.stores.base import Epoch, StoreSetting
from eventide.live.stores.epochs import first_measured
from eventide.live.stores.verification import verify
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry, WindowLedger

CAPS = (None, Cap(1, 2), Cap(1, 4), Cap(2, 3))


def setting(epsilon=NANO, window=3, cap=None):
    plain = StoreSetting("all", {"name": "ba"}, epsilon, window, 1, ("a", "b"), {}, "secure")
    if cap is None:
        return plain
    return plain._replace(window_sensitivity=cap.window_sensitivity(window, 1), cap=cap._asdict())


def epoch(number=0, first=0, measured_from=None, restored=False, **parameters):
    measured_from = first if measured_from is None else measured_from
    return Epoch(number, first, measured_from, setting(**parameters), restored)


def slow_windows(entries, window, steps):
    """Every window by itself: its points, and each span that has a step in it."""
    spans, open_spans = [], {}
    for entry in entries:
        if entry.kind == "open":
            open_spans[entry.lane] = entry
        elif entry.kind == "close":
            begun = open_spans.pop(entry.lane)
            spans.append((begun.step, entry.step, begun.amount))
    spans += [(begun.step, steps - 1, begun.amount) for begun in open_spans.values()]
    totals = []
    for end in range(steps):
        inside = range(end - window + 1, end + 1)
        points = sum(entry.amount for entry in entries if entry.kind == "point" and entry.step in inside)
        totals.append(
            points + sum(amount for first, last, amount in spans if set(range(first, last + 1)) & set(inside))
        )
    return totals


@some.composite
def histories(draw):
    """Entries of up to 25 steps: points, and spans in two lanes that open and close in any way."""
    steps = draw(some.integers(1, 25))
    largest = draw(some.sampled_from([9, 2**60]))
    entries, open_spans = [], {}
    for step in range(steps):
        for lane in ("x", "y"):
            if lane in open_spans and draw(some.booleans()):
                entries.append(Entry(step, "close", lane, open_spans.pop(lane)))
            if lane not in open_spans and draw(some.integers(0, 3)) == 0:
                open_spans[lane] = draw(some.integers(1, largest))
                entries.append(Entry(step, "open", lane, open_spans[lane]))
        if amount := draw(some.integers(0, largest)):
            entries.append(Entry(step, "point", "", amount))
    return steps, entries


@given(histories(), some.integers(1, 30), some.integers(1, 60))
def test_every_window_is_added_up(history, window, epsilon):
    steps, entries = history
    expected = slow_windows(entries, window, steps)
    found = verify(entries, [epoch(epsilon=epsilon, window=window)], steps)
    assert found.spending[0].windows.tolist() == expected
    assert found.worst == max(expected)
    assert found.holds == (max(expected) <= epsilon)
    assert found.worst_end == (expected.index(max(expected)) if max(expected) else -1)


@given(
    some.lists(some.tuples(some.integers(0, 4), some.integers(0, 400)), min_size=1, max_size=60), some.integers(1, 8)
)
def test_what_a_ledger_let_through_is_found_to_hold(asked, window):
    ledger = WindowLedger("0.000001", window)
    ledger.entries = entries = []
    for action, amount in asked:
        try:
            if action < 2:
                ledger.charge(amount)
            elif not ledger.open_spans(str(action)).any():
                ledger.open_span(amount, str(action))
            else:
                ledger.close_span(lane=str(action))
        except ev.BudgetExceeded:
            pass
        ledger.advance()
    found = verify(entries, [epoch(epsilon=ledger.nano_epsilon, window=window)], ledger.step)
    assert found.holds
    assert found.worst == round(ledger.worst_window() * NANO)
    assert found.spending[0].points.sum() == sum(entry.amount for entry in entries if entry.kind != "close")


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_entries_of_a_real_run_add_up_to_its_worst_window(name):
    mechanism = ev.mechanism(name, epsilon=1, window=5, bins=3, seed=1)
    mechanism.ledger.entries = entries = []
    ev.run(mechanism, np.random.default_rng(2).integers(0, 50, (60, 3)))
    found = verify(entries, [epoch(epsilon=mechanism.nano_epsilon, window=5)], 60)
    assert found.holds
    assert found.worst == round(mechanism.ledger.worst_window() * NANO) > 0


@given(some.data())
def test_epochs_that_wait_as_long_as_they_must_never_mix(data):
    epochs, entries, step = [], [], 0
    for number in range(data.draw(some.integers(1, 4))):
        new = setting(window=data.draw(some.integers(1, 6)), cap=data.draw(some.sampled_from(CAPS)))
        measured_from = first_measured(epochs, entries, step, new)
        epochs.append(Epoch(number, step, measured_from, new))
        end = step + data.draw(some.integers(1, 12))
        for charged in range(step, end):
            if charged >= measured_from and data.draw(some.booleans()):
                kind = data.draw(some.sampled_from(["point", "open"]))
                entries.append(Entry(charged, kind, f"{kind}{charged}", 1))
        step = end
    assert verify(entries, epochs, step).holds
    # One step earlier would have been too early, wherever waiting was needed.
    for number, waiting in enumerate(epochs):
        if waiting.measured_from > waiting.first_step:
            early = [entry for entry in entries if entry.step < waiting.first_step]
            begun = waiting._replace(measured_from=waiting.first_step)
            early.append(Entry(waiting.measured_from - 1, "point", "", 1))
            assert not verify(early, [*epochs[:number], begun], waiting.measured_from).holds


@pytest.mark.parametrize("after", CAPS)
@pytest.mark.parametrize("before", CAPS)
def test_no_change_of_one_person_meets_charges_of_two_epochs(before, after):
    """Tried with all that somebody can do in a window of either, which begins at the last charge of the first."""
    for one, other in itertools.product(range(1, 5), repeat=2):
        epochs = [epoch(window=one, cap=before)]
        first = first_measured(epochs, [Entry(0, "point", "", 1)], 1, setting(window=other, cap=after))
        changed = [changes(after, window) for window in (one, other)]
        assert not any(each[:, first:].any() for each in changed)
        if before is None:  # or the block of the first may be the longer one, and it waits for that too
            assert any(each[:, first - 1 : first].any() for each in changed)


# steps     0 1 2 3 4 5 6 7 8 9
# epoch 0   x x . |              window 3
# epoch 1         | . . . x .    window 5: behind step 1 lie 5 steps, so the first charge is at 6
def test_epochs_far_enough_apart():
    early, late = Entry(1, "point", "", NANO), Entry(6, "point", "", NANO)
    epochs = [epoch(window=3), epoch(1, 3, 6, window=5)]
    assert verify([early, late], epochs, 9).holds
    found = verify([early, late._replace(step=5)], [epochs[0], epochs[1]._replace(measured_from=5)], 9)
    assert found.problems == ["a window of 5 steps holds step 1 of one epoch and step 5 of a later one"]


def test_a_span_left_open_touches_its_epoch_to_the_end():
    opened, charge = Entry(0, "open", "x", 5), Entry(6, "point", "", 5)
    assert first_measured([epoch()], [opened], 4, setting()) == 6  # steps 0 to 3 are touched, and behind 3 lie 3 steps
    assert verify([opened, charge], [epoch(), epoch(1, 4, 6)], 8).holds
    assert not verify([opened, charge._replace(step=5)], [epoch(), epoch(1, 4, 5)], 8).holds
    closed = Entry(1, "close", "x", 5)
    assert verify([opened, closed, charge._replace(step=5)], [epoch(), epoch(1, 4, 5)], 8).holds


def test_what_was_lost_with_a_backup_counts_as_charged():
    restored = epoch(1, 10, 12, restored=True, window=3)
    charge = Entry(12, "point", "", 5)
    assert verify([charge], [epoch(), restored], 14).holds
    assert not verify([charge._replace(step=11)], [epoch(), restored._replace(measured_from=11)], 14).holds
    assert first_measured([epoch(), restored], [], 11, setting(window=5)) == 14  # step 9 and a window of 5


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (Entry(9, "point", "", 1), "no released step"),
        (Entry(1, "gift", "", 1), "no known kind"),
        (Entry(1, "point", "", -1), "less than nothing"),
        (Entry(1, "close", "x", 1), "was not open"),
        (Entry(1, "point", "", NANO + 1), "the window that ends at step 1 was charged 1 of 1, and 2 more"),
    ],
)
def test_what_does_not_add_up_is_named(entry, sentence):
    (problem,) = verify([entry], [epoch()], 5).problems
    assert sentence in problem


def test_an_empty_store_holds():
    found = verify([], [], 0)
    assert (found.holds, found.worst, found.worst_end) == (True, 0, -1)
    assert verify([], [epoch()], 0).holds
