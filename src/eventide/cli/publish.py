"""`eventide publish`: events or counts in, private releases out, or answers to window queries.

With a store the same command goes on where it stopped. A file of counts is checked as a whole before the first release,
so that a bad cell stops the work before anything is published or written.
"""

from __future__ import annotations

import json
from typing import Any

import click

from eventide.cli.publish_options import Options, publish_options
from eventide.errors import InputError


@click.command("publish")
@publish_options
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
        from eventide.cli.publish_steps import publish_steps

        report, sentences = publish_steps(options)
    else:
        from eventide.cli.publish_answers import publish_answers

        chosen = ctx.get_parameter_source("mechanism") is click.core.ParameterSource.COMMANDLINE
        report, sentences = publish_answers(options, chosen)
    if options.as_json:
        click.echo(json.dumps(report))
    for sentence in (*sentences, report["guarantee"]):
        click.echo(sentence, err=True)
