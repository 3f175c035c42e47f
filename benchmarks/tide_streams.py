"""Streams on which Tide is measured: steady ones, its weak side, and a gallery made to mislead it."""

from __future__ import annotations

import numpy as np

from eventide.arrays import Ints
from eventide.streams.generators import constant, level_shifts, random_walk, sparse_poisson


def zipf(length: int = 500, bins: int = 60, largest: int = 2000) -> Ints:
    """Bins that stand still at levels falling as one over their rank."""
    levels = np.rint(largest / np.arange(1, bins + 1)).astype(np.int64)
    return np.tile(levels, (length, 1))


def silence_then_burst(length: int = 600, height: int = 20_000) -> Ints:
    """Nothing for two thirds of the time, then a plateau."""
    steps = np.arange(length)
    return np.where((steps > 0.66 * length) & (steps < 0.8 * length), height, 0)[:, None]


def sawtooth(length: int = 600, period: int = 16, height: int = 500) -> Ints:
    """Up and back to the start with the period of a likely wait."""
    return (np.arange(length) % period * height // period)[:, None]


def slow_drift(length: int = 600, begin: int = 200, end: int = 800) -> Ints:
    """So slow that two looks hardly show it."""
    return np.rint(np.linspace(begin, end, length)).astype(np.int64)[:, None]


def gallery(widest: int = 100_000) -> dict[str, Ints]:
    """The adversarial gallery."""
    return {
        "level shifts": level_shifts(length=600, level=2000, every=60, seed=901),
        "silence, then a burst": silence_then_burst(),
        "sawtooth at the wait": sawtooth(),
        "slow drift": slow_drift(),
        "counts of 10^7": random_walk(length=600, level=10**7, stride=10**4, seed=902),
        "one bin, low": random_walk(length=600, level=5, stride=1, seed=903),
        f"{widest:,} bins": sparse_poisson(length=12, bins=widest, rate=0.02, seed=904),
    }


def steady() -> dict[str, Ints]:
    """Streams that hardly move, at a level or at none."""
    levels = {f"constant {level}": constant(length=1000, level=level) for level in (0, 3, 50, 2000)}
    return levels | {
        "walk of stride 1 at 500": random_walk(length=1000, level=500, stride=1, seed=911),
        "60 Zipf bins": zipf(),
    }


def together(seed: int = 951, bins: int = 60, days: int = 30) -> dict[str, Ints]:
    """Bins of one stream that share a rhythm of hours and weekends, the moves of every step, both, or neither."""
    random = np.random.default_rng(seed)
    hours = np.arange(24 * days)
    day = 1 + 0.7 * np.sin(2 * np.pi * (hours - 8) / 24) + 0.25 * np.sin(4 * np.pi * hours / 24)
    week = np.where(hours // 24 % 7 >= 5, 0.6, 1.0)
    walk = np.cumsum(random.normal(0, 0.05, len(hours)))
    moves = np.exp(np.clip(walk - walk.mean(), -1.5, 1.5))
    levels, shifts = 80 * random.lognormal(0, 0.7, bins), random.integers(0, 24, bins)
    apart = np.stack([np.roll(day, shift) for shift in shifts], axis=1) * week[:, None]
    rates = {
        "rhythm": np.outer(day * week, levels),
        "rhythm and moves": np.outer(day * week * moves, levels),
        "rhythm and moves, counts of 500": np.outer(day * week * moves, 6 * levels),
        "rhythm and moves, counts of 5": np.outer(day * week * moves, levels / 20),
        "moves": np.outer(moves, levels),
        "neither: phases of their own": levels * apart,
    }
    return {name: random.poisson(rate) for name, rate in rates.items()}
