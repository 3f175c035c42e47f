"""A plan as people see it: in words, as a card for notebooks, and as a picture of slots, weights and predicted errors.

Every number follows from the plan, which is made before anything is counted. Only the picture needs matplotlib.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.arrays import Array
from eventide.display.cards import MOST_ROWS, card
from eventide.display.drawings import Curve, Panel, Style, TextTable, shortened, shown
from eventide.display.images import new_picture, paint, plain
from eventide.errors import InputError
from eventide.privacy.amounts import NANO
from eventide.windows.answering.estimates import composition
from eventide.windows.plans import Plan
from eventide.windows.workload import Query

MOST_BARS = 3_000
MOST_NAMED = 12  # queries whose names stand below their errors; of more, the lengths of their windows do
QUIET, USED, WINDOW = "#c9d3dc", "#1f6f8b", "#d1495b"


def explain(plan: Plan) -> str:
    """Levels, budgets, the predicted standard error of every query, and how other planners would do."""
    return "\n\n".join("\n".join(block) for block in (_head(plan), _levels(plan), _queries(plan), _comparison(plan)))


def _head(plan: Plan) -> list[str]:
    scheme, dropped = plan.scheme, plan.workload.dropped
    lasts = f"repeats every {scheme.length:,} ticks" if scheme.periodic else f"ends after {scheme.length:,} ticks"
    lines = [
        f"plan by {plan.planner!r}: {len(plan.queries):,} queries, epsilon {plan.epsilon:g} for every tick; it {lasts}",
        f"workload error {plan.workload_error:,.2f}, the sum over queries of the mean variance of an answer",
    ]
    if dropped:
        lines.append(f"not planned, because no window ends by the horizon: {', '.join(map(str, dropped))}")
        if plan.workload.periodic:
            lines.append("leave the horizon out: the plan then repeats and answers these as well")
    return lines


def _levels(plan: Plan) -> list[str]:
    slots = plan.slots
    rows = [("level", "slots", "ticks of a slot", "epsilon of a slot")]
    for level in np.unique(slots.level)[::-1].tolist():
        of_level = slots[np.flatnonzero(slots.level == level)]
        ticks, budget = of_level.end - of_level.begin, of_level.budget / NANO
        rows.append((str(level), f"{len(of_level):,}", value_range(ticks, ",.0f"), value_range(budget, ".4g")))
    return _table(rows)


def _queries(plan: Plan) -> list[str]:
    rows = [("query", "times", "standard error")]
    kind = plan.workload.kind
    for distinct, count in enumerate(plan.workload.count.tolist()):
        members = np.flatnonzero(kind == distinct)
        names = dict.fromkeys(str(plan.queries[i]) for i in members)
        rows.append((", ".join(names), str(count), f"{np.sqrt(plan.query_errors[members[0]]):,.2f}"))
    return _table(rows)


def _comparison(plan: Plan) -> list[str]:
    rows = [("planner", "workload error", "ratio")]
    for planner, error in plan.compare().items():
        rows.append((planner, f"{error:,.2f}", f"{error / plan.workload_error:.3g}"))
    return _table(rows)


def value_range(values: Array, form: str) -> str:
    """The least and the largest value in words; one of them where they look the same."""
    low, high = f"{values.min():{form}}", f"{values.max():{form}}"
    return low if low == high else f"{low} to {high}"


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def plan_card(plan: Plan) -> str:
    """How it is planned, and how precisely the first queries will be answered."""
    lasts = "and then again" if plan.scheme.periodic else "and then ends"
    facts = {
        "queries": f"{len(plan.queries):,}",
        "budget": f"epsilon {plan.epsilon:g} for every tick",
        "slots": f"{len(plan.slots):,} over {plan.scheme.length:,} ticks, {lasts}",
        "workload error": shown(plan.workload_error),
    }
    errors = _standard_errors(plan)
    rows = [
        [shortened(str(query)), f"{query.window:,}", f"{query.step:,}", shown(error)]
        for query, error in list(errors.items())[:MOST_ROWS]
    ]
    notes = [f"The first {len(rows)} of {len(errors):,} different queries."] if len(rows) < len(errors) else []
    table = TextTable(["query", "window", "step", "standard error"], rows)
    return card(f"Plan by {plan.planner}", facts, table, [*notes, str(plan.guarantee)])


def draw(plan: Plan, query: Query | None = None, begin: int | None = None) -> Any:
    """The slots around one window as a matplotlib figure, and below them the predicted error of every query.

    Slots that the window's answer uses are the darker the more they weigh. By default that is a window of a query of
    middling length, near the middle of the plan.
    """
    query, begin = _chosen(plan, query, begin)
    above = 1 + 0.6 * len(plan.scheme.partitions)
    figure = new_picture(11, above + 2.6)
    slots, errors = figure.subplots(2, 1, height_ratios=(above, 2.6))
    _draw_slots(slots, plan, query, begin)
    paint(errors, _error_panel(plan, query))
    errors.set_ylim(bottom=0)
    return figure


def _draw_slots(axes: Any, plan: Plan, query: Query, begin: int) -> None:
    colors = importlib.import_module("matplotlib.colors")
    end = begin + query.window
    used = composition(plan.scheme, begin, end, query.step)
    low, high = max(begin - query.window // 4 - 1, 0), end + query.window // 4 + 1
    for level, (starts, stops, budgets) in enumerate(_visible(plan, low, high)):
        weights = dict(zip(used.begin[used.level == level], used.weight[used.level == level], strict=True))
        shades = [min(abs(weights.get(start, 0.0)), 1.0) for start in starts]
        faces = [colors.to_rgba(USED, 0.25 + 0.75 * shade) if shade else QUIET for shade in shades]
        bars = list(zip(starts.tolist(), (stops - starts).tolist(), strict=True))
        axes.broken_barh(bars, (level - 0.4, 0.8), facecolors=faces, edgecolors="white", linewidth=0.5)
        if len(budgets):
            share = f"epsilon {value_range(budgets / NANO, '.3g')}"
            axes.annotate(share, (1.01, level), xycoords=("axes fraction", "data"), va="center", fontsize=8)
    axes.axvspan(begin, end, color=WINDOW, alpha=0.12, zorder=0)
    axes.set_yticks(range(len(plan.scheme.partitions)))
    axes.set(xlabel="tick", ylabel="level", xlim=(low, high))
    window = f"window [{begin}, {end}) of {plain(shortened(str(query)))}"
    axes.set_title(f"{window}: {len(used.weight)} slots, answered at tick {end}", fontsize=10)


def _error_panel(plan: Plan, chosen: Query) -> Panel:
    """The predicted error of every query, by name where they are few, and the chosen one among them."""
    errors = dict(sorted(_standard_errors(plan).items(), key=lambda item: (item[0].window, item[0].step)))
    named = len(errors) <= MOST_NAMED

    def curve(queries: list[Query], style: Style) -> Curve:
        x = [shortened(str(query)) for query in queries] if named else [float(query.window) for query in queries]
        return Curve("standard error", style, x, [errors[query] for query in queries])

    curves = [
        curve(list(errors), Style(USED, "square", line=False)),
        curve([chosen], Style(WINDOW, "square", line=False)),
    ]
    below = "" if named else "window of the query, in ticks"
    return Panel("predicted standard error of each query", below, "standard error", curves, y_log=False)


def _standard_errors(plan: Plan) -> dict[Query, float]:
    """By query, the typical error of its answers; without those beyond the horizon."""
    pairs = zip(plan.queries, np.sqrt(plan.query_errors).tolist(), strict=True)
    return {query: error for query, error in pairs if not np.isnan(error)}


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
