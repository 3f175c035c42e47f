"""The people that a cap is chosen on: who did something when, in a history that may be looked at, or as described.

What a cap leaves out depends on how unequal people are. Described people differ as customers usually do: how often a
person acts is drawn from an exponential distribution, and when is left to chance.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from eventide.arrays import Array, Floats, Ints
from eventide.bench.choose.history import MOST_STEPS, MOST_WINDOWS, drawn_bins, sampled
from eventide.errors import InputError
from eventide.events.durations import milliseconds
from eventide.streams.event_files import read_event_rows

WEEK = milliseconds("7d")
MOST_EVENTS = 10_000_000
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class People:
    """Events one by one: the step, the person and the bin of each as numbers from 0; how many steps of which length
    there are, and where all this is from.

    An event in a bin that is not tried has the bin -1: it may take the place of others.
    """

    step: Ints = field(repr=False)
    person: Ints = field(repr=False)
    bin: Ints = field(repr=False)
    steps: int
    length: str
    bins: tuple[str, ...] = field(repr=False)
    source: str
    made_up: bool = False
    notes: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many people there are."""
        return int(self.person.max(initial=-1)) + 1

    def places(self, block: int, most: int, offsets: Ints, order: Floats | Array) -> Ints:
        """The place of each event among those of its person and block that can count, from 0: a cap of so many leaves
        it out.

        `offsets` says for each person where blocks begin, `order` which of a person's events in a step come first; of
        these `most` can count, and the others have no place.
        """
        sorting = np.lexsort((order, self.step, self.person))
        person, step = self.person[sorting], self.step[sorting]
        countable = _numbered(person, step, np.ones(len(step), np.int64)) < most
        places = _numbered(person, (step + offsets[person]) // block, countable.astype(np.int64))
        found = np.empty_like(places)
        found[sorting] = np.where(countable, places, NEVER)
        return found

    def counts(self, counted: Array) -> Ints:
        """The counts `(T, d)` of the events that are marked."""
        counted = counted & (self.bin >= 0)
        cells = self.step[counted] * len(self.bins) + self.bin[counted]
        return np.bincount(cells, minlength=self.steps * len(self.bins)).reshape(self.steps, len(self.bins))


def _numbered(person: Ints, part: Ints, weight: Ints) -> Ints:
    """How much weight stands before each row in the same part of the same person; rows are sorted by both."""
    first = np.append(True, (np.diff(person) != 0) | (np.diff(part) != 0))[: len(person)]
    before = np.cumsum(weight) - weight
    return np.asarray(before - before[first][np.cumsum(first) - 1]) if len(person) else before


def read_people(
    path: str | Path, step: str, window: int, user: str, time: str = "timestamp", bin: str | None = None
) -> People:
    """Read the events of a file, of which the last steps are kept.

    Parameters
    ----------
    path
        A CSV, JSONL or Parquet file of events that may be looked at.
    step
        How long a step is, such as "1h".
    window
        How many steps are to be protected together: at least four times as many are kept.
    user, time, bin
        The columns of people, times and bins; without one of bins all events fall into one.
    """
    rows = read_event_rows(path, step, user, time, bin)
    kept = min(rows.steps, max(MOST_STEPS, MOST_WINDOWS * window))
    last = rows.step >= rows.steps - kept
    notes = (f"the last {kept:,} of the {rows.steps:,} steps were tried",) if kept < rows.steps else ()
    people = np.unique(rows.person[last], return_inverse=True)[1].astype(np.int64)
    tried = drawn_bins(len(rows.bins))
    return People(
        rows.step[last] - (rows.steps - kept),
        people,
        _among(tried, rows.bin[last]),
        kept,
        step,
        tuple(rows.bins[place] for place in tried),
        Path(path).name,
        notes=sampled(len(tried), len(rows.bins)) + notes,
    )


def describe_people(
    *,
    people: int,
    events_per_week: float,
    step: str,
    season: int | None = None,
    steps: int = 1000,
    bins: int = 1,
    seed: int = 1,
) -> People:
    """Make up people who act so often.

    Parameters
    ----------
    people
        How many there are.
    events_per_week
        How many events one of them has in a week, on average. People differ: many have fewer, some several times as
        many.
    step
        How long a step is, such as "1h".
    season
        In how many steps the number of events rises and falls once, from none to twice the mean; left out, it does not.
    steps, bins
        How many there are; a person's events fall on all bins alike.
    seed
        The same seed gives the same events.

    >>> describe_people(people=1000, events_per_week=2, step="1h", steps=336).steps
    336
    """
    a_step = events_per_week * milliseconds(step) / WEEK
    if people < 1 or steps < 1 or bins < 1 or not 0 < people * a_step * steps <= MOST_EVENTS:
        raise InputError(
            f"described people are at least one, with events, at least one step and one bin, and {MOST_EVENTS:,} "
            "events in all at most; change their number, how often they act, or how many steps there are"
        )
    if season is not None and season < 2:
        raise InputError(f"a season of {season} steps is none; give at least 2, or leave it out")
    chance = np.random.default_rng(seed)
    wave = np.ones(steps) if season is None else 1 - np.cos(2 * np.pi * np.arange(steps) / season)
    events = chance.poisson(chance.exponential(a_step * steps, people))
    person = np.repeat(np.arange(people), events)
    when = chance.choice(steps, len(person), p=wave / wave.sum())
    words = f"{people:,} people with {events_per_week:g} events a week each, steps of {step}"
    words += "" if season is None else f", season {season}"
    tried = drawn_bins(bins)
    return People(
        when,
        person,
        _among(tried, chance.integers(bins, size=len(person))),
        steps,
        step,
        tuple(map(str, tried)),
        f"made-up events ({words})",
        made_up=True,
        notes=sampled(len(tried), bins),
    )


def _among(tried: Ints, bins: Ints) -> Ints:
    """Where each bin stands among those that are tried; -1 where it does not."""
    place = np.minimum(np.searchsorted(tried, bins), len(tried) - 1)
    return np.where(tried[place] == bins, place, -1)
