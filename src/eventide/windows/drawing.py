"""A plan as a picture: slots as bars over time, and what one window's answer is made of.

Needs matplotlib, which is imported when a plan is drawn. Imports numpy, eventide.errors, eventide.privacy.amounts, the
composition and plans.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from eventide.errors import InputError
from eventide.privacy.amounts import NANO
from eventide.windows.composition import composition
from eventide.windows.plans import Plan
from eventide.windows.workload import Query

MOST_BARS = 3_000
QUIET, USED, WINDOW = "#c9d3dc", "#1f6f8b", "#d1495b"


def draw(plan: Plan, query: Query | None = None, begin: int | None = None) -> Any:
    """The slots around one window as a matplotlib figure; those its answer uses are the darker the more they weigh.

    By default that is a window of a query of middling length, near the middle of the plan.
    """
    try:
        figures = importlib.import_module("matplotlib.figure")
        colors = importlib.import_module("matplotlib.colors")
    except ImportError:
        raise InputError("plan.plot() needs matplotlib; install it with: pip install 'eventide[plots]'") from None
    query, begin = _chosen(plan, query, begin)
    end = begin + query.window
    used = composition(plan.scheme, begin, end, query.step)
    figure = figures.Figure(figsize=(11, 1.6 + 0.6 * len(plan.scheme.partitions)), layout="constrained")
    axes = figure.subplots()
    low, high = max(begin - query.window // 4 - 1, 0), end + query.window // 4 + 1
    for level, (starts, stops, budgets) in enumerate(_visible(plan, low, high)):
        weights = dict(zip(used.begin[used.level == level], used.weight[used.level == level], strict=True))
        shades = [min(abs(weights.get(start, 0.0)), 1.0) for start in starts]
        faces = [colors.to_rgba(USED, 0.25 + 0.75 * shade) if shade else QUIET for shade in shades]
        bars = list(zip(starts.tolist(), (stops - starts).tolist(), strict=True))
        axes.broken_barh(bars, (level - 0.4, 0.8), facecolors=faces, edgecolors="white", linewidth=0.5)
        if len(budgets):
            share = f"epsilon {_range(budgets / NANO)}"
            axes.annotate(share, (1.01, level), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.axvspan(begin, end, color=WINDOW, alpha=0.12, zorder=0)
    axes.set_yticks(range(len(plan.scheme.partitions)))
    axes.set(xlabel="tick", ylabel="level", xlim=(low, high))
    axes.set_title(f"window [{begin}, {end}) of {query}: {len(used.weight)} slots, answered at tick {end}", fontsize=10)
    return figure


def _chosen(plan: Plan, query: Query | None, begin: int | None) -> tuple[Query, int]:
    planned = [q for q, kind in zip(plan.queries, plan.workload.kind, strict=True) if kind >= 0]
    if query is None:
        query = sorted(planned, key=lambda q: q.window)[len(planned) // 2]
    elif query not in planned:
        raise InputError(f"{query} is not planned; choose one of the plan's queries")
    if begin is None:
        kind = plan.workload.kind[plan.queries.index(query)]
        begins = plan.workload.begin[plan.workload.owner == kind]
        begin = int(begins[len(begins) // 2])
    return query, begin


def _visible(plan: Plan, low: int, high: int) -> list[tuple[Any, Any, Any]]:
    """Begins, ends and budgets of each level's released slots between two ticks, of as many cycles as it takes."""
    cycles = -(-high // plan.scheme.length) if plan.scheme.periodic else 1
    shift = np.arange(cycles)[:, None] * plan.scheme.length
    levels = []
    for ticks, budget in plan.scheme.partitions:
        starts, stops = (ticks[:-1] + shift).ravel(), (ticks[1:] + shift).ravel()
        budgets = np.tile(budget, cycles)
        near = (stops > low) & (starts < high) & (budgets > 0)
        levels.append((starts[near], stops[near], budgets[near]))
    if sum(len(starts) for starts, _, _ in levels) > MOST_BARS:
        raise InputError(
            f"more than {MOST_BARS:,} slots lie around this window; draw one of a query with shorter windows"
        )
    return levels


def _range(values: Any) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
