"""`eventide publish`: events or counts in, private releases out, or answers to window queries.

With a store the same command goes on where it stopped. A file of counts is checked as a whole before the first release,
so that a bad cell stops the work before anything is published or written. Options are checked where they are used, so
that help is quick.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import click

from eventide.errors import InputError


@dataclass(frozen=True)
class Options:
    """What was asked for; the names are those of the options."""

    source: str
    epsilon: float
    window: str | None
    step: str | None
    start: str | None
    until: str | None
    zone: str | None
    bins: str | None
    other: str | None
    time: str | None
    user: str | None
    bin: str | None
    max_per_step: int
    late: str | None
    follow: bool
    engine: str | None
    sensitivity: int | None
    mechanism: str
    filter_name: str
    people: str
    store: str | None
    new_epoch: bool
    take_over: bool
    after_restore: bool
    longest_window: str | None
    allow_refused: bool
    out: str | None
    layout: str | None
    webhook: tuple[str, ...]
    queries: str | None
    queries_epsilon: float | None
    queries_of: str
    dry_run: bool
    log: str | None
    as_json: bool

    @property
    def events(self) -> bool:
        """Whether the source holds events rather than counts."""
        named = (self.time, self.user, self.bin, self.other, self.late, self.engine)
        return any(named) or self.live or ".jsonl" in self.source.lower()

    @property
    def live(self) -> bool:
        """Whether the source goes on."""
        return self.follow or self.source == "-" or "://" in self.source

    @property
    def sensitivity_of_counts(self) -> int:
        """What one person adds to a step of counts at the most."""
        return 1 if self.sensitivity is None else self.sensitivity


@click.command("publish")
@click.argument("source")
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of steps.")
@click.option(
    "--window",
    metavar="STEPS",
    help="How many consecutive steps are protected together, or a duration such as 24h.  [1 with --queries]",
)
@click.option("--step", metavar="DURATION", help="How long a step is, such as 10min, 1h or 1d.")
@click.option("--start", metavar="ISO", help="When the first step begins.  [default: from the data; live: today]")
@click.option("--until", metavar="ISO", help="When the last step ends.  [default: from the data; live: never]")
@click.option("--zone", metavar="NAME", help="Time zone of days and of times that name none.  [default: UTC]")
@click.option(
    "--bins", metavar="FILE_OR_N", help="All bins: a file with one name a line, a number, or a range such as 1..24."
)
@click.option("--other", metavar="NAME", help="Count events of unknown bins here; refused without it.")
@click.option("--time", metavar="COL", help="The column of an event's time.  [default: timestamp]")
@click.option("--user", metavar="COL", help="The column of an event's user; without it every event is its own.")
@click.option("--bin", metavar="COL", help="The column of an event's bin.  [default: bin]")
@click.option(
    "--max-per-step", type=int, default=1, show_default=True, help="How many events of one user count in a step."
)
@click.option("--late", metavar="DURATION", help="How long after a step's end its events may arrive.  [default: 0]")
@click.option("--follow", is_flag=True, help="Go on as the file grows, like tail -f.")
@click.option(
    "--engine", type=click.Choice(["spark"]), help="Let Spark count a file of events, such as --engine spark."
)
@click.option(
    "--sensitivity",
    type=int,
    help="Of counts: the most one person adds to a step over all bins together.  [default: 1]",
)
@click.option("--mechanism", default="tide", show_default=True, metavar="NAME", help="When to look, and with how much.")
@click.option(
    "--filter",
    "filter_name",
    default="truncate",
    show_default=True,
    metavar="NAME",
    help="What is made of the noisy counts: truncate (whole numbers from 0 up), kalman, posterior-median, repeat "
    "(as measured), or none (the mechanism's own).",
)
@click.option("--people", default="everybody", show_default=True, metavar="NAME", help="Whose events these are.")
@click.option("--store", metavar="PATH", help="Ledger and releases, durable; the same command goes on from there.")
@click.option("--new-epoch", is_flag=True, help="Accept another setting; nothing is measured for a window.")
@click.option("--take-over", is_flag=True, help="Become the writer of a store that another process holds.")
@click.option("--after-restore", is_flag=True, help="The store is a backup: count the last window as spent.")
@click.option(
    "--longest-window",
    metavar="STEPS",
    help="With --after-restore: the longest window since the backup, if it was longer than the store knows.",
)
@click.option("--allow-refused", is_flag=True, help="Publish although most of the first rows are refused.")
@click.option(
    "--out",
    metavar="PATH",
    help="A .jsonl, .csv or .parquet file, - for standard output, nats://host:port/STREAM?subject=NAME or "
    "kafka://host:port/topic.  [default: -]",
)
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    help="Of a .csv or .parquet file.  [default: wide up to 1,000 bins]",
)
@click.option("--webhook", multiple=True, metavar="URL", help="Post each release here; may be repeated.")
@click.option("--queries", metavar="FILE", help="Answer the window queries of this TOML file, not every step.")
@click.option(
    "--queries-epsilon",
    type=float,
    help="Release every step and answer the queries besides, with this share of epsilon, such as 0.3.",
)
@click.option(
    "--queries-of",
    type=click.Choice(["bins", "total"]),
    default="bins",
    show_default=True,
    help="Answer queries for every bin, or for all bins together.",
)
@click.option("--dry-run", is_flag=True, help="Check everything and predict error and spend; publish nothing.")
@click.option("--log", type=click.Choice(["json"]), help="Tell of every step on standard error, a line each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document about the work; needs --out.")
@click.pass_context
def command(ctx: click.Context, /, **given: Any) -> None:
    """Publish events or counts privately: one release for each step, or with --queries the answers to window queries.

    With --queries-epsilon both: the answers stand in the JSON lines and in the store, where `eventide export --answers`
    finds them.

    SOURCE is a .csv, .csv.gz or .parquet file of counts; or, with --step and the names of columns, of events: a file
    (also .jsonl), - for standard input (JSON lines or CSV), nats://host:port/STREAM or kafka://host:port/topic.

    Counts are wide: one column a bin, one row a step, perhaps a first column t; or long: columns t, bin and count,
    sorted by t; cells that are 0 may be left out, and --bins must list all bins.

    \b
    Example: eventide publish counts.csv --epsilon 1 --window 144 --out private.csv
    \b
    Events:  eventide publish visits.csv --step 1h --time at --user who --bin page --bins pages.txt
                 --epsilon 1 --window 24h --store visits.db --out private.jsonl
    \b
    Live:    tail -F log.jsonl | eventide publish - --step 10min --late 1min --bins pages.txt
                 --epsilon 1 --window 24h --store visits.db --out private.jsonl
    \b
    Both:    eventide publish counts.csv --epsilon 1 --window 144 --queries queries.toml
                 --queries-epsilon 0.3 --store city.db --out private.jsonl
    """
    options = Options(**given)
    if options.as_json and not options.dry_run and options.out in (None, "-"):
        raise InputError("--json prints its document on standard output, so the releases need a file; add --out PATH")
    if options.queries is None or options.queries_epsilon is not None:
        from eventide.cli.publish.steps import publish_steps

        report, sentences = publish_steps(options)
    else:
        from eventide.cli.publish.query_answers import publish_answers

        chosen = ctx.get_parameter_source("mechanism") is click.core.ParameterSource.COMMANDLINE
        report, sentences = publish_answers(options, chosen)
    if options.as_json:
        click.echo(json.dumps(report))
    for sentence in (*sentences, report["guarantee"]):
        click.echo(sentence, err=True)
