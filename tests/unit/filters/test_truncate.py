"""Truncation: whole numbers from 0 up, values and intervals alike."""

from __future__ import annotations

import numpy as np

import eventide as ev
from eventide.filters.base import Filter
from eventide.filters.truncate import Truncate


class Told(Filter):
    """Says what it was told to say."""

    def begin(self, replicas, size, **known):
        pass

    def step(self, measured):
        self.low, self.high = LOW, HIGH
        return (LOW + HIGH) / 2


LOW, HIGH = np.array([[-2.5, 3.216, 4.0, 100.4, 200.7]]), np.array([[-0.5, 3.714, 4.0, 110.6, 209.9]])


def released():
    return ev.Uniform(epsilon=1, window=1, bins=5, filter=Truncate(Told()), noise=ev.noise.Zero()).release([0] * 5)


def test_values_are_whole_and_intervals_no_finer_than_needed():
    release = released()
    assert release.values.tolist() == [0, 3, 4, 106, 205]
    assert release.low.tolist() == [0, 3.22, 4, 100, 200.7]
    assert release.high.tolist() == [0, 3.71, 4, 111, 209.9]


def test_a_count_that_was_in_an_interval_still_is():
    release, counts = released(), np.arange(300)[:, None]
    before, after = (counts >= LOW) & (counts <= HIGH), (release.low <= counts) & (counts <= release.high)
    assert (after | ~before).all()
