"""`eventide publish`: events or counts in, private releases out, or answers to window queries.

With a store the same command goes on where it stopped. A file of counts is checked as a whole before the first release,
so that a bad cell stops the work before anything is published or written. Options are checked where they are used, so
that help is quick.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import click

from eventide.cli.addresses import warn_of_secrets
from eventide.cli.progress import resumable
from eventide.cli.settings import import_from_here, parse_settings
from eventide.errors import InputError
from eventide.live.setting_readers import defaults_of, settings_of
from eventide.live.stream_spec import StreamSpec

OF_EVENTS = ("time", "time_format", "user", "bin", "other", "late", "statistic")  # settings that no file of counts has


@dataclass(frozen=True)
class Options:
    """What was asked for; the names are those of the options. `stream` has what was said of the stream."""

    stream: dict[str, Any]
    sources: tuple[str, ...]
    follow: bool
    continue_with: str | None
    engine: str | None
    store: str | None
    account: str | None
    new_epoch: bool
    new_columns: bool
    take_over: bool
    after_restore: bool
    longest_window: str | None
    allow_refused: bool
    out: str | None
    layout: str | None
    intervals: bool
    webhook: tuple[str, ...]
    clients: str | None
    dry_run: bool
    log: str | None
    as_json: bool

    @cached_property
    def spec(self) -> StreamSpec:
        """The stream."""
        return StreamSpec.read(self.stream, label=option_of)

    @property
    def events(self) -> bool:
        """Whether the source holds events rather than counts."""
        named = self.engine or any(name in self.stream for name in OF_EVENTS)
        return bool(named) or self.live or self.several or ".jsonl" in self.sources[0].lower()

    @property
    def live(self) -> bool:
        """Whether the source goes on."""
        return self.follow or self.sources[0] == "-" or "://" in self.sources[0]

    @property
    def several(self) -> bool:
        """Whether the source may be more than one file."""
        from eventide.events.files.members import is_several

        return is_several(self.sources)

    @property
    def source(self) -> str | tuple[str, ...]:
        """The source as one, which it mostly is."""
        return self.sources[0] if len(self.sources) == 1 else self.sources


SEVERAL_TIMES = ("parameters", "statistic", "between", "edges")


def option_of(name: str) -> str:
    """The option for a setting of a stream."""
    return "--" + (settings_of(StreamSpec)[name].option or name).replace("_", "-")


def stream_options(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each setting of a stream."""
    defaults = defaults_of(StreamSpec)
    for name, each in reversed(settings_of(StreamSpec).items()):
        left_out = each.left_out or (defaults[name] if isinstance(defaults[name], str | int) else "")
        command = click.option(
            option_of(name),
            name,
            metavar=each.metavar,
            required=name == "epsilon",
            multiple=name in SEVERAL_TIMES,
            help=f"{each.help}  [default: {left_out}]" if left_out else each.help,
        )(command)
    return command


