"""How many bins of a stream have what looks show of some, such as a rhythm: learned from all, it counts for each."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Floats

PRIOR_BINS = 2.0  # that the prior counts for
MOST_SHARED = 4.0  # log odds that a bin is given by all
HALVINGS = 24  # until these odds are known


def shared_odds(foresight: Floats) -> Floats:
    """The log odds of a bin before its own are known: those with which all `(R, bins)` are likeliest.

    By halving: if more bins have it, given these odds, than the odds say, they are too small.

    >>> shared_odds(np.array([[0.0, 0.0], [9.0, 9.0]])).round(1)
    array([-0. ,  1.1])
    """
    odds: Floats = np.zeros((len(foresight), 1))
    for halving in range(1, HALVINGS + 1):
        having = (1 / (1 + np.exp(-foresight - odds))).sum(axis=1, keepdims=True) + PRIOR_BINS / 2
        part = having / (foresight.shape[1] + PRIOR_BINS)
        odds += np.where(part > 1 / (1 + np.exp(-odds)), 1, -1) * MOST_SHARED * 0.5**halving
    return odds[:, 0]
