"""A synthetic city: people moving between home, work and leisure, counted per place and step.

The city is made of random numbers, so that its true counts may be shown to anybody; the demo and the examples live on
it. Each person is in at most one place at a time and so adds at most 1 to a step. The same seed builds the same city.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.arrays import Array, Floats, Ints

QUARTERS = (
    *("Alder", "Ash", "Beech", "Birch", "Cedar", "Elm", "Fir", "Hazel"),
    *("Holly", "Larch", "Linden", "Maple", "Oak", "Pine", "Rowan", "Willow"),
)
PLACES = {
    "homes": ("Court", "Gardens", "Green", "Hill", "Terrace"),
    "work": ("Campus", "Docks", "Exchange", "Works"),
    "leisure": ("Market", "Park", "Theatre"),
    "roads": ("Avenue", "Bridge", "Road"),
}
HOURS = 24
OUTSIDERS = 0.25  # of the people live beyond the city's limits and are counted only while they visit
IDLERS = 0.2  # of the people stay at home on a given day


@dataclass(frozen=True)
class City:
    """Counts per step and place, with the names of the places, ordered by their kind."""

    counts: Ints
    bins: tuple[str, ...]
    kinds: tuple[str, ...]
    steps_per_day: int


def build_city(people: int = 40_000, days: int = 3, steps_per_day: int = 144, seed: int = 2014) -> City:
    """Let `people` live in the city for some days and count them at every step.

    >>> town = build_city(people=1000, days=1, steps_per_day=24)
    >>> town.counts.shape, town.bins[0], town.kinds[0]
    ((24, 240), 'Alder Court', 'homes')
    >>> bool((town.counts.sum(axis=1) <= 1000).all())
    True
    """
    random = np.random.default_rng(seed)
    names = [(f"{quarter} {place}", kind) for kind in PLACES for place in PLACES[kind] for quarter in QUARTERS]
    bins, kinds = zip(*names, strict=True)
    whereabouts = _whereabouts(random, np.array(kinds), people)
    everybody = np.arange(people)
    hours = np.arange(steps_per_day) * HOURS / steps_per_day
    counts = np.empty((days, steps_per_day, len(bins)), dtype=np.int64)
    for day in counts:
        changes = _changes_of_place(random, people)
        for step, hour in enumerate(hours):
            place = whereabouts[(changes <= hour).sum(axis=0), everybody]
            day[step] = np.bincount(place, minlength=len(bins) + 1)[: len(bins)]
    return City(counts.reshape(-1, len(bins)), bins, kinds, steps_per_day)


def _whereabouts(random: np.random.Generator, kinds: Array, people: int) -> Ints:
    """Give each person's seven places of a day, in order; the bin after the last stands for beyond the limits."""
    attraction = random.lognormal(sigma=0.9, size=kinds.size)

    def pick(kind: str) -> Ints:
        weights = np.where(kinds == kind, attraction, 0.0)
        return random.choice(kinds.size, size=people, p=weights / weights.sum())

    home, work, leisure, road = pick("homes"), pick("work"), pick("leisure"), pick("roads")
    home[random.random(people) < OUTSIDERS] = kinds.size
    return np.stack([home, road, work, road, leisure, road, home])


def _changes_of_place(random: np.random.Generator, people: int) -> Floats:
    """Draw the six hours of one day at which each person moves on to the next place."""
    leave = random.normal(8.0, 1.0, people)
    leave[random.random(people) < IDLERS] = np.inf
    arrive = leave + random.uniform(0.3, 1.2, people)
    finish = np.maximum(arrive, random.normal(17.0, 1.2, people))
    goes_out = random.random(people) < 0.45
    enter = finish + random.uniform(0.3, 1.2, people)
    depart = enter + goes_out * random.uniform(1.0, 4.0, people)
    return_home = depart + goes_out * random.uniform(0.3, 1.0, people)
    return np.stack([leave, arrive, finish, enter, depart, return_home])
