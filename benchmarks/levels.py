"""Levels against sums over bins: the error of the total, of districts and of places, and how good the split is.

    python benchmarks/levels.py PART... [--data DIR] [--repetitions N] [--mechanism NAME]

Parts, each printed line by line as it is measured:

    city      240 places in 16 quarters and of 4 kinds, which cut across each other; epsilon 1, a window of a day
    chain     the same city without its kinds: places, quarters, the city
    flu       states, nine census regions and the nation (--data)
    covid     counties, states and the nation (--data)
    search    how far the default split is from the best fixed one, found by search, on the city

A ratio is the mean absolute error of a level over that of the sums over bins of the same mechanism without levels: what
there would be without them. Covered is the part of true counts inside the intervals, which are made for nine in ten.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import eventide as ev
from eventide.arrays import Floats, Ints
from eventide.events.levels import BIN, Levels
from eventide.mechanisms.levels import default_split
from eventide.streams.city import build_city
from eventide.streams.real import read_real

REGIONS = {
    "New England": "Connecticut, Maine, Massachusetts, New Hampshire, Rhode Island, Vermont",
    "Middle Atlantic": "New Jersey, New York, New York City, Pennsylvania",
    "East North Central": "Illinois, Indiana, Michigan, Ohio, Wisconsin",
    "West North Central": "Iowa, Kansas, Minnesota, Missouri, Nebraska, North Dakota, South Dakota",
    "South Atlantic": "Delaware, District of Columbia, Florida, Georgia, Maryland, North Carolina, South Carolina, "
    "Virginia, West Virginia, Puerto Rico, Virgin Islands",
    "East South Central": "Alabama, Kentucky, Mississippi, Tennessee",
    "West South Central": "Arkansas, Louisiana, Oklahoma, Texas",
    "Mountain": "Arizona, Colorado, Idaho, Montana, Nevada, New Mexico, Utah, Wyoming",
    "Pacific": "Alaska, California, Hawaii, Oregon, Washington, Commonwealth of the Northern Mariana Islands",
}  # the three areas that belong to none stand where they are nearest


class Stream(NamedTuple):
    """A stream of counts, its levels and how it is published."""

    counts: Ints
    levels: Levels
    epsilon: float
    window: int
    repetitions: int


def city(options: argparse.Namespace, kinds: bool = True) -> Stream:
    town = build_city()
    groups = {"quarter": [name.split()[0] for name in town.bins]} | ({"kind": list(town.kinds)} if kinds else {})
    return Stream(town.counts, Levels(groups, town.bins), 1.0, 144, 20)


def chain(options: argparse.Namespace) -> Stream:
    return city(options, kinds=False)


def flu(options: argparse.Namespace) -> Stream:
    matrix = read_real("state_flu", options.data)
    region = {state: name for name, states in REGIONS.items() for state in states.split(", ")}
    return Stream(matrix.counts, Levels({"region": region}, matrix.bins), 1.0, 52, 20)


def covid(options: argparse.Namespace) -> Stream:
    matrix = read_real("covid_deaths_county", options.data)
    return Stream(matrix.counts, Levels({"state": [name[:2] for name in matrix.bins]}, matrix.bins), 1.0, 28, 2)


STREAMS: dict[str, Callable[[argparse.Namespace], Stream]] = {"city": city, "chain": chain, "flu": flu, "covid": covid}


class Errors(NamedTuple):
    """The mean absolute error of each level, and how many true counts its intervals hold."""

    mean: dict[str, float]
    covered: dict[str, float]


def errors(
    stream: Stream, options: argparse.Namespace, *, levels: bool, split: Mapping[str, Any] | None = None
) -> Errors:
    """With levels; or without them, of the sums over bins."""
    own: dict[str, Any] = {"levels": stream.levels, "level_split": split} if levels else {}
    made = ev.mechanism(
        options.mechanism,
        epsilon=stream.epsilon,
        window=stream.window,
        bins=stream.levels.bins,
        replicas=options.repetitions or stream.repetitions,
        filter="truncate",
        seed=77,
        **own,
    )
    labels = {BIN: np.arange(len(stream.levels.bins)), **stream.levels.labels}
    found, inside = dict.fromkeys(labels, 0.0), dict.fromkeys(labels, 0.0)
    for counts in stream.counts:
        release = made.release(counts)
        for name, each in labels.items():
            truth = np.bincount(each, counts)
            told = release if name == BIN else (release.levels or {}).get(name)
            values = summed(release.values, each) if told is None else told.values
            found[name] += float(np.abs(values - truth).mean()) / len(stream.counts)
            if told is not None and told.low is not None and told.high is not None:
                covered = (told.low <= truth) & (truth <= told.high)
                inside[name] += float(covered.mean()) / len(stream.counts)
    return Errors(found, inside)


def summed(values: Floats, labels: Ints) -> Floats:
    return np.stack([np.bincount(labels, row) for row in np.atleast_2d(values)])


def table(name: str, options: argparse.Namespace) -> None:
    stream = STREAMS[name](options)
    without = errors(stream, options, levels=False)
    found = errors(stream, options, levels=True)
    split = default_split(stream.levels)
    print(f"\n{name}, epsilon {stream.epsilon:g}, window {stream.window}, {options.mechanism}")
    print(f"{'level':12}{'share':>8}{'without':>12}{'with':>12}{'ratio':>8}{'covered':>9}")
    for level, error in found.mean.items():
        before = without.mean[level]
        told = f"{level:12}{float(split[level]):8.3f}{before:12.2f}{error:12.2f}{error / before:8.3f}"
        print(f"{told}{found.covered[level]:9.1%}", flush=True)


def search(options: argparse.Namespace) -> None:
    """Change one share at a time for as long as the sum of ratios falls."""
    stream = city(options)
    without = errors(stream, options, levels=False).mean

    def loss(split: Mapping[str, float]) -> float:
        found = errors(stream, options, levels=True, split=split).mean
        return sum(found[level] / without[level] for level in found)

    best = {level: float(part) for level, part in default_split(stream.levels).items()}
    least = first = loss(best)
    factor = 1.6
    while factor > 1.2:
        tried = [{**best, level: best[level] * by} for level in best for by in (factor, 1 / factor)]
        losses = [loss(split) for split in tried]
        if min(losses) < least:
            least, best = min(losses), tried[int(np.argmin(losses))]
        else:
            factor **= 0.5
        shares = ", ".join(f"{level} {part / sum(best.values()):.3f}" for level, part in best.items())
        print(f"sum of ratios {least:.3f}, by default {first:.3f}: {first / least - 1:.1%} above; {shares}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=[*STREAMS, "search"])
    parser.add_argument("--data", type=Path, help="folder of real streams")
    parser.add_argument("--repetitions", type=int, help="instead of the usual number of each part")
    parser.add_argument("--mechanism", default="tide")
    options = parser.parse_args()
    for part in options.parts:
        if part in ("flu", "covid") and options.data is None:
            parser.error(f"{part} needs --data")
        search(options) if part == "search" else table(part, options)


if __name__ == "__main__":
    main()
