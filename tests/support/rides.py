"""Rides with fares: a stream of three hours, values that somebody writes to do harm, and a rational oracle."""

import itertools
import json
import math
from fractions import Fraction

import pyarrow as pa

import eventide as ev

START, UNTIL = "2026-01-01T00:00:00+00:00", "2026-01-01T03:00:00+00:00"
NAMES = ("timestamp", "user", "bin", "fare")
STREAM = {
    "epsilon": 1,
    "window": 2,
    "step": "1h",
    "start": START,
    "until": UNTIL,
    "user": "user",
    "bins": ["north", "south"],
    "max_per_step": 2,
    "mechanism": "uniform",
}
EXACT = {"filter": "none", "parameters": {"noise": ev.noise.Zero()}}
EVERY = {  # of which the oracle knows what is true
    "statistic": ["people", "sum:fare", "mean:fare", "quantiles:fare"],
    "between": "fare=-10,120,0.5",
    "edges": "fare=-10,0,10,20,120",
    "quantiles": (0.25, 0.5),
}
LOW, HIGH, UNIT, EDGES = -10, 120, Fraction(1, 2), (-10, 0, 10, 20, 120)
READABLE = ["1e308", "-1e308", "5e-324", "-0.0", "1" + "0" * 30, "-1" + "0" * 30, "12.25"]
UNREADABLE = ["nan", "inf", "-inf", "much", "", "1e400"]
GOOD = ["12.5", "3.26", "0.1", "33.3333333333", "119.9", "-4.75", "7"]


def frame_of(rows):
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def write_rides(folder, rows):
    """The rides as CSV, beside a list of bins."""
    path = folder / "rides.csv"
    path.write_text("\n".join([",".join(NAMES), *map(",".join, rows), ""]))
    path.with_name("bins.txt").write_text("north\nsouth\n")
    return path


def hourly(values, place="south"):
    """A ride in hour 0 for each value, everybody's only one."""
    return [("2026-01-01T00:10", f"{place} {number}", place, value) for number, value in enumerate(values)]


HARMLESS = hourly(GOOD, "north")
HOSTILE = [*hourly([*GOOD, *READABLE, *UNREADABLE]), *[("2026-01-01T00:10", "many", "south", "7")] * 3000]
COUNTING = [*GOOD, *READABLE, "7"]  # of the hostile ones, what counts in the south if one event of a person does


def true_of(values):
    """What is true of values, each somebody's only one that counts: by the name of the statistic, as a fraction."""
    units = [round(min(max(Fraction(value), LOW), HIGH) / UNIT) for value in values]
    told = {"people": Fraction(len(values)), "sum:fare": sum(units) * UNIT, "mean:fare": None}
    told |= {f"quantile:fare:{part}": None for part in EVERY["quantiles"]}
    if values:
        told["mean:fare"] = sum(units) * UNIT / len(units)
        told |= {f"quantile:fare:{part}": _quantile(values, Fraction(part)) for part in EVERY["quantiles"]}
    return told


def _quantile(values, part):
    """Where so large a part lies below, each bucket taken for evenly filled."""
    inside = [min(max(Fraction(value), LOW), HIGH) for value in values]
    wanted, below = part * len(inside), 0
    for begin, end in itertools.pairwise(EDGES):
        own = sum(begin <= value < end or value == end == HIGH for value in inside)
        if own and below + own >= wanted:
            return begin + (wanted - below) / own * (end - begin)
        below += own
    raise AssertionError("no bucket holds it")


def agrees(found, true):
    """Whether a released number is that of the oracle, up to how floats are written."""
    if true is None or found is None:
        return found is None and true is None
    return math.isclose(found, true, rel_tol=1e-12, abs_tol=1e-12)


def as_lines(rows):
    return "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows)


def as_numbers(rows):
    """A frame whose fares are floats; a text that is no number is missing."""
    frame = frame_of(rows)
    fares = [None if value in ("much", "") else float(value) for value in frame["fare"]]
    return pa.table(frame | {"fare": pa.array(fares, pa.float64())})
