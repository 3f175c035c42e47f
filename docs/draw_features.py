"""Draws what eventide publishes besides plain counts: levels, caps, seasons with intervals, means and medians.

python docs/draw_features.py

writes `docs/images/features.png`. All streams are made up, and noise is seeded, so that the picture stays the same. It
needs the extra `plots`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

import eventide as ev
from eventide.display.images import new_picture
from eventide.mechanisms.several import Several

IMAGE = Path(__file__).parent / "images" / "features.png"
TRUE, PRIVATE, OTHER = "#8a8f98", "#0b6e99", "#c46a1b"
HOURS = 24


def rhythm(days: int, level: float, seed: int, bins: int = 1) -> Any:
    """Poisson counts that rise and fall over a day."""
    hour = np.arange(days * HOURS)
    wave = 1 + 0.8 * np.sin(2 * np.pi * (hour - 8) / HOURS)
    return np.random.default_rng(seed).poisson(level * wave[:, None], (len(hour), bins))


def levels(axes: Any) -> None:
    """The total of 900 places: as the sum of their releases, and published as a level of its own."""
    counts = rhythm(4, 3, 1, bins=900)
    districts = {"district": [str(place // 30) for place in range(900)]}
    common: dict[str, Any] = {"epsilon": 1.0, "window": 24, "bins": 900, "seed": 3}
    summed = ev.run(ev.Uniform(**common), counts).values.sum(axis=1)
    with_levels = ev.run(ev.Uniform(**common, levels=districts), counts)
    assert with_levels.levels is not None
    axes.plot(counts.sum(axis=1), color=TRUE, lw=2.5, label="true")
    axes.plot(summed, color=OTHER, lw=1, label="sum of private places")
    axes.plot(with_levels.levels["total"].values[:, 0], color=PRIVATE, lw=1.3, label="private total of levels")
    axes.set_title("Levels: places, districts and a total that add up")
    axes.set_ylabel("events in an hour, 900 places")


def caps(axes: Any) -> None:
    """A week hidden, for somebody who acts at every hour, and for people of whom two acts in a week count."""
    counts = rhythm(6, 120, 2)
    week = 7 * HOURS
    plain = ev.Uniform(epsilon=1.0, window=week, bins=1, seed=5)
    capped = ev.Uniform(epsilon=1.0, window=week, bins=1, window_sensitivity=8, seed=5)
    axes.plot(ev.run(plain, counts).values[:, 0], color=OTHER, lw=0.8, label="private without a cap")
    axes.plot(counts[:, 0], color=TRUE, lw=2.5, label="true")
    axes.plot(ev.run(capped, counts).values[:, 0], color=PRIVATE, lw=1.3, label="private, at most 2 events in 7 days")
    axes.set_title("Caps: a week stays hidden, with noise 8 instead of 168")
    axes.set_ylabel("events in an hour")


def seasons(axes: Any) -> None:
    """What Tide knows of the day after three weeks, and the interval around its releases."""
    counts = rhythm(25, 30, 3)
    tide = ev.Tide(epsilon=1.0, window=7 * HOURS, bins=1, window_sensitivity=16, seasons=(24,), seed=7)
    run = ev.run(tide, counts)
    last = slice(-5 * HOURS, None)
    assert run.low is not None
    assert run.high is not None
    axes.fill_between(
        range(5 * HOURS), run.low[last, 0], run.high[last, 0], color=PRIVATE, alpha=0.2, lw=0, label="interval"
    )
    axes.plot(counts[last, 0], color=TRUE, lw=2, label="true")
    axes.plot(run.values[last, 0], color=PRIVATE, lw=1.5, label="private")
    axes.set_title("Seasons: Tide learns the day, with an interval around each release")
    axes.set_ylabel("events in an hour")


def fares(axes: Any) -> None:
    """Mean and median of skewed fares, from sums and buckets that are measured."""
    random, steps = np.random.default_rng(4), 4 * HOURS
    edges = (0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 34, 42, 60)
    described = [
        {"statistic": "mean:fare", "between": "fare=0,60,1", "mechanism": "uniform"},
        {"statistic": "quantiles:fare", "edges": f"fare={','.join(map(str, edges))}", "mechanism": "uniform"},
    ]
    both = Several(2.0, 24, ["city"], statistics=described, seed=6)
    true, told = [], []
    for hour in range(steps):
        values = np.clip(random.gamma(3, 5 + 2 * np.sin(2 * np.pi * hour / HOURS), 6_000), 0, 60)
        units = np.rint(values).astype(np.int64)
        numbers = [units.sum(), (60 - units).sum(), *np.histogram(values, edges)[0]]
        release = both.release(numbers)
        assert release.statistics is not None
        told.append((release.values[0], release.statistics["quantile:fare:0.5"].values[0]))
        true.append((values.mean(), np.median(values)))
    for place, name in enumerate(("mean", "median")):
        axes.plot([each[place] for each in true], color=TRUE, lw=2.5, label="true" if place == 0 else None)
        axes.plot([each[place] for each in told], color=(PRIVATE, OTHER)[place], lw=1.2, label=f"private {name}")
    axes.set_title("More than counts: mean and median of fares")
    axes.set_ylabel("fare")


def main() -> None:
    """Draw all four."""
    figure = new_picture(13, 8)
    for place, draw in enumerate((levels, caps, seasons, fares)):
        axes = figure.add_subplot(2, 2, place + 1)
        draw(axes)
        axes.title.set_fontsize(11)
        axes.set_xlabel("hours")
        axes.legend(frameon=False, fontsize=8, loc="upper right")
        axes.set_ylim(bottom=min(0, axes.get_ylim()[0]) if draw is caps else 0, top=1.25 * axes.get_ylim()[1])
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(IMAGE, dpi=80)


if __name__ == "__main__":
    main()
