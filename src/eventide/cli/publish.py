"""`eventide publish`: a file of counts in, private releases out.

The whole file is checked before the first release, so that a bad cell stops the work before anything is published or
written. Imports click; everything heavy is imported when the verb runs.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.arrays import Ints
    from eventide.mechanisms.base import Mechanism
    from eventide.privacy.guarantees import Guarantee
    from eventide.streams.release_files import ReleaseFile


@click.command("publish")
@click.argument("source")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of steps.")
@click.option("--window", required=True, metavar="STEPS", help="How many consecutive steps are protected together.")
@click.option("--bins", metavar="FILE_OR_N", help="All bins: a file with one name a line, or a number.")
@click.option("--mechanism", default="ba", show_default=True, metavar="NAME", help="How looks are chosen and paid for.")
@click.option(
    "--filter",
    "filter_name",
    default="truncate",
    show_default=True,
    metavar="NAME",
    help="What is made of the noisy counts: truncate to whole numbers from 0 up, or none.",
)
@click.option(
    "--sensitivity",
    type=int,
    default=1,
    show_default=True,
    help="The most one person adds to a step over all bins together.",
)
@click.option(
    "--out", metavar="PATH", help="A .jsonl, .csv or .parquet file; standard output (JSON lines) if left out."
)
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    help="Of a .csv or .parquet file.  [default: wide up to 1,000 bins]",
)
@click.option("--dry-run", is_flag=True, help="Check everything and predict error and spend; publish nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document about the work; releases need --out.")
def command(
    source: str,
    epsilon: float,
    window: str,
    bins: str | None,
    mechanism: str,
    filter_name: str,
    sensitivity: int,
    out: str | None,
    layout: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish a file of counts privately, one release for each step.

    SOURCE is a .csv, .csv.gz or .parquet file. Wide: one column a bin, one row a step, perhaps a first column t.
    Long: columns t, bin and count, sorted by t; cells that are 0 may be left out, and --bins must list all bins.

    \b
    Example: eventide publish counts.csv --epsilon 1 --window 144 --out private.csv
    """
    from eventide.streams.bins import parse_bins
    from eventide.streams.count_files import open_counts
    from eventide.streams.release_files import open_releases

    if as_json and not dry_run and out in (None, "-"):
        raise InputError("--json prints its document on standard output, so the releases need a file; add --out PATH")
    counts = open_counts(source, parse_bins(bins) if bins else None)
    mech = _mechanism(mechanism, filter_name, epsilon, window, sensitivity, counts.bins)
    with open_releases(out, counts.bins, layout, counts.table.path) as releases:
        quiet = releases.path is None and sys.stdout.isatty()
        steps = sum(1 for _ in _with_progress(counts.steps(), "Checking", None, quiet))
        report = {
            "steps": steps,
            "bins": mech.size,
            "mechanism": mechanism,
            "filter": filter_name,
            "epsilon": mech.epsilon,
            "window": mech.window,
            "sensitivity": mech.sensitivity,
            "guarantee": str(_promised(mech)),
        }
        if dry_run:
            report |= _predicted(mech)
        else:
            report |= _published(mech, _with_progress(counts.steps(), "Publishing", steps, quiet), releases)
    if as_json:
        click.echo(json.dumps(report))
    click.echo(_summary(report), err=True)
    click.echo(report["guarantee"], err=True)


def _mechanism(
    name: str, filter_name: str, epsilon: float, window: str, sensitivity: int, bins: tuple[str, ...]
) -> Mechanism:
    from eventide.filters import by_name
    from eventide.mechanisms.registry import mechanism

    if not window.isdecimal():
        raise InputError(
            f"--window {window} must be a whole number of steps; a file of counts has no clock for a duration"
        )
    chosen = None if filter_name == "none" else by_name(filter_name)
    return mechanism(name, epsilon=epsilon, window=int(window), bins=bins, sensitivity=sensitivity, filter=chosen)


def _promised(mech: Mechanism) -> Guarantee:
    taken = "the first and the last step are those of the file, which is taken to be no secret"
    return dataclasses.replace(mech.guarantee, assumptions=(*mech.guarantee.assumptions, taken))


def _published(mech: Mechanism, steps: Iterable[Ints], releases: ReleaseFile) -> dict[str, Any]:
    fresh_looks = 0
    for counts in steps:
        release = mech.release(counts)
        releases.write(release)
        fresh_looks += release.fresh
    releases.commit()
    return {
        "fresh_looks": fresh_looks,
        "worst_window_spent": mech.ledger.worst_window(),
        "out": None if releases.path is None else str(releases.path),
    }


def _predicted(mech: Mechanism) -> dict[str, Any]:
    """What is known before anything is spent: the noise of a look, and that no window goes over epsilon."""
    smallest, largest = mech.noise_range()
    return {
        "dry_run": True,
        "smallest_error_of_a_look": smallest,
        "largest_error_of_a_look": largest if math.isfinite(largest) else None,
        "worst_window_spent_at_most": mech.epsilon,
    }


def _summary(report: dict[str, Any]) -> str:
    amount = f"{report['steps']:,} steps of {report['bins']:,} {'bin' if report['bins'] == 1 else 'bins'}"
    if "dry_run" in report:
        largest = report["largest_error_of_a_look"]
        return (
            f"Checked {amount}; nothing was published or charged. A fresh number would be off by "
            f"{report['smallest_error_of_a_look']:,.3g} {'or more' if largest is None else f'to {largest:,.3g}'} "
            f"on average, and any {report['window']} steps would spend at most {report['epsilon']:g} of epsilon."
        )
    return (
        f"Published {amount} to {report['out'] or 'standard output'}, {report['fresh_looks']:,} of them measured anew; "
        f"the fullest {report['window']} steps spent {report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
    )


def _with_progress(steps: Iterable[Ints], doing: str, total: int | None, quiet: bool) -> Iterable[Ints]:
    """Show a bar on a terminal, unless the releases themselves are shown there."""
    if quiet or not sys.stderr.isatty():
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, doing, total, console=Console(stderr=True), transient=True)
