"""People, sums, means and medians beside a batch library that is asked once a step: how much smaller errors are.

    python benchmarks/more_than_counts.py [STREAM...] [--data DIR] [--repetitions N]

Streams, each with epsilon 1:

    fares       taxi rides of a city with a rhythm of the day, hours, windows of 168 hours
    stays       minutes that visitors stay, with a heavy tail, hours, windows of 168 hours
    retail-day  customers of a shop (people only), days, windows of 30 days; needs the folder of real streams

A batch library knows no window: to repeat it safely, each step is asked with epsilon / w. OpenDP is, with the same
limit of one event of a person in a step: a Laplace count; a sum of values cut to the same range; for a mean, the sum
around the middle of the range and the count, with half of the budget each; for a median, its private quantile over the
same edges. Ours is what `ev.publish` gives with its defaults, without a cap and with one; the shop, which keeps a week,
also without a cap with `seasons="auto"`. Errors are absolute, against
what is true of all events before any limit, and means over all steps behind the first window. Each repetition draws
all noise again, and its generated stream as well. Printed are the mean errors, and OpenDP's error over ours in the same
repetition: its mean, least and largest, beside the targets: 1.3 without a cap, 2 with one.

With `tree` instead of streams: the deviation of what lies below an edge less half of all, which decides where a median
is, with flat buckets over that with a tree of sums of two, which is brought into agreement by least squares.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

import eventide as ev
from eventide.arrays import Array, Floats
from eventide.streams.event_files import read_event_rows
from eventide.streams.real import data_folder
from eventide.streams.value_generators import VALUE_GENERATORS

SEED = 2026  # fixed before the first run
EPSILON = 1.0
HOURS, WEEK = 6 * 168, 168
TARGETS = {"without a cap": 1.3, "with a cap": 2.0}
START = pd.Timestamp("2026-01-05", tz="UTC")


class Stream(NamedTuple):
    """Events of people at steps, with values between 0 and `high`; how long a step and a window are, and the cap."""

    step: Array
    user: Array
    value: Array
    steps: int
    length: str
    window: int
    cap: str
    high: int
    edges: tuple[int, ...]
    seasons: str | None = None


def made_up(name: str, seed: int) -> Stream:
    """Rides, or visits whose lengths have a heavy tail."""
    events = VALUE_GENERATORS[name](length=HOURS, seed=seed)
    high, edges = {
        "fares": (60, (0, 4, 6, 8, 10, 12, 14, 16, 18, 20, 24, 28, 34, 44, 60)),
        "stays": (120, (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 60, 120)),
    }[name]
    return Stream(events.step, events.person, events.value, HOURS, "1h", WEEK, "2/7d", high, edges)


def retail(folder: Path) -> Stream:
    """Customers of a shop a day."""
    rows = read_event_rows(folder / "retail_events.csv.gz", "1d", "user")
    nothing = np.zeros(len(rows.step))
    return Stream(rows.step, rows.person, nothing, rows.steps, "1d", 30, "2/30d", 1, (0, 1, 2), "auto")


def truths(stream: Stream) -> dict[str, Array]:
    """What is true of each step; NaN where there is nothing."""
    frame = pd.DataFrame({"step": stream.step, "user": stream.user, "value": stream.value.clip(0, stream.high)})
    steps = frame.groupby("step")
    found = {"people": steps["user"].nunique(), "sum:value": steps["value"].sum()}
    found |= {"mean:value": steps["value"].mean(), "quantiles:value": steps["value"].median()}
    every = {name: each.reindex(range(stream.steps)).to_numpy() for name, each in found.items()}
    return every | {name: np.nan_to_num(every[name]) for name in ("people", "sum:value")}


def ours(stream: Stream, statistic: str, cap: str | None, seed: int) -> Array:
    """What is published of each step."""
    length = pd.Timedelta(stream.length)
    frame = pd.DataFrame({"timestamp": START + stream.step * length, "user": stream.user, "value": stream.value})
    told: dict[str, Any] = {"epsilon": EPSILON, "window": stream.window, "step": stream.length, "bins": ["all"]}
    told |= {"start": START.isoformat(), "until": (START + stream.steps * length).isoformat(), "user": "user"}
    told |= {"statistic": statistic, "parameters": {"noise": ev.noise.Seeded(seed)}}
    if statistic.startswith("quantiles"):
        told["edges"] = f"value={','.join(map(str, stream.edges))}"
    elif statistic != "people":
        told["between"] = f"value=0,{stream.high}"
    told |= {"cap": cap} if cap else {} if stream.seasons is None else {"seasons": stream.seasons}
    found = ev.publish(frame.assign(bin="all"), **told).to_arrow()["value"].to_numpy(zero_copy_only=False)
    return np.where(np.isnan(found), stream.high / 2, found)  # no data: whoever must say something says the middle


def opendp(stream: Stream, statistic: str, seed: int) -> Array:
    """What OpenDP says of each step, with epsilon / w, one event of each person in a step."""
    frame = pd.DataFrame({"step": stream.step, "user": stream.user, "value": stream.value})
    chosen = frame.sample(frac=1, random_state=seed).drop_duplicates(["step", "user"])
    values: dict[int, Array] = {step: rows.to_numpy() for step, rows in chosen.groupby("step")["value"]}
    asked = _opendp(statistic, stream)
    return np.array([asked(values.get(step, np.zeros(0))) for step in range(stream.steps)])


def _opendp(statistic: str, stream: Stream) -> Callable[[Array], float]:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    budget, high, middle = EPSILON / stream.window, stream.high, stream.high / 2

    def noisy(number: float, sensitivity: float, epsilon: float) -> float:
        space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
        return float(dp.m.make_laplace(*space, scale=sensitivity / epsilon)(float(number)))

    def mean(values: Array) -> float:
        around, number = (values.clip(0, high) - middle).sum(), len(values)
        count = max(1.0, noisy(number, 1, budget / 2))
        return float(np.clip(middle + noisy(around, middle, budget / 2) / count, 0, high))

    def median(scale: float) -> Any:
        rows, edges = dp.vector_domain(dp.atom_domain(T=float, nan=False)), [float(edge) for edge in stream.edges]
        space: dict[str, Any] = {"input_domain": rows, "input_metric": dp.symmetric_distance()}
        space["output_measure"] = dp.max_divergence()
        return dp.m.make_private_quantile(**space, candidates=edges, alpha=0.5, scale=scale)

    private = median(dp.binary_search_param(median, d_in=1, d_out=budget, T=float))
    return {
        "people": lambda values: max(0.0, noisy(len(values), 1, budget)),
        "sum:value": lambda values: max(0.0, noisy(values.clip(0, high).sum(), high, budget)),
        "mean:value": mean,
        "quantiles:value": lambda values: float(private(values.clip(0, high).tolist())),
    }[statistic]


def error(found: Array, truth: Array, window: int) -> float:
    """The mean absolute error of the steps behind the first window in which there is something to tell."""
    told = np.isfinite(truth)
    told[:window] = False
    return float(np.abs(found - truth)[told].mean())


def compared(streams: Sequence[Stream], statistic: str) -> tuple[Floats, dict[str, Floats]]:
    """OpenDP's error of a statistic, and ours without a cap and with one: one of each stream."""
    theirs: list[float] = []
    found: dict[str, list[float]] = {name: [] for name in TARGETS}
    for number, stream in enumerate(streams):
        truth = truths(stream)[statistic]
        theirs.append(error(opendp(stream, statistic, SEED + number), truth, stream.window))
        for name, cap in zip(TARGETS, (None, stream.cap), strict=True):
            mine = ours(stream, statistic, cap, SEED + number)
            found[name].append(error(mine, truth, stream.window))
    return np.array(theirs), {name: np.array(errors) for name, errors in found.items()}


