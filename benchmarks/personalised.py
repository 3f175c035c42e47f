"""Personalised BD and BA (PBD, PBA), and what is left of their published gains: python benchmarks/personalised.py.

After Du and others, "Infinite Stream Estimation under Personalized w-Event Privacy" (PVLDB 18(6), 2025), read from the
text and from the authors' public Java code (github.com/dulei715/DynamicWEventCode); nothing is copied. Every person has
an epsilon and a window of their own, which must be public. People of one kind, with the same epsilon and window, behave
alike: a stream is held as counts by kind, `(steps, kinds, bins)`, and a sample of people is a binomial draw of each.

`as coded` are BA and PBA as the public code has them: the step and the budget of a publication are never written down,
so both absorb the budget of all steps since the very first, again and again. `window` is the fullest window of any kind
of people in parts of their epsilon: above 1 the guarantee is broken.

Research code with seeded noise of numpy: it shows what a claim is worth, and publishes nothing.
    python benchmarks/personalised.py [--data DIR] [--steps 600] [--repetitions 3]
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Floats, Ints
from eventide.streams.real import read_real, why_missing

EPSILONS, WINDOWS = (0.2, 0.4, 0.6, 0.8, 1.0), (40, 80, 120, 160, 200)
DEFAULT_EPSILON, DEFAULT_WINDOW = 0.6, 120
PEOPLE = 10_000
CLAIMS = (  # which is better than which, on what, by how many percent
    ("pbd", "bd", "real", 68.0),
    ("pba", "ba", "synthetic", 24.9),
    ("pba as coded", "ba as coded", "synthetic", 24.9),
)


class Kinds(NamedTuple):
    """Kinds of people: epsilon and window of each, and how many there are."""

    epsilon: Floats
    window: Ints
    people: Floats

    @classmethod
    def from_least(cls, epsilon: float, window: int, people: int) -> Kinds:
        """As in the public code: every epsilon of the list from `epsilon` up, every window up to `window`, alike."""
        pairs = [(e, w) for e in EPSILONS for w in WINDOWS if e >= epsilon and w <= window]
        epsilons, windows = (np.array(column) for column in zip(*pairs, strict=True))
        return cls(epsilons, windows, np.full(len(pairs), people / len(pairs)))

    def strictest(self) -> Kinds:
        """Everybody with the least epsilon and the longest window: what a mechanism for all alike must take."""
        same = np.ones(len(self.people))
        return Kinds(self.epsilon.min() * same, self.window.max() * same.astype(np.int64), self.people)


def kept(budgets: Floats, threshold: float | Floats) -> Floats:
    """With which probability somebody with a budget is in a sample that is measured with `threshold`."""
    return np.asarray(np.minimum(np.expm1(budgets) / np.expm1(threshold), 1.0))


def best_threshold(budgets: Floats, people: Floats) -> tuple[float, float]:
    """The budget of a measurement with the least expected squared error of a count, and that error.

    The error is that of the sample, whose counts are not scaled up (variance, and squared bias), and of the noise.
    """
    candidates = np.unique(budgets[budgets > 0])
    if not len(candidates):
        return 0.0, np.inf
    inside = kept(budgets[None], candidates[:, None])
    missing = (people * (1 - inside)).sum(axis=1)
    errors = (people * inside * (1 - inside)).sum(axis=1) + missing**2 + 2 / candidates**2
    best = int(errors.argmin())
    return float(candidates[best]), float(errors[best])


class Personalised:
    """The frame of PBD and PBA; with one kind of people it is BD or BA."""

    def __init__(self, kinds: Kinds, bins: int, random: np.random.Generator) -> None:
        self.kinds, self.random = kinds, random
        self.last = np.zeros(bins)
        self.step = -1
        self.spent: list[Floats] = []

    def release(self, counts: Ints) -> Floats:
        """The next release, of counts `(kinds, bins)`."""
        self.step += 1
        asking = self.kinds.epsilon / (2 * self.kinds.window)
        distance = self._distance(counts, asking)
        offered = self.offer()
        threshold, error = best_threshold(offered, self.kinds.people)
        publishes = bool(distance > np.sqrt(error))
        if publishes:
            sample = self.random.binomial(counts, kept(offered, threshold)[:, None])
            self.last = sample.sum(axis=0) + self.random.laplace(0, 1 / threshold, len(self.last))
        spent = offered if publishes else np.zeros(len(offered))
        self.spent.append(asking + spent)
        self.published(spent, publishes)
        return self.last

    def _distance(self, counts: Ints, budgets: Floats) -> float:
        threshold, _ = best_threshold(budgets, self.kinds.people)
        sample = self.random.binomial(counts, kept(budgets, threshold)[:, None]).sum(axis=0)
        noise = self.random.laplace(0, 1 / (len(self.last) * threshold))
        return float(np.abs(sample - self.last).mean() + noise)

    def offer(self) -> Floats:
        """What each kind of people gives to a publication now."""
        raise NotImplementedError

    def published(self, spent: Floats, publishes: bool) -> None:
        """Take down what a step gave to its publication."""
        raise NotImplementedError

    def fullest_window(self) -> float:
        """The most that any kind of people spent in one of its windows, in parts of its epsilon."""
        sums = np.cumsum(np.vstack([np.zeros(len(self.kinds.people)), *self.spent]), axis=0)
        worst = 0.0
        for kind, (epsilon, window) in enumerate(zip(self.kinds.epsilon, self.kinds.window, strict=True)):
            reach = min(int(window), len(sums) - 1)
            worst = max(worst, float((sums[reach:, kind] - sums[:-reach, kind]).max()) / epsilon)
        return worst


class Distribution(Personalised):
    """(P)BD: half of what is left of half of epsilon in one's own window."""

    def __init__(self, kinds: Kinds, bins: int, random: np.random.Generator) -> None:
        super().__init__(kinds, bins, random)
        self.given = [np.zeros(len(kinds.people))]  # to publications, up to each step

    def offer(self) -> Floats:
        """Half of what is left."""
        begins = np.maximum(len(self.given) - self.kinds.window, 0)
        before = np.array([self.given[begin][kind] for kind, begin in enumerate(begins)])
        left = self.kinds.epsilon / 2 - (self.given[-1] - before)
        return np.asarray(np.maximum(left, 0) / 2)

    def published(self, spent: Floats, publishes: bool) -> None:
        """Remember it."""
        self.given.append(self.given[-1] + spent)


