"""`eventide audit`: try to break a mechanism's guarantee, and say how much of epsilon is really used.

Runs on made-up streams only.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.cli import GUARANTEE_VIOLATED
from eventide.cli.progress import counting
from eventide.cli.settings import import_from_here, parse_settings, settings_option
from eventide.errors import BudgetExceeded, InputError

if TYPE_CHECKING:
    from eventide.audit import Verdict

FEWEST_RUNS = 100
LARGEST = sys.float_info.max  # JSON knows no infinite numbers


@click.command("audit")
@click.argument("mechanism")
@click.option("--epsilon", type=float, required=True, help="The claim to attack.")
@click.option("--window", type=int, required=True, help="How many consecutive steps the claim covers.")
@click.option("--bins", type=int, default=3, show_default=True, help="How many bins the attacked streams have.")
@click.option("--runs", type=int, default=200_000, show_default=True, help="Runs on each stream behind the bound.")
@click.option("--confidence", type=float, default=0.95, show_default=True, help="Of the lower bound on epsilon.")
@settings_option
@click.option("--secure", is_flag=True, help="Attack the real noise instead of a seeded one; slower.")
@click.option(
    "--without",
    multiple=True,
    metavar="ATTACK",
    help='Leave an attack out, such as "grid of doubles"; may be repeated. The bound is then against the others.',
)
@click.option("--seed", type=int, default=0, show_default=True, help="Repeats an audit (without --secure).")
@click.option("--out", type=click.Path(path_type=Path), help="Draw the bounds of all finalists on a page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    mechanism: str,
    epsilon: float,
    window: int,
    bins: int,
    runs: int,
    confidence: float,
    settings: tuple[str, ...],
    secure: bool,
    without: tuple[str, ...],
    seed: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Attack MECHANISM, a registry name or module:Class, on neighbouring streams.

    Gives a lower bound on epsilon that holds with the stated confidence. A bound above the claimed epsilon refutes the
    claim: the audit ends early, with exit code 4. A bound below it proves nothing. A class of your own needs a
    constructor with epsilon, window, bins and seed, and release(counts).

    \b
    Example: eventide audit ba --epsilon 1 --window 3 --bins 3
    """
    from eventide.audit import FaultyClass, audit_mechanism
    from eventide.audit.attacks import GRID
    from eventide.cli.html_files import check_page
    from eventide.mechanisms.registry import find_class

    if out is not None:
        check_page(out)
    import_from_here()
    parameters = parse_settings(settings)
    if not 0 < confidence < 1:
        percent = f"; 0.{confidence:g} is {confidence:g} %" if 10 <= confidence < 100 and confidence % 1 == 0 else ""
        raise InputError(f"--confidence is {confidence:g}; it lies between 0 and 1{percent}")
    for name, given, least in (("--window", window, 1), ("--bins", bins, 1), ("--runs", runs, FEWEST_RUNS)):
        if given < least:
            raise InputError(f"{name} is {given}; it is at least {least}")
    try:
        cls = find_class(mechanism)
        with counting("attacking", unit="runs") as tell:
            verdict = audit_mechanism(
                cls,
                epsilon,
                window,
                bins,
                secure=secure,
                parameters=parameters,
                runs=runs,
                alpha=1 - confidence,
                without=without,
                seed=seed,
                progress=lambda stage, done, planned: tell(done, planned, stage),
                processes=os.cpu_count() or 1,
            )
    except FaultyClass as fault:
        _show_traceback(fault.__cause__)
        raise
    except BudgetExceeded:
        click.echo(f"{mechanism} was refused by the ledger, so that there is nothing to attack.", err=True)
        raise
    if out is not None:
        _draw(out, mechanism, verdict)
    if as_json:
        click.echo(json.dumps(_document(mechanism, verdict)))
    else:
        click.echo(f"{mechanism}: {verdict}")
    if verdict.attack == GRID and verdict.broken:
        click.echo(f'--without "{GRID}" attacks the rest, such as the scale and what is spent in a window.', err=True)
    _tell_known_faults(cls, {"epsilon": epsilon, "window": window, "bins": bins} | parameters)
    if verdict.broken:
        ctx.exit(GUARANTEE_VIOLATED)


def _tell_known_faults(cls: Any, given: dict[str, Any]) -> None:
    """A published form says of itself what a short audit does not find."""
    from eventide.mechanisms.base import Mechanism

    if isinstance(cls, type) and issubclass(cls, Mechanism):
        promise = cls(**given).guarantee
        if fault := promise.refuted or promise.not_proven:
            click.echo(f"Whatever this audit found: {fault}.", err=True)


def _show_traceback(problem: BaseException | None) -> None:
    """Where in the user's code it happened; nothing in it can be private, since the streams are made up."""
    ours = [str(Path(__file__).parents[1] / package) for package in ("audit", "cli")]
    if problem is not None:
        frames = [
            frame
            for frame in traceback.extract_tb(problem.__traceback__)
            if not frame.filename.startswith((*ours, "<frozen importlib"))
        ]
        lines = [*traceback.format_list(frames), *traceback.format_exception_only(problem)]
        click.echo("Traceback (most recent call last):\n" + "".join(lines), err=True, nl=False)


def _document(name: str, verdict: Verdict) -> dict[str, Any]:
    return {
        "mechanism": name,
        "epsilon": verdict.epsilon,
        "bound": verdict.bound,
        "confidence": verdict.confidence,
        "broken": verdict.broken,
        "streams": verdict.pair,
        "attack": verdict.attack,
        "runs": verdict.runs,
        "not_tried": list(verdict.left_out),
        "most_telling_transcript": None if verdict.proof is None else min(verdict.proof.bound, LARGEST),
        "finalists": [finding._asdict() for finding in verdict.findings],
    }


def _draw(out: Path, name: str, verdict: Verdict) -> None:
    from eventide.cli.html_files import plain_page, write_page

    found = sorted(verdict.findings, key=lambda finding: -finding.bound)
    numbers = [f"attack {number}" for number in range(1, len(found) + 1)]  # the table below says which
    bars = {"type": "bar", "orientation": "h", "x": [finding.bound for finding in found], "y": numbers}
    claim = {"type": "line", "x0": verdict.epsilon, "x1": verdict.epsilon, "yref": "paper", "y0": 0, "y1": 1}
    layout = {
        "xaxis": {"title": {"text": "epsilon"}, "rangemode": "tozero"},
        "yaxis": {"automargin": True, "autorange": "reversed"},
        "shapes": [claim | {"line": {"dash": "dash", "color": "#b3471d"}}],
        "annotations": [{"x": verdict.epsilon, "y": 1.1, "yref": "paper", "text": "the claim", "showarrow": False}],
        "margin": {"t": 50, "r": 30},
    }
    rows = [(n, f.attack, f.pair, f"{f.runs:,}", f"{f.bound:.3f}") for n, f in zip(numbers, found, strict=True)]
    sentences = [f"{str(verdict)[0].upper()}{str(verdict)[1:]}.", "The streams attacked are made up."]
    chart = {"data": [bars], "layout": layout}
    headings = ("", "attack", "streams", "runs on each", "lower bound")
    write_page(out, plain_page(f"Audit of {name}", sentences, chart, headings, rows, 140 + 40 * len(rows)))