def tree_against_flat(buckets: int) -> float:
    """The deviation with flat buckets over that with a tree, for the same budget, on average over edges."""
    sizes = [2**level for level in range((buckets - 1).bit_length())]
    nodes = np.concatenate([np.kron(np.eye(buckets // size), np.ones(size)) for size in sizes])
    asked = np.tril(np.ones((buckets, buckets)))[:-1] - 0.5
    covariance = np.linalg.inv(nodes.T @ nodes) * len(sizes) ** 2  # an event is in a node of every level
    tree = np.sqrt(np.einsum("ij,jk,ik->i", asked, covariance, asked)).mean()
    return float(np.sqrt(np.square(asked).sum(axis=1)).mean() / tree)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", help="fares, stays, retail-day; or tree")
    parser.add_argument("--data", type=Path, help="folder of real streams; else EVENTIDE_DATA")
    parser.add_argument("--repetitions", type=int, default=5)
    options = parser.parse_args()
    if options.streams == ["tree"]:
        print("".join(f"{buckets:6} buckets {tree_against_flat(buckets):.2f}" for buckets in (16, 32, 64, 128, 256)))
        return
    folder = data_folder(options.data)
    made: dict[str, Callable[[int], Stream]] = {name: partial(made_up, name) for name in VALUE_GENERATORS}
    if folder is not None:
        made["retail-day"] = lambda seed: retail(folder)
    for name in options.streams or made:
        streams = [made[name](SEED + number) for number in range(options.repetitions)]
        statistics = ("people",) if name == "retail-day" else ("people", "sum:value", "mean:value", "quantiles:value")
        told = f"windows of {streams[0].window} steps, epsilon {EPSILON:g}, cap {streams[0].cap}"
        print(f"\n{name}: {told}, {options.repetitions} repetitions")
        print(
            f"{'':18}{'OpenDP':>10}" + "".join(f"{each:>15}{'ratio':>8}{'range':>15}{'target':>8}" for each in TARGETS)
        )
        for statistic in statistics:
            theirs, found = compared(streams, statistic)
            print(
                f"{statistic:18}{theirs.mean():10.3f}" + "".join(_row(theirs, *each) for each in found.items()),
                flush=True,
            )


def _row(theirs: Floats, cap: str, mine: Floats) -> str:
    ratios = theirs / mine
    spread = f"{ratios.min():.2f} to {ratios.max():.2f}"
    return f"{mine.mean():15.3f}{ratios.mean():8.2f}{spread:>15}{TARGETS[cap]:8.1f}"


if __name__ == "__main__":
    main()
