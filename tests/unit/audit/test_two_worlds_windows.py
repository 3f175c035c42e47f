"""Two worlds of window histograms: in every output they are made of the meter's answers and of nothing else."""

from __future__ import annotations

import numpy as np
import pytest
from worlds import Setup, check

from eventide.audit.two_worlds import WorldsDiffer
from eventide.mechanisms.retroactive_grouping import RetroactiveGrouping

SPAN = (("span", 4),)
LIVED = [
    Setup(mechanism="rg", person="is there", life="dies at a snapshot", parameters=SPAN),
    Setup(mechanism="rg-window-baseline", person="does too much", life="dies before the commit", parameters=SPAN),
]


SERVED = Setup(source="http", mechanism="rg-baseline", person="comes and goes", life="dies once", parameters=SPAN)


@pytest.mark.parametrize("setup", [*LIVED, pytest.param(SERVED, marks=pytest.mark.slow)], ids=str)
def test_histograms_look_the_same_in_both_worlds(setup):
    assert check(setup).changed


def test_a_histogram_that_takes_open_groups_as_they_are_is_found(monkeypatch):
    def peeping(self):
        return self._sums.total + self._groups._sums

    monkeypatch.setattr(RetroactiveGrouping, "window_histogram", peeping)
    with pytest.raises(WorldsDiffer, match="window:events"):
        check(Setup(mechanism="rg", parameters=SPAN))


def test_a_scale_that_depends_on_true_counts_is_found(monkeypatch):
    def peeping(self):
        return np.sqrt(self._groups._sums + 1.0)

    monkeypatch.setattr(RetroactiveGrouping, "window_noise", peeping)
    with pytest.raises(WorldsDiffer, match="window:events"):
        check(Setup(mechanism="rg", parameters=SPAN))
