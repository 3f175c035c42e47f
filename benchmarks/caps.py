"""What a cap on people's events is worth on real streams: error against the counts before the cap.

    python benchmarks/caps.py [STREAM...] [--data DIR] [--repetitions N]

Streams, each with epsilon 1 and 0.3, one person counted once a step:

    retail-day      customers of a shop a day, windows of 30 days
    retail-hour     the same an hour, windows of 168 hours
    planes-hour     planes that leave New York an hour, windows of 168 hours

Caps let from 1 to 12 events of a person count in a block as long as the window. Printed are, for each cap, the part of
the events that it leaves out, the error without any filter (Uniform) and that of Tide, both rounded to counts from 0
up; Uniform, Sample and Tide without a cap; Tide with its best cap over Tide without one, beside the target; and Tide
over no filter, each at its best cap, and at the cap where Tide looks worst. Errors are means over repetitions, in each
of which another secret decides where people's blocks begin; +- is their standard error.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import NamedTuple

from eventide.bench import CapChoice, choose_cap
from eventide.bench.choose.cap_choice import CapTrial
from eventide.bench.choose.people import People
from eventide.events.caps import Cap
from eventide.streams.event_files import read_event_rows
from eventide.streams.real import data_folder

SEED = 2026  # fixed before the first run
CAPS = range(1, 13)
NINE_OF_TEN = 3.29  # standard deviations that hold nine of ten runs, if they are spread as usual
MECHANISMS = ("uniform", "sample", "tide")


class Stream(NamedTuple):
    """A file of events, how it is cut, how often it is repeated, and what Tide's best cap is to reach, by epsilon."""

    file: str
    step: str
    window: int
    repetitions: int
    targets: dict[float, float]


STREAMS = {
    "retail-day": Stream("retail_events", "1d", 30, 600, {1.0: 0.40}),
    "retail-hour": Stream("retail_events", "1h", 168, 30, {}),
    "planes-hour": Stream("nycflights_events", "1h", 168, 100, {1.0: 0.50}),
}


def people_of(stream: Stream, folder: Path) -> People:
    """All events of a stream, in one bin."""
    rows = read_event_rows(folder / f"{stream.file}.csv.gz", stream.step, "user")
    return People(rows.step, rows.person, rows.bin, rows.steps, stream.step, rows.bins, stream.file)


def measured(people: People, stream: Stream, epsilon: float, repetitions: int) -> CapChoice:
    return choose_cap(
        people,
        epsilon=epsilon,
        window=stream.window,
        caps=[Cap(events, stream.window) for events in CAPS],
        mechanisms=MECHANISMS,
        repetitions=repetitions,
        seed=SEED,
    )


def show(name: str, choice: CapChoice, target: float | None) -> None:
    times, by_cap = choice.repetitions, dict[Cap | None, dict[str, CapTrial]]()
    for trial in choice.trials:
        by_cap.setdefault(trial.cap, {})[trial.mechanism] = trial
    print(f"\n{name}, epsilon {choice.epsilon:g}: mean {choice.level:.2f}, {times} repetitions")
    print(f"{'cap':>8}{'left out':>10}{'no filter':>18}{'Tide':>18}{'ratio':>8}{'Sample':>18}")
    for cap, trials in by_cap.items():
        uniform, sample, tide = (trials[mechanism] for mechanism in MECHANISMS)
        label = "none" if cap is None else str(cap.events)
        print(
            f"{label:>8}{tide.missing:>10.1%}{said(uniform, times)}{said(tide, times)}{tide.error / uniform.error:8.3f}"
            + ("" if cap else said(sample, times))
        )
    for cap in choice.useless:
        print(f"{cap.events:>8}   useless")
    capped = {cap: trials for cap, trials in by_cap.items() if cap is not None}
    best = min(capped, key=lambda cap: capped[cap]["tide"].error)
    plain = min(capped, key=lambda cap: capped[cap]["uniform"].error)
    gain = capped[best]["tide"].error / by_cap[None]["tide"].error
    over = capped[best]["tide"].error / capped[plain]["uniform"].error
    worst = max(capped, key=lambda cap: capped[cap]["tide"].error / capped[cap]["uniform"].error)
    ratio = capped[worst]["tide"].error / capped[worst]["uniform"].error
    wanted = "" if target is None else f" (target {target:.2f})"
    parts = [deviation(trials["tide"], times) / trials["tide"].error for trials in (capped[best], by_cap[None])]
    unsure = gain * (parts[0] ** 2 + parts[1] ** 2) ** 0.5
    print(f"best cap with Tide ({best.events}) / Tide without: {gain:.3f} +- {unsure:.3f}{wanted}")
    print(
        f"Tide / no filter: {over:.3f} with the best cap of each ({best.events} and {plain.events}), "
        f"{ratio:.3f} at the worst cap ({worst.events})",
        flush=True,
    )


def said(trial: CapTrial, repetitions: int) -> str:
    return f"{trial.error:10.3f} +- {deviation(trial, repetitions):.3f}"


def deviation(trial: CapTrial, repetitions: int) -> float:
    """The standard error of a mean error."""
    return float((trial.high - trial.low) / NINE_OF_TEN / repetitions**0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("streams", nargs="*", help=", ".join(STREAMS))
    parser.add_argument("--data", type=Path, help="folder of real streams; else EVENTIDE_DATA")
    parser.add_argument("--repetitions", type=int, help="instead of the usual number of each stream")
    options = parser.parse_args()
    folder = data_folder(options.data)
    if folder is None or (unknown := set(options.streams) - set(STREAMS)):
        parser.error("name the folder of real streams with --data" if folder is None else f"no stream {min(unknown)}")
    for name in options.streams or STREAMS:
        stream = STREAMS[name]
        people = people_of(stream, folder)
        for epsilon in (1.0, 0.3):
            choice = measured(people, stream, epsilon, options.repetitions or stream.repetitions)
            show(name, choice, stream.targets.get(epsilon))


if __name__ == "__main__":
    main()