@click.command("publish")
@click.argument("sources", metavar="SOURCE...", nargs=-1, required=True)
@stream_options
@click.option("--people", hidden=True)
@click.option("--follow", is_flag=True, help="Keep reading as the file grows and is rotated, like tail -F.")
@click.option(
    "--continue-with",
    metavar="FILE",
    help="With --follow, if the file that was read before is gone: read on from the beginning of this one.",
)
@click.option("--engine", type=click.Choice(["spark"]), help="Let Spark count a file, a folder or table:NAME.")
@click.option(
    "--store", metavar="PATH", help="Where ledger and releases are kept; the same command resumes from there."
)
@click.option(
    "--account",
    metavar="ADDRESS",
    help="The budget that all publications about these people share; --epsilon is the part of this one.",
)
@click.option(
    "--new-epoch",
    is_flag=True,
    help="Accept changed settings. Nothing is measured for one window, with a cap for one block more.",
)
@click.option(
    "--new-columns",
    is_flag=True,
    help="Accept another --time, --time-format, --user or --bin than the store was published with.",
)
@click.option(
    "--take-over", is_flag=True, help="Publish to a store that another process holds; that one can write no more."
)
@click.option(
    "--after-restore",
    is_flag=True,
    help="The store was restored from a backup: count its last window, with a cap one block more, as spent.",
)
@click.option(
    "--longest-window",
    metavar="STEPS",
    help="With --after-restore: the longest window since the backup, in steps or as a duration, if it was longer than "
    "the store knows.",
)
@click.option(
    "--allow-refused", is_flag=True, help="Publish although most of the first rows are refused, or no row is counted."
)
@click.option(
    "--out",
    metavar="PATH",
    help="A .jsonl, .csv or .parquet file, - for standard output, nats://host:port/STREAM?subject=NAME or "
    "kafka://host:port/topic; a table: a .delta folder, a .sqlite file or iceberg://CATALOG/NAMESPACE.TABLE.  "
    "[default: -]",
)
@click.option(
    "--layout",
    type=click.Choice(["wide", "long"]),
    help="Of a .csv or .parquet file.  [default: wide up to 1,000 bins]",
)
@click.option("--intervals", is_flag=True, help="Add low and high to a wide file: the columns BIN_low and BIN_high.")
@click.option("--webhook", multiple=True, metavar="URL", help="Post each release here; may be repeated.")
@click.option(
    "--clients",
    metavar="FILE",
    help="Passwords, tokens and TLS for addresses: a TOML file that only you may read.  [default: EVENTIDE_CLIENTS]",
)
@click.option(
    "--dry-run", is_flag=True, help="Check the setting and say the error to expect; publish and charge nothing."
)
@click.option("--log", type=click.Choice(["json"]), help="Log every step on standard error, one line each.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document about what was done; needs --out.")
def command(**given: Any) -> None:
    """Publish events or counts privately: one release for each step, or with --queries the answers to window queries.

    With --queries-epsilon it does both. The answers are in the JSON lines and in the store, where `eventide export
    --answers` finds them.

    SOURCE is a .csv, .csv.gz or .parquet file of counts; or, with --step and the names of columns, of events: a file
    (also .jsonl), a folder, a pattern such as 'logs/*.csv', several of them, - for standard input (JSON lines or CSV),
    nats://host:port/STREAM or kafka://host:port/topic. Several files are read as one, with the columns of folders such
    as day=2026-01-31.

    Counts are wide: one column a bin, one row a step, perhaps a first column t; or long: columns t, bin and count,
    sorted by t; cells that are 0 may be left out, and --bins must list all bins.

    \b
    Example: eventide publish counts.csv --epsilon 1 --window 144 --out private.csv
    \b
    Events:  eventide publish visits.csv --step 1h --time at --user who --bin page --bins pages.txt
                 --epsilon 1 --window 24h --store visits.db --out private.jsonl
    \b
    Folder:  eventide publish visits/ --step 1h --time at --time-format ms --user who --bin page --bins pages.txt
                 --epsilon 1 --window 24h --store visits.db --out private.csv --intervals
    \b
    Live:    tail -F log.jsonl | eventide publish - --step 10min --late 1min --bins pages.txt
                 --epsilon 1 --window 24h --store visits.db --out private.jsonl
    \b
    Both:    eventide publish counts.csv --epsilon 1 --window 144 --queries queries.toml
                 --queries-epsilon 0.3 --store city.db --out private.jsonl
    """
    import_from_here()
    options = _options(given)
    warn_of_secrets(*options.sources, options.store, options.account, options.out)
    if options.as_json and not options.dry_run and options.out in (None, "-"):
        raise InputError("--json prints its document on standard output, so the releases need a file; add --out PATH")
    if "queries" not in options.stream or "queries_epsilon" in options.stream:
        from eventide.cli.publish.steps import publish_steps as publish
    else:
        from eventide.cli.publish.query_answers import publish_answers as publish
    with resumable(options.store is not None and not options.dry_run):
        report, sentences = publish(options)
    if options.as_json:
        click.echo(json.dumps(report))
    for sentence in (*sentences, report["guarantee"]):
        click.echo(sentence, err=True)


def _options(given: dict[str, Any]) -> Options:
    settings = {name: given.pop(name) for name in settings_of(StreamSpec)}
    older = given.pop("people")
    settings["population"] = settings["population"] or older
    settings["parameters"] = parse_settings(settings["parameters"]) or None
    return Options(stream={name: value for name, value in settings.items() if value not in (None, ())}, **given)