class Absorption(Personalised):
    """(P)BA: what was not used since the last publication, after as many silent steps as that one took in advance."""

    records = True

    def __init__(self, kinds: Kinds, bins: int, random: np.random.Generator) -> None:
        super().__init__(kinds, bins, random)
        self.unit = kinds.epsilon / (2 * kinds.window)
        self.at, self.took = -1, self.unit.copy()

    def offer(self) -> Floats:
        """Nothing while the last publication is being paid off."""
        silent = self.took / self.unit - 1
        if self.step - self.at <= silent.max():
            return np.zeros(len(silent))
        absorbed = np.maximum(self.step - self.at - silent, 0)
        return np.asarray(self.unit * np.minimum(absorbed, self.kinds.window))

    def published(self, spent: Floats, publishes: bool) -> None:
        """Remember the last one."""
        if publishes and self.records:
            self.at, self.took = self.step, spent


class AbsorptionAsCoded(Absorption):
    """The same with the books that the public code keeps: none."""

    records = False


MECHANISMS: dict[str, tuple[type[Personalised], bool]] = {
    "bd": (Distribution, False),
    "pbd": (Distribution, True),
    "ba": (Absorption, False),
    "pba": (Absorption, True),
    "ba as coded": (AbsorptionAsCoded, False),
    "pba as coded": (AbsorptionAsCoded, True),
}


