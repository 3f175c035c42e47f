"""Mechanisms, releases and runs as people see them: cards for notebooks, and a picture of a run.

Shows what was released and what was spent, never a count; true counts are drawn only if the caller hands them in and so
declares them public. Imported when something is shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.arrays import Array, Floats
from eventide.display.cards import MOST_ROWS, card, few
from eventide.display.drawings import (
    COLOURS,
    GREY,
    Curve,
    Panel,
    Style,
    TextTable,
    largest,
    level_between,
    shortened,
    shown,
    stepped,
)
from eventide.display.images import draw
from eventide.errors import InputError, unknown
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.release import Release
from eventide.mechanisms.run import Run
from eventide.privacy.noise import recorded_name
from eventide.privacy.pictures import ledger_facts
from eventide.streams.named_counts import in_order

MOST_BINS = 4  # drawn unless others are asked for
RELEASED, TRUE, LOOK, SPENT = COLOURS[0], GREY, COLOURS[1], COLOURS[2]


def mechanism_card(mechanism: Mechanism) -> str:
    """What it is, how far it is, what it promises."""
    facts = {
        "budget": f"epsilon {mechanism.epsilon:g}, window {mechanism.window:,}",
        "bins": f"{mechanism.size:,}: {few(mechanism.bins)}",
        **ledger_facts(mechanism.ledger),
        "noise": recorded_name(mechanism.source),
    }
    return card(type(mechanism).__name__, facts, notes=[str(mechanism.guarantee)])


def release_card(release: Release) -> str:
    """One step; of replicas, the first."""
    one = release if release.values.ndim == 1 else release.first()
    facts = {
        "measured": f"{np.count_nonzero(one.fresh_bins):,} of {len(one.values):,} bins" if one.fresh else "nothing",
        "spent": f"epsilon {one.spent:g}",
    }
    if one is not release:
        facts["replicas"] = f"{len(release.values):,}; shown is the first"
    columns = {"value": one.values, "low": one.low, "high": one.high, "noise scale": one.scale}
    table, notes = bin_table(tuple(map(str, range(len(one.values)))), columns)
    return card(f"Release of step {one.step:,}", facts, table, notes)


def run_card(run: Run) -> str:
    """How long it is, how often it looked, and what was released last; of replicas, the first."""
    one = run.replica(0)
    facts = {
        "steps": f"{run.steps:,}, from step {run.begin:,}",
        "bins": f"{len(run.bins):,}",
        "looks": f"{np.count_nonzero(one.fresh):,}",
        "spent in a step": f"epsilon {one.spent.mean():.4g} on average" if run.steps else "nothing",
    }
    if run.replicas > 1:
        facts["replicas"] = f"{run.replicas:,}; shown is the first"
    if not run.steps:
        return card("Run", facts)
    last = {"last value": one.values, "low": one.low, "high": one.high}
    table, notes = bin_table(run.bins, {name: None if array is None else array[-1] for name, array in last.items()})
    return card("Run", facts, table, notes)


def draw_run(run: Run, bins: Sequence[str | int] | None, truth: Any, replica: int) -> Any:
    """A panel for each bin: released values, their interval, the looks, perhaps true counts; below, what was spent."""
    if not run.steps:
        raise InputError("a run without steps has nothing to draw; run it on at least one")
    one, true = run.replica(replica), _public(run, truth)
    looks = (run.begin + np.flatnonzero(one.fresh)).astype(float).tolist()
    panels = []
    for place in places(run.bins, bins, one.values):
        curves = [] if true is None else [Curve("true", Style(TRUE), *stepped(run.begin, true[:, place]))]
        edges = (run.begin - 0.5 + np.arange(run.steps + 1)).tolist()
        curves.append(released(edges, one.values, one.low, one.high, place))
        below = _below(curves)
        curves.append(Curve("looks", Style(LOOK, "line-ns", line=False), looks, [below] * len(looks)))
        panels.append(Panel(shortened(run.bins[place]), "", "count", curves, y_log=False))
    charged = np.flatnonzero(one.spent)
    at, spent = (run.begin + charged).astype(float).tolist(), one.spent[charged].tolist()
    panels.append(Panel("", "step", "epsilon", [Curve("spent", Style(SPENT, "square", line=False), at, spent)], False))
    return draw(f"{run.steps:,} steps, {len(looks):,} looks", panels, across=1, height=2.0)


def released(edges: Sequence[Any], values: Floats, low: Floats | None, high: Floats | None, place: int) -> Curve:
    """The releases of one bin, level through each step, and from where to where the true counts may be."""
    curve = Curve("released", Style(RELEASED), *level_between(edges, values[:, place]))
    if low is None or high is None or np.isnan(low[:, place]).all():
        return curve
    ends = [level_between(edges, end[:, place])[1] for end in (low, high)]
    return curve._replace(low=ends[0], high=ends[1], band="from low to high")


def _below(curves: Sequence[Curve]) -> float:
    """A little below everything that is drawn, and below 0."""
    lines = [line for curve in curves for line in (curve.y, curve.low, curve.high, [0.0]) if line is not None]
    least, most = min(map(np.nanmin, lines)), max(map(np.nanmax, lines))
    return float(least - 0.07 * (most - least))


def places(names: Sequence[str], bins: Sequence[str | int] | None, values: Floats) -> list[int]:
    """Where the bins asked for stand, or the few with the largest releases."""
    if bins is None:
        return largest(values.mean(axis=0), MOST_BINS)
    asked = [bins] if isinstance(bins, str) else [str(name) for name in bins]
    strange = [name for name in asked if name not in names]
    if strange or not asked:
        raise InputError(unknown("bin", strange[0], names) if strange else "name at least one bin to draw")
    return [names.index(name) for name in asked]


def _public(run: Run, truth: Any) -> Array | None:
    if truth is None:
        return None
    true = np.asarray(in_order(truth, run.bins))
    if true.shape != (run.steps, len(run.bins)):
        raise InputError(f"truth has the shape {true.shape}; give a row for each step and a column for each bin")
    return true


def bin_table(names: Sequence[str], columns: dict[str, Floats | None]) -> tuple[TextTable, list[str]]:
    """A row for each bin, or for the few with the largest values, which the note then says."""
    known = {heading: array for heading, array in columns.items() if array is not None}
    values = next(iter(known.values()))
    rows = [
        [shortened(names[place]), *(shown(float(array[place])) for array in known.values())]
        for place in largest(values, MOST_ROWS)
    ]
    note = [f"The {len(rows)} largest of {len(names):,} bins."] if len(rows) < len(names) else []
    return TextTable(["bin", *known], rows), note
