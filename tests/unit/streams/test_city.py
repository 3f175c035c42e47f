"""The synthetic city: one place per person and step, a daily rhythm, and the same city from the same seed."""

from __future__ import annotations

import numpy as np

from eventide.streams.city import build_city


def test_a_person_adds_at_most_one_to_a_step_and_is_sometimes_away():
    alone = [build_city(people=1, days=1, steps_per_day=48, seed=seed).counts for seed in range(40)]
    per_step = np.stack([counts.sum(axis=1) for counts in alone])
    assert np.unique(per_step).tolist() == [0, 1]


def test_counts_have_one_column_per_named_place():
    town = build_city(people=100, days=2, steps_per_day=24)
    assert town.counts.shape == (48, len(town.bins))
    assert town.counts.dtype == np.int64
    assert len(set(town.bins)) == len(town.bins) == len(town.kinds) == 240


def test_the_city_sleeps_at_home_and_works_by_day():
    town = build_city(people=5000, days=1, steps_per_day=24)
    shares = {kind: town.counts[:, np.array(town.kinds) == kind].sum(axis=1) for kind in set(town.kinds)}
    assert shares["homes"][3] > 10 * shares["work"][3]
    assert shares["work"][13] > 2 * shares["homes"][13]
    assert shares["roads"][8] > 5 * shares["roads"][3]
    assert shares["leisure"].argmax() in (18, 19, 20)


def test_a_seed_names_one_city():
    first, again, other = (build_city(people=500, days=1, steps_per_day=12, seed=seed).counts for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
