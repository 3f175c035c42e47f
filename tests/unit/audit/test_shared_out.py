"""Classes that know no replicas: their runs are shared out among processes, and nothing else changes."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from plain_classes import Plain

from eventide.audit import subjects
from eventide.audit.subjects import FaultyClass, MechanismSubject

STREAM = np.array([[3, 5], [4, 4], [2, 9]])


class OneGenerator(Plain):
    """Has one generator for all runs, whatever the seed says."""

    shared = np.random.default_rng(1)

    def __init__(self, epsilon, seed):
        super().__init__(epsilon, seed)
        self._generator = self.shared


class Short(Plain):
    def release(self, counts):
        return super().release(counts)[:1]


def subject(cls):
    return MechanismSubject(functools.partial(cls, epsilon=1.0), noise=None)


def test_each_run_is_seen_step_by_step():
    seen, again = (subject(Plain).observe(STREAM, 4, seed=9) for _ in range(2))
    assert seen.values.shape == (4, 3, 2)
    assert (seen.values[:, 0] != seen.values[:, 1]).any()
    assert np.array_equal(seen.values, again.values)


def test_what_has_another_shape_is_refused():
    with pytest.raises(FaultyClass, match="one number for each of 2 bins"):
        subject(Short).observe(STREAM, 1, seed=9)


@pytest.mark.slow
def test_runs_are_the_same_in_several_processes(monkeypatch):
    monkeypatch.setattr(subjects, "SHARED_OUT", 5)
    alone = subject(Plain).observe(STREAM, 41, seed=9)
    together = subject(Plain)
    with together.shared_out(2, STREAM):
        assert together._pool is not None
        seen = together.observe(STREAM, 41, seed=9)
    assert np.array_equal(alone.values, seen.values)
    assert together._pool is None


def test_runs_that_do_not_follow_from_their_seeds_stay_in_one_process():
    with (one := subject(OneGenerator)).shared_out(2, STREAM):
        assert one._pool is None
