"""Tide against every published mechanism: the figures that decide whether it deserves to be the default.

    python benchmarks/tide.py PART... [--reference DIR] [--data DIR] [--repetitions N]

Parts, each printed line by line as it is measured:

    artificial  the w-event benchmark's 220 cells against the best of nine in the public code's figures (--reference)
    real        core real streams in 9 settings against the best of all mechanisms, and the best Hybrid(k), without a
                calendar and with the one that is public of each stream (--data)
    unseen      the same on real streams that no choice was made on (--data)
    calendar    streams with a rhythm, without one, and waking ones, over Tide's errors before it had seasons (--data)
    wrong       the same with a period that no stream has (--data)
    together    bins that share a rhythm or moves: errors over those without the sum of all bins
    caps        the best cap with Tide over Tide without a cap, and over no filter (--data)
    steady      streams that hardly move, its weak side
    sparse      sparse streams against releasing zeros for ever
    gallery     streams made to mislead it, against the better of Uniform and Sample
    ablation    what each part brings
    coverage    how many true counts lie in the interval that is said to hold nine tenths
    cost        time of a release, in processor seconds and by the clock, and memory

A ratio is a mean absolute error over the least of the others, both means over repetitions; below 1 Tide is better.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import numpy as np
import tide_calendar
import tide_caps
from java_agreement import Cell, our_errors, read_figures, read_streams
from tide_streams import gallery, steady, together, zipf
from tide_variants import VARIANTS, table

import eventide as ev
from eventide.arrays import Ints
from eventide.streams.generators import bursts, constant, level_shifts, random_walk, seasonal, sparse_poisson
from eventide.streams.real import read_real, why_missing

SETTINGS = [(epsilon, window) for epsilon in (0.1, 0.3, 1.0) for window in (40, 120, 200)]
SHORT_SETTINGS = [(0.1, 120), (1.0, 40), (1.0, 200)]
PUBLISHED = ("uniform", "sample", "bd", "ba", "fast", "dsat", "rescuedp", "adapub", "pegasus", "spas")
CORE = (
    *("unemployment", "flu_death", "flu_outpatient", "worldcup_total", "calit2_inflow", "state_flu"),
    *("tdrive_beijing", "covid_cases_state", "taxi_porto", "covid_deaths_county", "retail_product_day"),
)
SPARSE = ("taxi_porto", "covid_deaths_county", "retail_product_day")
UNSEEN = ("bike_sharing", "nycflights_dest", "kosarak_head", "adult_income")
CALENDARS: dict[str, tuple[int, ...]] = {  # in steps, of the streams whose step is a known part of a day, week or year
    **{"unemployment": (12,), "flu_death": (52,), "flu_outpatient": (52,), "state_flu": (52,)},
    **{"worldcup_total": (15, 105), "calit2_inflow": (48, 336), "tdrive_beijing": (288,), "taxi_porto": (8, 56)},
    **{"covid_cases_state": (7,), "covid_deaths_county": (7,), "retail_product_day": (7,)},
    **{"bike_sharing": (24, 168), "nycflights_dest": (24, 168)},
}
ROUNDS = 7  # of which the best counts, where time is measured
MOST_BINS, MOST_STEPS, MOST_COUNTS = 300, 2000, 150_000  # of a real stream; bins are drawn once


def mean_error(name: str, stream: Ints, epsilon: float, window: int, repetitions: int, **more: object) -> float:
    """Mean absolute error over repetitions; releases are whole and not negative, for all mechanisms alike."""
    given = {"epsilon": epsilon, "window": window, "bins": stream.shape[1], "replicas": repetitions, "seed": 77}
    mechanism = ev.mechanism(name, filter="truncate", **given | more)
    total = sum(float(np.abs(mechanism.release(counts).values - counts).mean()) for counts in stream)
    return total / len(stream)


def geometric(ratios: Iterable[float]) -> float:
    return float(np.exp(np.mean(np.log(list(ratios)))))


def say(label: str, ratios: list[float], more: str = "") -> None:
    within = np.mean(np.array(ratios) <= 1)
    print(f"{label:34}{geometric(ratios):8.3f}{within:8.1%}{max(ratios):8.2f}  {more}", flush=True)


def artificial(options: argparse.Namespace) -> None:
    streams, figures = read_streams(options.reference), read_figures(options.reference)
    best = {cell: min(table[cell] for table in figures.values()) for cell in figures["uniform"]}
    ratios: dict[Cell, float] = {}
    for setting in sorted({cell[2:] for cell in best}):
        cells = [cell for cell in best if cell[2:] == setting]
        ours = our_errors("tide", cells, streams, options.repetitions or 100)
        ratios |= {cell: ours[cell] / best[cell] for cell in cells}
        say(f"epsilon {setting[0]}, window {setting[1]}", [ratios[cell] for cell in cells])
    for field in ("amplitude", "season"):
        for value in sorted({getattr(cell, field) for cell in ratios}):
            say(f"{field} {value}", [ratio for cell, ratio in ratios.items() if getattr(cell, field) == value])
    twice = [ratio for cell, ratio in ratios.items() if cell[2:] == (1.0, 120)]  # it stands in both experiments
    say(f"all {len(ratios) + len(twice)} cells", [*ratios.values(), *twice])
    for cell, ratio in sorted(ratios.items(), key=lambda item: -item[1]):
        if ratio > 1:
            print(f"    {ratio:.3f}  {cell}")


def narrowed(name: str, folder: Path) -> Ints:
    """A real stream, cut to a size that all mechanisms can be run on: some of its bins, and its beginning."""
    counts = read_real(name, folder).counts
    if counts.shape[1] > MOST_BINS:
        chosen = np.random.default_rng(2026).choice(counts.shape[1], MOST_BINS, replace=False)
        counts = counts[:, np.sort(chosen)]
    return counts[: min(MOST_STEPS, MOST_COUNTS // counts.shape[1])]


def compare(
    streams: dict[str, Ints], settings: list[tuple[float, int]], repetitions: int | None
) -> dict[str, list[float]]:
    """Prints a line a stream: against all published mechanisms, and against the best Hybrid(k) in hindsight.

    What is found with the calendar of a stream, where it has one, is given back.
    """
    found: dict[str, list[float]] = {}
    seasonal: dict[str, list[float]] = {}
    hybrids: dict[str, list[float]] = {}
    for name, stream in streams.items():
        times = repetitions or (20 if stream.shape[1] == 1 else 3 if stream.shape[1] <= 64 else 1)
        for epsilon, window in settings:
            run = (stream, epsilon, window, times)
            ours = max(mean_error("tide", *run), 1e-9)
            others = {other: mean_error(other, *run) for other in PUBLISHED}
            fixed = [others["uniform"], others["sample"], *(mean_error("hybrid", *run, k=k) for k in (4, 16, 64))]
            found.setdefault(name, []).append(ours / min(others.values()))
            periods = CALENDARS.get(name)
            ours_by_season = max(mean_error("tide", *run, seasons=periods), 1e-9) if periods else ours
            seasonal.setdefault(name, []).append(ours_by_season / min(others.values()))
            hybrids.setdefault(name, []).append(ours / min(fixed))
        say(name, found[name], f"best Hybrid(k) {geometric(hybrids[name]):.3f}; {times} repetitions")
        if name in CALENDARS:
            say(f"    with seasons {CALENDARS[name]}", seasonal[name])
    say("all", [r for ratios in found.values() for r in ratios])
    say("all, best Hybrid(k)", [r for ratios in hybrids.values() for r in ratios])
    if seasonal != found:
        say("all, with seasons", [r for ratios in seasonal.values() for r in ratios])
    return seasonal


def present(names: Iterable[str], folder: Path) -> dict[str, Ints]:
    """The streams that can be read; of the others it is said why not."""
    found = {}
    for name in names:
        try:
            if sentence := why_missing(name, folder):
                raise ev.InputError(sentence)
            found[name] = narrowed(name, folder)
        except ev.InputError as problem:
            print(problem)
    return found


def real(options: argparse.Namespace) -> None:
    found = compare(present(CORE, options.data), SETTINGS, options.repetitions)
    dense = [r for name, ratios in found.items() if name not in SPARSE for r in ratios]
    say("with seasons, but the sparse ones", dense)


def unseen(options: argparse.Namespace) -> None:
    compare(present(UNSEEN, options.data), SETTINGS, options.repetitions)


def calendar(options: argparse.Namespace, seasons: tuple[int, ...] = ()) -> None:
    """Ratios over the whole stream, its second half and its first window; with the seasons of each, or with others."""
    before = tide_calendar.before()
    found: dict[str, list[list[float]]] = {}
    for name, case in tide_calendar.cases(partial(narrowed, folder=options.data)).items():
        ratios = []
        for setting in tide_calendar.settings(case):
            now = tide_calendar.errors(case, *setting, seasons=seasons or case.seasons or None)
            then = before[tide_calendar.cell_name(name, *setting)]
            ratios.append([new / old for new, old in zip(now, then, strict=True)])
        found.setdefault(case.kind, []).extend(ratios)
        say_parts(name, ratios)
    for kind, ratios in found.items():
        say_parts(f"all: {kind}", ratios)


def say_parts(label: str, ratios: list[list[float]]) -> None:
    whole, half, first = zip(*ratios, strict=True)
    say(label, list(whole), f"second half {geometric(half):.3f}, first window {geometric(first):.3f}")


def wrong(options: argparse.Namespace) -> None:
    calendar(options, tide_calendar.WRONG)


def bins_together(options: argparse.Namespace) -> None:
    for name, stream in together().items():
        ratios = []
        for setting in tide_calendar.SETTINGS:
            run = (stream, *setting, options.repetitions or 2)
            now = mean_error("tide", *run, seasons=(24, 168))
            with table(follows_sum=False):
                ratios.append(now / mean_error("tide", *run, seasons=(24, 168)))
        say(name, ratios, ", ".join(f"{ratio:.2f}" for ratio in ratios))


def caps(options: argparse.Namespace) -> None:
    for name, case in tide_caps.CASES.items():
        for epsilon in (1.0, 0.3):
            found = tide_caps.errors(case, epsilon, options.data, options.repetitions or 8)
            print(f"{name}, epsilon {epsilon:g}: without a cap {found.uncapped:.2f}; as measured (with Tide) by cap: ")
            print("    " + ", ".join(f"{cap}: {raw:.2f} ({tide:.2f})" for cap, (raw, tide) in found.capped.items()))
            best = min(tide for _, tide in found.capped.values())
            print(f"    best / without a cap {best / found.uncapped:.2f}", flush=True)


def steady_streams(options: argparse.Namespace) -> None:
    compare(steady(), SHORT_SETTINGS, options.repetitions)


def sparse(options: argparse.Namespace) -> None:
    streams = {"200 bins, mean 0.05": sparse_poisson(length=300, bins=200, rate=0.05, seed=921)}
    streams["20,000 bins, mean 0.02, 40 steps"] = sparse_poisson(length=40, bins=20_000, rate=0.02, seed=922)
    if options.data:
        streams |= present((*SPARSE, "calit2_inflow"), options.data)
    for name, stream in streams.items():
        zeros = float(stream.mean())
        times = options.repetitions or (20 if stream.shape[1] == 1 else 1)
        say(f"{name} / zeros", [mean_error("tide", stream, *setting, times) / zeros for setting in SHORT_SETTINGS])


def gallery_streams(options: argparse.Namespace) -> None:
    for name, stream in gallery().items():
        times = 1 if stream.shape[1] > 1 else options.repetitions or 100
        ratios = []
        for epsilon, window in SHORT_SETTINGS:
            run = (stream, epsilon, window, times)
            ratios.append(mean_error("tide", *run) / min(mean_error("uniform", *run), mean_error("sample", *run)))
        say(name, ratios)


def own_streams() -> dict[str, Ints]:
    """Streams of every kind from our own generators."""
    waves = {f"seasonal {a}": seasonal(season=70, amplitude=a, seed=931 + a) for a in (10, 100, 1000, 10_000)}
    return waves | {
        "constant 50": constant(level=50),
        "random walk": random_walk(stride=10, seed=932),
        "level shifts": level_shifts(level=300, seed=933),
        "bursts": bursts(seed=934),
        "sparse": sparse_poisson(length=300, bins=60, seed=935),
        "zipf": zipf(length=300),
    }


def ablation(options: argparse.Namespace) -> None:
    def errors() -> dict[tuple[str, float, int], float]:
        return {
            (name, *setting): mean_error(
                "tide", stream, *setting, options.repetitions or (20 if stream.shape[1] == 1 else 2)
            )
            for name, stream in own_streams().items()
            for setting in SHORT_SETTINGS
        }

    whole = errors()
    print(f"{'errors relative to Tide':34}{'mean':>8}{'<= 1':>8}{'worst':>8}")
    for label, variant in VARIANTS.items():
        with variant():
            without = errors()
        say(label, [max(without[cell], 1e-3) / max(whole[cell], 1e-3) for cell in whole])


def coverage(options: argparse.Namespace) -> None:
    for name, stream in own_streams().items():
        parts = []
        for epsilon, window in SHORT_SETTINGS:
            times = options.repetitions or 20
            mechanism = ev.Tide(epsilon=epsilon, window=window, bins=stream.shape[1], replicas=times, seed=78)
            inside = 0.0
            for counts in stream:
                release = mechanism.release(counts)
                assert release.low is not None
                assert release.high is not None
                inside += float(((release.low <= counts) & (counts <= release.high)).mean())
            parts.append(inside / len(stream))
        print(f"{name:34}" + "".join(f"{part:8.1%}" for part in parts), flush=True)


def cost(options: argparse.Namespace) -> None:
    dense = np.random.default_rng(5).poisson(100, (40, 1000))
    ev.Tide(epsilon=1, window=120, bins=1000, seed=1).release(dense[0])  # compiles
    for name, stream, wanted in (
        ("1,000 dense bins", dense, 2),
        ("1,000 sparse bins", sparse_poisson(length=40, bins=1000, rate=0.02, seed=6), None),
        ("88,762 sparse bins", sparse_poisson(length=12, bins=88_762, rate=0.02, seed=7), 60),
    ):
        rounds = []
        for _ in range(options.repetitions or ROUNDS):
            mechanism = ev.Tide(epsilon=1, window=120, bins=stream.shape[1], seed=1)
            clock, worked = time.perf_counter(), time.process_time()
            fresh = sum(mechanism.release(counts).fresh for counts in stream)
            rounds.append((time.process_time() - worked, time.perf_counter() - clock))
        worked, clock = (1000 * min(each) / len(stream) for each in zip(*rounds, strict=True))
        kept = sum(array.nbytes for array in mechanism._posterior.rows) / stream.shape[1]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        target = f" (wanted {wanted})" if wanted else ""
        print(
            f"{name:22}{worked:8.2f} ms of processors a release{target}, {clock:.2f} by the clock, {fresh} of "
            f"{len(stream)} look; {kept / 1000:.1f} kB a bin; peak {peak:.2f} GB",
            flush=True,
        )


PARTS = {
    "artificial": artificial,
    "real": real,
    "unseen": unseen,
    "calendar": calendar,
    "wrong": wrong,
    "together": bins_together,
    "caps": caps,
    "steady": steady_streams,
    "sparse": sparse,
    "gallery": gallery_streams,
    "ablation": ablation,
    "coverage": coverage,
    "cost": cost,
}
NEEDS = {"artificial": "reference"} | dict.fromkeys(("real", "unseen", "calendar", "wrong", "caps"), "data")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="+", choices=PARTS)
    parser.add_argument("--reference", type=Path, help="folder of the public Java code's streams and figures")
    parser.add_argument("--data", type=Path, help="folder of real streams")
    parser.add_argument("--repetitions", type=int, help="instead of the usual number of each part")
    options = parser.parse_args()
    for part in options.parts:
        if part in NEEDS and getattr(options, NEEDS[part]) is None:
            parser.error(f"{part} needs --{NEEDS[part]}")
    for part in options.parts:
        print(f"\n{part:34}{'ratio':>8}{'<= 1':>8}{'worst':>8}")
        PARTS[part](options)


if __name__ == "__main__":
    main()
