"""The command `eventide`: a file or folder for each verb, imported only when it is used, so that help answers at once.

Every error ends here as one sentence on standard error and an exit code; what an unexpected one says could hold a true
count, so only its kind is shown, and the rest with EVENTIDE_DEBUG=1.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any, NamedTuple

import click

from eventide import __version__
from eventide.errors import BudgetExceeded, EventideError, InputError, StateError, StoreError, unknown

EXIT_CODES = {InputError: 2, BudgetExceeded: 3, StateError: 5, StoreError: 5}
GUARANTEE_VIOLATED, INTERRUPTED = 4, 130


class Verb(NamedTuple):
    """A verb, without the cost of importing it; `command` in the module of its name does the work."""

    summary: str
    example: str


VERBS = {
    "demo": Verb("Publish a small synthetic city and draw it.", "eventide demo"),
    "publish": Verb(
        "Publish events or counts privately.", "eventide publish counts.csv --epsilon 1 --window 144 --out private.csv"
    ),
    "serve": Verb("Run the service and its dashboard.", "eventide serve eventide.toml"),
    "init": Verb("Write a configuration to start from.", "eventide init"),
    "config": Verb("Check a configuration, make tokens.", "eventide config check eventide.toml"),
    "bins": Verb("List the bins of a store, name or close one.", "eventide bins city.db --name harbour"),
    "ledger": Verb("Show and verify what a store has spent.", "eventide ledger city.db"),
    "account": Verb(
        "Make or show a budget that publications share.",
        "eventide account create people.account --population patients --epsilon 1 --window 7d",
    ),
    "guarantee": Verb(
        "Write a page for people who must sign the promise.", "eventide guarantee city.db --out guarantee.html"
    ),
    "intrusion": Verb("Announce that somebody saw the memory.", "eventide intrusion wards.db"),
    "export": Verb("Write what a store holds to a file.", "eventide export city.db --out releases.csv"),
    "plan": Verb("Plan window queries and predict their errors.", "eventide plan queries.toml --epsilon 1"),
    "bench": Verb("Run a study of mechanisms.", "eventide bench quick --out results.parquet"),
    "report": Verb("Draw the results of a study, or compare two.", "eventide report results.parquet --out report.html"),
    "choose": Verb(
        "Recommend a mechanism for a stream like this one.", "eventide choose history.csv --epsilon 1 --window 120"
    ),
    "audit": Verb("Try to break a mechanism's guarantee.", "eventide audit ba --epsilon 1 --window 3 --bins 3"),
    "warm": Verb("Compile everything ahead, for images.", "eventide warm compiled"),
}


class Verbs(click.Group):
    """Finds verbs by name and turns errors into exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the verbs."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = importlib.import_module(f"eventide.cli.{cmd_name}").command
        if "_EVENTIDE_COMPLETE" in os.environ:  # a shell asks, to complete a line
            _complete_values(command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown verb with the one that was meant, and an option with two values."""
        if args and args[0] not in VERBS and not args[0].startswith("-"):
            ctx.fail(unknown("verb", args[0], VERBS))
        name, command, words = super().resolve_command(ctx, args)
        if command is not None and not ctx.resilient_parsing:
            _refuse_repeated(command, words, ctx)
        return name, command, words

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the verbs and an example of each, from the table alone."""
        with formatter.section("Verbs"):
            formatter.write_dl([(name, verb.summary) for name, verb in VERBS.items()])
        with formatter.section("Examples"):
            for verb in VERBS.values():
                formatter.write_text(verb.example)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a verb."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click knows what these mean
        except KeyboardInterrupt:
            _end(ctx, "interrupted", INTERRUPTED)
        except EventideError as error:
            _end(ctx, str(error), next((code for kind, code in EXIT_CODES.items() if isinstance(error, kind)), 1))
        except Exception as error:
            if os.environ.get("EVENTIDE_DEBUG") == "1":
                raise
            kind = type(error).__name__
            if place := _own_place(error):
                _end(ctx, f"{kind} in {place}, which is no part of eventide; correct it, and try ev.check_mechanism", 2)
            _end(ctx, f"unexpected {kind}, a fault of eventide; EVENTIDE_DEBUG=1 shows where (and may show data)", 1)


def _own_place(error: Exception) -> str | None:
    """Where in somebody's own mechanism an error was raised, if it was."""
    registry = sys.modules.get("eventide.mechanisms.registry")
    return None if registry is None else registry.own_place(error)


def _refuse_repeated(command: click.Command, words: list[str], above: click.Context) -> None:
    """Refuse an option that takes one value and is given several: click would take the last, and say nothing."""
    ctx = click.Context(command, above)
    try:
        _, others, given = command.make_parser(ctx).parse_args(list(words))
    except click.UsageError:
        return  # which click itself says, with the usage of the verb
    for option in given:
        if isinstance(option, click.Option) and not (option.multiple or option.is_flag) and given.count(option) > 1:
            raise InputError(f"{option.opts[0]} is given more than once, and takes one value; keep one of them")
    if isinstance(command, click.Group) and others and (inner := command.get_command(ctx, others[0])):
        _refuse_repeated(inner, others[1:], ctx)


def _complete_values(command: click.Command) -> None:
    """Let a shell complete mechanisms, and names of files wherever a text may be one."""
    from eventide.mechanisms.registry import mechanism_names

    for parameter in command.params:
        if parameter.type is click.STRING:
            parameter.type = click.Choice(mechanism_names()) if parameter.name == "mechanism" else click.Path()
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _complete_values(inner)


def _end(ctx: click.Context, sentence: str, code: int) -> None:
    click.echo(f"Error: {sentence}", err=True)
    ctx.exit(code)


@click.group(
    cls=Verbs,
    subcommand_metavar="VERB [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="eventide")
def main() -> None:
    """Publish statistics of live event streams with w-event differential privacy.

    `eventide VERB --help` says more. Exit codes: 0 done, 1 unexpected, 2 bad input or usage, 3 refused for budget,
    4 guarantee violated, 5 store or output unusable, 130 interrupted.

    \b
    Completion in bash: eval "$(_EVENTIDE_COMPLETE=bash_source eventide)"
    """
