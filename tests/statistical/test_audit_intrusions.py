"""Pan-privacy under attack: memory seen once in the middle of a step, and every release."""

import functools
import itertools

import numpy as np
import pytest

from eventide.audit import Transcript, audit
from eventide.audit.intrusions import IntrudedSubject, pairs_around
from eventide.mechanisms.budget_absorption import BudgetAbsorption
from eventide.mechanisms.budget_distribution import BudgetDistribution

PAIRS = [(BudgetDistribution, "single", True), (BudgetAbsorption, "announced", False)]
OTHERS = [
    pytest.param(*case, marks=pytest.mark.slow)
    for case in itertools.product([BudgetDistribution, BudgetAbsorption], ["single", "announced"], [True, False])
    if case not in PAIRS
]


@pytest.mark.parametrize(("cls", "mode", "changes_first"), PAIRS + OTHERS)
def test_what_memory_shows_stays_within_epsilon(cls, mode, changes_first):
    make = functools.partial(cls, epsilon=1, window=2, bins=1, pan_private=mode)
    subject = IntrudedSubject(make, step=4, changes_first=changes_first)
    verdict = audit(subject, pairs_around(4, 2, 1), 1.0, runs=4_000, alpha=1e-6)
    assert not verdict.broken, str(verdict)


class Sketch:
    """A look as the paper sketches it: noise goes into the cells when the step begins, and none comes later."""

    def __init__(self, step):
        self.step = step

    def observe(self, stream, runs, seed):
        noise = np.random.default_rng(seed).laplace(scale=6, size=(runs, *stream.shape))
        before = 2 + noise[:, self.step]
        return Transcript(np.rint(stream + noise), extra=np.rint(before))


def test_the_papers_sketch_is_found_out():
    verdict = audit(Sketch(4), pairs_around(4, 2, 1), 1.0, runs=20_000)
    assert verdict.broken, str(verdict)
