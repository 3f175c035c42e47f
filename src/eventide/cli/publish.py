"""`eventide publish`: a file of counts in, private releases out, or answers to window queries.

The whole file is checked before the first release, so that a bad cell stops the work before anything is published or
written. Imports click; everything heavy is imported when the verb runs.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.arrays import Ints
    from eventide.mechanisms.base import Mechanism
    from eventide.privacy.guarantees import Guarantee
    from eventide.streams.count_files import CountFile
    from eventide.streams.release_files import ReleaseFile


class Privacy(NamedTuple):
    """What is promised."""

    epsilon: float
    window: int
    sensitivity: int


class Output(NamedTuple):
    """Where releases or answers go, if anywhere."""

    path: str | None
    layout: str | None
    dry_run: bool


@click.command("publish")
@click.argument("source")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of steps.")
@click.option(
    "--window", metavar="STEPS", help="How many consecutive steps are protected together.  [1 with --queries]"
)
@click.option("--bins", metavar="FILE_OR_N", help="All bins: a file with one name a line, or a number.")
@click.option("--mechanism", default="ba", show_default=True, metavar="NAME", help="How looks are chosen and paid for.")
@click.option(
    "--filter",
    "filter_name",
    default="truncate",
    show_default=True,
    metavar="NAME",
    help="What is made of the noisy counts: truncate (whole numbers from 0 up), kalman, or none (the mechanism's own).",
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
@click.option("--queries", metavar="FILE", help="Answer the window queries of this TOML file instead of every step.")
@click.option("--step", metavar="DURATION", help="How long a step is, for queries written as durations such as 15min.")
@click.option("--dry-run", is_flag=True, help="Check everything and predict error and spend; publish nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document about the work; releases need --out.")
@click.pass_context
def command(
    ctx: click.Context,
    source: str,
    epsilon: float,
    window: str | None,
    bins: str | None,
    mechanism: str,
    filter_name: str,
    sensitivity: int,
    out: str | None,
    layout: str | None,
    queries: str | None,
    step: str | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Publish a file of counts privately: one release for each step, or with --queries the answers to window queries.

    SOURCE is a .csv, .csv.gz or .parquet file. Wide: one column a bin, one row a step, perhaps a first column t.
    Long: columns t, bin and count, sorted by t; cells that are 0 may be left out, and --bins must list all bins.

    \b
    Example: eventide publish counts.csv --epsilon 1 --window 144 --out private.csv
    """
    from eventide.streams.bins import parse_bins
    from eventide.streams.count_files import open_counts

    if as_json and not dry_run and out in (None, "-"):
        raise InputError("--json prints its document on standard output, so the releases need a file; add --out PATH")
    counts = open_counts(source, parse_bins(bins) if bins else None)
    output = Output(out, layout, dry_run)
    if queries is None:
        if step is not None:
            raise InputError("--step says how long a step is for --queries; a file of counts has no other use for it")
        mech = _mechanism(mechanism, filter_name, Privacy(epsilon, _steps(window), sensitivity), counts.bins)
        report, sentence = _publish_steps(mech, counts, output)
        report = {"mechanism": mechanism, "filter": filter_name} | report
    else:
        from eventide.cli.publish_answers import publish_answers

        if ctx.get_parameter_source("mechanism") is click.core.ParameterSource.COMMANDLINE:
            raise InputError(
                "--queries answers window queries and --mechanism releases every step; both at once would need two "
                "shares of epsilon, so choose one of them"
            )
        privacy = Privacy(epsilon, _steps(window or "1"), sensitivity)
        report, sentence = publish_answers(queries, step, counts, filter_name, privacy, output)
    if as_json:
        click.echo(json.dumps(report))
    click.echo(sentence, err=True)
    click.echo(report["guarantee"], err=True)


def _steps(window: str | None) -> int:
    if window is None:
        raise InputError("--window is missing; say how many consecutive steps are protected together")
    if not window.isdecimal():
        raise InputError(
            f"--window {window} must be a whole number of steps; a file of counts has no clock for a duration"
        )
    return int(window)


def _publish_steps(mech: Mechanism, counts: CountFile, output: Output) -> tuple[dict[str, Any], str]:
    from eventide.cli.progress import with_progress
    from eventide.streams.release_files import open_releases

    with open_releases(output.path, counts.bins, output.layout, counts.table.path) as releases:
        quiet = releases.path is None and sys.stdout.isatty()
        steps = sum(1 for _ in with_progress(counts.steps(), "Checking", None, quiet))
        report = {
            "steps": steps,
            "bins": mech.size,
            "epsilon": mech.epsilon,
            "window": mech.window,
            "sensitivity": mech.sensitivity,
            "guarantee": str(promised(mech.guarantee)),
        }
        if output.dry_run:
            report |= _predicted(mech)
        else:
            report |= _published(mech, with_progress(counts.steps(), "Publishing", steps, quiet), releases)
    return report, _summary(report)


def _mechanism(name: str, filter_name: str, privacy: Privacy, bins: tuple[str, ...]) -> Mechanism:
    from eventide.filters import by_name
    from eventide.mechanisms.registry import mechanism

    chosen = None if filter_name == "none" else by_name(filter_name)
    return mechanism(name, bins=bins, filter=chosen, **privacy._asdict())


def promised(guarantee: Guarantee) -> Guarantee:
    """A guarantee about a file, whose length is not hidden."""
    taken = "the first and the last step are those of the file, which is taken to be no secret"
    return dataclasses.replace(guarantee, assumptions=(*guarantee.assumptions, taken))


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
        f"Published {amount} to {report['out'] or 'standard output'}, {report['fresh_looks']:,} steps measured anew; "
        f"the fullest {report['window']} steps spent {report['worst_window_spent']:g} of epsilon {report['epsilon']:g}."
    )
