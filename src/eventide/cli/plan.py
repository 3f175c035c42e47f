"""`eventide plan`: which slots of time answer window queries best, and how precisely, before anything is spent.

Reads a file of queries and no data.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.windows.plans import Plan


@click.command("plan")
@click.argument("queries")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every tick.")
@click.option("--planner", default="best", show_default=True, metavar="NAME", help="How slots are chosen.")
@click.option("--horizon", type=int, help="Plan this many ticks only; needed where steps share few factors.")
@click.option("--step", metavar="DURATION", help="How long a tick is, such as 5min, for queries written as durations.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Draw the plan (.png, .svg or .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    queries: str, epsilon: float, planner: str, horizon: int | None, step: str | None, out: Path | None, as_json: bool
) -> None:
    """Plan the window queries in the file QUERIES and predict their errors. Nothing is read or spent.

    QUERIES is a TOML file with a table [[query]] for each: window and step in ticks (or as durations, such as "15min",
    with --step), and perhaps a name.

    \b
    Example: eventide plan queries.toml --epsilon 1
    """
    from eventide import windows
    from eventide.windows.query_files import read_queries

    plan = windows.plan(read_queries(queries, step), epsilon, planner, horizon)
    if out is not None:
        _draw(plan, out)
    if as_json:
        click.echo(json.dumps(document(plan)))
    else:
        click.echo(plan.explain())
    click.echo(str(plan.guarantee), err=True)


def document(plan: Plan) -> dict[str, Any]:
    """All that is known about a plan."""
    from eventide.privacy.amounts import NANO

    queries = [
        {
            "name": query.name,
            "window": query.window,
            "step": query.step,
            "standard_error": None if math.isnan(error) else math.sqrt(error),
        }
        for query, error in zip(plan.queries, plan.query_errors.tolist(), strict=True)
    ]
    return {
        "planner": plan.planner,
        "epsilon": plan.epsilon,
        "ticks": plan.scheme.length,
        "repeats": plan.scheme.periodic,
        "workload_error": plan.workload_error,
        "queries": queries,
        "levels": [
            {"slots": int((slots > 0).sum()), "smallest": int(slots.min()) / NANO, "largest": int(slots.max()) / NANO}
            for _, slots in plan.scheme.partitions
        ],
        "workload_error_of_planners": plan.compare(),
        "guarantee": str(plan.guarantee),
    }


def _draw(plan: Plan, out: Path) -> None:
    try:
        plan.plot().savefig(out)
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot draw {out}: {problem}; choose a name that ends in .png, .svg or .pdf") from None
