"""`eventide plan`: which slots of time answer window queries best, and how precisely, before anything is spent.

Reads a file of queries and no data.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.windows.plans import Plan


@click.command("plan")
@click.argument("queries")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of ticks, see --window.")
@click.option(
    "--window",
    metavar="STEPS",
    default="1",
    help="How many consecutive ticks are protected together, or a duration with --step; 1: events of single ticks "
    "(event-level).  [default: 1]",
)
@click.option("--planner", default="best", show_default=True, metavar="NAME", help="How slots are chosen.")
@click.option("--horizon", type=int, help="Plan this many ticks only; needed where steps share few factors.")
@click.option("--step", metavar="DURATION", help="How long a tick is, such as 5min, for queries written as durations.")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="Draw the plan (.png, .svg or .pdf).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    queries: str,
    epsilon: float,
    window: str,
    planner: str,
    horizon: int | None,
    step: str | None,
    out: Path | None,
    as_json: bool,
) -> None:
    """Plan the window queries in the file QUERIES and predict their errors. Nothing is read or spent.

    QUERIES is a TOML file with a table [[query]] for each: window and step in ticks (or as durations, such as "15min",
    with --step), and perhaps a name.

    Without --window the promise is about single ticks: whether somebody was there in one of them stays hidden, what
    they did over many does not. With --window W every tick gets one part in W of epsilon, and what anybody does in W
    consecutive ticks stays hidden; errors are W times as large. `eventide publish --queries` promises the same.

    \b
    Example: eventide plan queries.toml --epsilon 1
    Example: eventide plan queries.toml --epsilon 1 --window 24h --step 1h
    """
    from eventide import windows
    from eventide.display.images import check_image
    from eventide.events.durations import in_words, milliseconds, steps_of_window
    from eventide.privacy.amounts import NANO, nano
    from eventide.privacy.ledger import positive_integer
    from eventide.windows.query_files import read_queries
    from eventide.windows.slot_promise import guarantee

    if out is not None:
        check_image(out)
    protected = positive_integer(steps_of_window(window, step), "window")
    share = Fraction(nano(epsilon) // protected, NANO)
    plan = windows.plan(read_queries(queries, step), share, planner, horizon)
    lasting = None if step is None else in_words(protected * milliseconds(step))
    promised = replace(guarantee(nano(epsilon) / NANO, protected, 1, None), lasting=lasting)
    if out is not None:
        _draw(plan, out)
    if as_json:
        promise = {"epsilon": promised.epsilon, "window": protected, "guarantee": str(promised)}
        click.echo(json.dumps(document(plan) | promise))
    else:
        click.echo(plan.explain())
    click.echo(str(promised), err=True)


def document(plan: Plan) -> dict[str, Any]:
    """All that is known about a plan; its epsilon is that of a tick."""
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
        "epsilon_of_a_tick": plan.epsilon,
        "ticks": plan.scheme.length,
        "repeats": plan.scheme.periodic,
        "workload_error": plan.workload_error,
        "queries": queries,
        "levels": [
            {"slots": int((slots > 0).sum()), "smallest": int(slots.min()) / NANO, "largest": int(slots.max()) / NANO}
            for _, slots in plan.scheme.partitions
        ],
        "workload_error_of_planners": plan.compare(),
    }


def _draw(plan: Plan, out: Path) -> None:
    from eventide.display.images import save

    try:
        save(plan.plot(), out)
    except (OSError, ValueError) as problem:
        raise InputError(f"cannot draw {out}: {problem}; choose a name that ends in .png, .svg or .pdf") from None
