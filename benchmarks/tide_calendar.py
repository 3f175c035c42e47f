"""Streams of people, on which a calendar and a good start pay: Tide's errors there over those of its first algorithm.

`tide_before.json` holds the errors of the first algorithm on the same streams, settings and seed, so that ratios stay
honest: over the whole stream, its second half and its first window.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.mechanisms.registry import build_mechanism
from eventide.streams.city import build_city

BEFORE = Path(__file__).with_name("tide_before.json")
SETTINGS = [(1.0, 40), (1.0, 120), (0.1, 120)]
WAKING = (1.0, 42)
SEED = 77
WRONG = (37,)  # a period that no stream has
KINDS = ("rhythm", "small counts", "no rhythm", "waking")


class Case(NamedTuple):
    """A stream, its periods in steps, and what kind of stream it is."""

    kind: str
    seasons: tuple[int, ...]
    counts: Callable[[], Ints]


class Errors(NamedTuple):
    """Mean absolute errors over the whole stream, its second half and its first window."""

    whole: float
    second_half: float
    first_window: float


def city(every: int) -> Ints:
    """A week of the demo's city, at every so manyth place."""
    return build_city(days=7).counts[:, ::every]


def waking(bins: int, level: int) -> Ints:
    """Empty, and then awake for two windows: only these count."""
    awake = np.random.default_rng(941).poisson(level, (2 * WAKING[1], bins))
    return np.concatenate([np.zeros((170, bins), np.int64), awake])


def cases(real: Callable[[str], Ints]) -> dict[str, Case]:
    """All streams; `real` reads one of the real ones."""
    rhythm = {"bike_sharing": (24, 168), "calit2_inflow": (48, 336), "covid_cases_state": (7,), "state_flu": (52,)}
    none = ("unemployment", "tdrive_beijing", "worldcup_total", "taxi_porto")
    return {
        "city, 120 places": Case("rhythm", (144,), lambda: city(2)),
        "city, 240 places": Case("rhythm", (144,), lambda: city(1)),
        **{name: Case("rhythm", seasons, partial(real, name)) for name, seasons in rhythm.items()},
        "nycflights_dest": Case("small counts", (24, 168), lambda: real("nycflights_dest")),
        **{name: Case("no rhythm", WRONG, partial(real, name)) for name in none},
        **{
            f"waking, {bins} bin{'s' * (bins > 1)}": Case("waking", (24, 168), partial(waking, bins, 100))
            for bins in (1, 3, 100)
        },
    }


def errors(case: Case, epsilon: float, window: int, **more: object) -> Errors:
    """Tide's errors, of the steps after it woke where it was asleep."""
    counts = case.counts()
    replicas = 20 if counts.shape[1] == 1 else 5 if counts.shape[1] <= 64 else 2
    given = {"bins": counts.shape[1], "replicas": replicas, "seed": SEED, "filter": "truncate"} | more
    tide = build_mechanism("tide", {"epsilon": epsilon, "window": window} | given)
    found = np.array([np.abs(tide.release(now).values - now).mean() for now in counts])
    if case.kind == "waking":
        found = found[170:]
    return Errors(found.mean(), found[len(found) // 2 :].mean(), found[:window].mean())


def settings(case: Case) -> list[tuple[float, int]]:
    """The settings in which a case is measured."""
    return [WAKING] if case.kind == "waking" else SETTINGS


def before() -> dict[str, Errors]:
    """The errors of the first algorithm, by name and setting."""
    return {cell: Errors(*found) for cell, found in json.loads(BEFORE.read_text()).items()}


def cell_name(name: str, epsilon: float, window: int) -> str:
    return f"{name}, epsilon {epsilon:g}, w {window}"
