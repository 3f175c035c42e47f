"""When a stream may measure beside others of the same people: against every window of small, random histories.

A history is a row of configurations with other shares, streams, windows, caps and epsilons, each served for some steps.
What each step is charged is chosen as badly as a store allows. The oracle knows charges and moments only, and adds up
every window, under a cap by trying everything that a person can do in it; without the rule it finds too much in most
histories.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np
import pytest
from capped_changes import changes

from eventide.events.caps import Cap
from eventide.live.stores.base import StoreSetting
from eventide.live.stores.epochs import epoch_for
from eventide.privacy.ledger import Entry
from eventide.service.populations.claims import Claim, Share, StreamWindows, claims_of, timeline_of
from eventide.service.populations.shared_budget import Limit, Member, SharedBudget

MINUTE = 60_000_000
HISTORIES = 1_500
CAPS = (None, None, None, Cap(1, 2), Cap(1, 4), Cap(2, 3))


class Charge(NamedTuple):
    minute: int
    amount: int
    window: int  # of the configuration under which it was made
    epsilon: int  # of all streams together then
    cap: Cap | None
    counted: tuple[str, int]  # the store and the epoch, in which it is remembered what counted of a person


class PaperStore:
    """As much of a store as the rule reads: a start in minutes, epochs, charges and how far it came."""

    def __init__(self, name, start):
        self.name, self.start = name, start
        self._epochs, self._entries, self._next = [], [], 0

    def epochs(self):
        return list(self._epochs)

    def entries(self, first=0):
        return iter([entry for entry in self._entries if entry.step >= first])

    def releases(self, first, last):
        return iter([(step, b"") for step in range(first, min(last, self._next - 1) + 1)])

    def next_step(self):
        return self._next

    def begin(self, epsilon, window, not_before, bins, cap):
        steps = {"start": f"2026-01-01T00:{self.start:02}:00+00:00", "length": 60_000, "zone": "UTC"}
        setting = StoreSetting("people", {}, epsilon, window, 1, bins, steps, "secure")
        if cap is not None:
            setting = setting._replace(window_sensitivity=cap.window_sensitivity(window, 1), cap=cap._asdict())
        epoch = epoch_for(self, setting, new_epoch=True, not_before=not_before)
        if epoch.number == len(self._epochs):
            self._epochs.append(epoch)

    def take_step(self, dice):
        """Charge a step with all that its window has left, with a part of it, or with nothing."""
        step, epoch = self._next, self._epochs[-1]
        self._next += 1
        if step >= epoch.measured_from:
            recent = [entry.amount for entry in self._entries if step - epoch.setting.window < entry.step]
            left, cap = epoch.setting.epsilon - sum(recent), self.cap
            if cap is not None:
                left = epoch.setting.epsilon // epoch.setting.window_sensitivity
            amount = dice.choice([0, left, left, left // 2])
            if amount > 0:
                self._entries.append(Entry(step, "point", "", amount))
                return Charge(self.start + step, amount, epoch.setting.window, 0, cap, (self.name, epoch.number))
        return None

    @property
    def cap(self):
        kept = self._epochs[-1].setting.cap if self._epochs else None
        return kept and Cap(**kept)


def random_history(seed, rule):
    """The charges of some streams under one configuration after the other; `rule` says when a stream may measure."""
    dice = random.Random(seed)
    stores, serving, limits, charges = [], [], [], []
    epsilon, window = 1200, dice.randint(2, 4)
    for _ in range(dice.randint(2, 5)):
        if dice.random() < 0.3:
            if charges:
                limits.append(Limit(epsilon, (max(charge.minute for charge in charges) + 1) * MINUTE - 1 + START))
            epsilon = dice.choice([600, 1200, 1800])
        window = dice.randint(2, 4) if dice.random() < 0.15 else window
        serving = [store for store in serving if dice.random() < 0.7]
        gone = [store for store in stores if store not in serving]
        if gone and dice.random() < 0.3:
            serving.append(dice.choice(gone))
        while not serving or (len(serving) < 3 and dice.random() < 0.4):
            stores.append(PaperStore(str(len(stores)), dice.choice([0, 0, 0, 2])))
            serving.append(stores[-1])
        shares = divided(dice, epsilon, len(serving))
        if dice.random() < 0.4:  # some keep what they had
            shares = [store.epochs()[-1].setting.epsilon if store.epochs() else 1 for store in serving]
            shares = shares if sum(shares) <= epsilon else divided(dice, epsilon, len(serving))
        caps = [store.cap if store.epochs() and dice.random() < 0.7 else dice.choice(CAPS) for store in serving]
        others = [store for store in stores if store not in serving]
        begin_all(dice, rule, serving, shares, caps, window, epsilon, limits, others)
        until = max(store.start + store.next_step() for store in stores) + dice.randint(0, 6)
        for store in serving:
            while store.start + store.next_step() < until - dice.choice([0, 0, 1, 2]):
                if charge := store.take_step(dice):
                    charges.append(charge._replace(epsilon=epsilon))
    return charges


START = timeline_of("2026-01-01T00:00:00+00:00", 60_000, "UTC").start


def divided(dice, epsilon, parts):
    cuts = sorted(dice.randint(0, epsilon - parts) for _ in range(parts - 1))
    return [1 + high - low for low, high in zip([0, *cuts], [*cuts, epsilon - parts], strict=True)]


def begin_all(dice, rule, serving, shares, caps, window, epsilon, limits, others):
    members = []
    for store, share, cap in zip(serving, shares, caps, strict=True):
        timeline = timeline_of(f"2026-01-01T00:{store.start:02}:00+00:00", 60_000, "UTC")
        windows = StreamWindows(timeline, window, cap.block if cap else 1)
        claims = claims_of(store, Share(share, window, cap and cap._asdict()))
        members.append(Member(store.name, share, windows, store.next_step(), claims))
    together = SharedBudget(epsilon, limits, members, {store.name: claims_of(store) for store in others})
    first_steps = [rule(together, member) for member in members]
    for store, share, cap, first in zip(serving, shares, caps, first_steps, strict=True):
        bins = ("a",) if dice.random() < 0.8 else (str(dice.random()),)  # a change that has nothing to do with shares
        store.begin(share, window, first, bins, cap)


def problems(charges):
    """The windows by which one person loses more than the smallest epsilon of the times that they touch."""
    found = []
    for length in {charge.window for charge in charges}:
        for begin in range(min(charge.minute for charge in charges), max(charge.minute for charge in charges) + 1):
            held, lost = [], 0
            for of_epoch in {charge.counted for charge in charges}:
                some = [charge for charge in charges if charge.counted == of_epoch]
                changed = changes(some[0].cap, length)
                amounts = np.zeros(changed.shape[1], int)
                for charge in some:
                    if begin <= charge.minute < begin + len(amounts):
                        amounts[charge.minute - begin] = charge.amount
                        held.append(charge)
                lost += (changed @ amounts).max()
            if any(charge.window >= length for charge in held) and lost > min(charge.epsilon for charge in held):
                found.append((begin, length, held))
    return found


def test_no_window_of_any_history_holds_too_much():
    wrong = [seed for seed in range(HISTORIES) if problems(random_history(seed, SharedBudget.first_free))]
    assert wrong == []


def test_the_oracle_finds_what_goes_wrong_without_the_rule():
    wrong = [seed for seed in range(100) if problems(random_history(seed, lambda _together, _member: 0))]
    assert len(wrong) > 30


# Windows on different clocks.

CLOCKS = [
    ("2026-03-27T00:00", 3_600, 5),
    ("2026-03-27T03:00", 3_600, 5),
    ("2026-03-27T00:20", 3_600, 4),
    ("2026-03-27T00:00", 5_400, 3),
    ("2026-03-26T00:00", 86_400, 2),  # days of the calendar; on the 29th the clocks are put forward
    ("2026-03-25T12:00", 86_400, 1),
]


def clock(number):
    start, length, window = CLOCKS[number]
    return StreamWindows(timeline_of(start, length * 1000, "Europe/Berlin"), window)


def shared(ours, theirs, step, last):
    """Whether a window of either clock holds a moment of our step and one of their last: looked for one by one."""
    times = ours.timeline.begin(step), ours.timeline.end(step), theirs.timeline.begin(last), theirs.timeline.end(last)
    for clock in (ours, theirs):
        for begin in range(-50, 80):
            first, end = clock.timeline.begin(begin), clock.timeline.begin(begin + clock.window)
            if first < times[1] and times[0] < end and first < times[3] and times[2] < end:
                return True
    return False


@pytest.mark.parametrize("ours", range(len(CLOCKS)))
@pytest.mark.parametrize("theirs", range(len(CLOCKS)))
def test_a_claim_reaches_as_far_as_any_window_does(ours, theirs):
    (start, length, window), ours, theirs = CLOCKS[theirs], clock(ours), clock(theirs)
    for last in (0, 3):
        claim = Claim(1, window, start, length * 1000, "Europe/Berlin", 0, last)
        free = ours.last_shared(claim) + ours.window
        assert [step for step in range(free - 1, free + 5) if shared(ours, theirs, step, last)] == [free - 1]
        assert ours.match(claim) == (ours == theirs or {ours, theirs} == {clock(0), clock(1)})