def synthetic(name: str, steps: int, random: np.random.Generator) -> Ints:
    """Which part of the people is in the second of two states: a walk, a sine, a logistic curve."""
    time = np.arange(steps)
    if name == "tlns":
        part = np.clip(0.5 + np.cumsum(random.normal(0, 0.0025, steps)), 0, 1)
    elif name == "sin":
        part = 0.05 * np.sin(0.01 * time) + 0.075
    else:
        part = 0.25 / (1 + np.exp(-0.01 * time))
    ones = random.binomial(PEOPLE, part)
    return np.stack([PEOPLE - ones, ones], axis=1)


def settings() -> Iterator[tuple[float, int]]:
    """Epsilon varied at the default window, and the window at the default epsilon."""
    yield from ((epsilon, DEFAULT_WINDOW) for epsilon in EPSILONS)
    yield from ((DEFAULT_EPSILON, window) for window in WINDOWS if window != DEFAULT_WINDOW)


def run(totals: Ints, kinds: Kinds, name: str, seed: int) -> tuple[float, float, float]:
    """Mean squared error, mean absolute error and fullest window of one run."""
    random = np.random.default_rng(seed)
    form, personal = MECHANISMS[name]
    counts = random.multinomial(totals, kinds.people / kinds.people.sum())  # (steps, bins, kinds)
    mechanism = form(kinds if personal else kinds.strictest(), totals.shape[1], random)
    released = np.array([mechanism.release(row.T) for row in counts])
    off = released - totals
    return float((off**2).mean()), float(np.abs(off).mean()), mechanism.fullest_window()


def figures(totals: Ints, people: int, repetitions: int) -> dict[str, Floats]:
    """For each mechanism an array `(settings, 3)`, means over repetitions (of the window, the largest)."""
    found: dict[str, Any] = {name: [] for name in MECHANISMS}
    for epsilon, window in settings():
        kinds = Kinds.from_least(epsilon, window, people)
        for name in MECHANISMS:
            runs = np.array([run(totals, kinds, name, seed) for seed in range(repetitions)])
            found[name].append([*runs[:, :2].mean(axis=0), runs[:, 2].max()])
    return {name: np.array(rows) for name, rows in found.items()}


def gains(found: dict[str, Floats], name: str, other: str) -> Floats:
    """How many percent less error: by squared and absolute error, as a mean over settings and of the mean errors."""
    ours, theirs = found[name][:, :2], found[other][:, :2]
    each = 100 * (1 - ours / theirs).mean(axis=0)
    pooled = 100 * (1 - ours.mean(axis=0) / theirs.mean(axis=0))
    return np.concatenate([each, pooled])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("EVENTIDE_DATA"))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    streams: dict[tuple[str, str], Ints] = {}
    for name in ("tlns", "sin", "log"):
        streams["synthetic", name] = synthetic(name, options.steps, np.random.default_rng(7))
    if options.data:
        for name in ("tdrive_beijing", "nycflights_dest"):
            if missing := why_missing(name, options.data):
                print(missing, file=sys.stderr)
                continue
            streams["real", name] = read_real(name, options.data).counts[: options.steps]
    measured: dict[tuple[str, str], list[Floats]] = {}
    print("| stream | mechanism | mean squared error | mean absolute error | fullest window |")
    print("|---|---|---|---|---|")
    for (kind, name), totals in streams.items():
        found = figures(totals, int(totals.sum(axis=1).max()), options.repetitions)
        for mechanism, rows in found.items():
            squared, absolute, _ = rows.mean(axis=0)
            print(f"| {name} | {mechanism} | {squared:,.0f} | {absolute:,.1f} | {rows[:, 2].max():.2f} |", flush=True)
        for better, other, where, _ in CLAIMS:
            if where == kind:
                measured.setdefault((better, other), []).append(gains(found, better, other))
    ways = ("squared, by setting", "absolute, by setting", "squared, of means", "absolute, of means")
    for better, other, where, published in CLAIMS:
        for way, shares in zip(ways, np.transpose(measured.get((better, other), [])), strict=False):
            here = f"{shares.mean():.1f} % ({', '.join(f'{share:.1f}' for share in shares)})"
            print(f"{better} against {other}, {where}, error {way}: {here} less; published {published} %")


if __name__ == "__main__":
    main()
