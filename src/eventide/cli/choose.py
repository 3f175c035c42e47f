"""`eventide choose`: which mechanism for a stream like this one, and what to expect of it.

It looks at true counts, or at a stream made up from a description, and says so.
"""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.cli.progress import counting
from eventide.cli.settings import import_from_here, parse_settings, settings_option
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.bench import Choice
    from eventide.bench.choose.history import History

REPEATED = 5  # times the repetitions, in the command that says it more exactly
SETTINGS = ("epsilon", "window", "hide", "sensitivity", "repetitions", "seed", "level", "movement")
SENTENCES = ("useful", "verdict", "reading", "window_advice")
TRIALS = ("candidates", "over_window", "over_epsilon", "remedies")


@click.command("choose")
@click.argument("history", required=False)
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of steps.")
@click.option("--window", metavar="STEPS", help="Steps protected together, or a duration.  [default: what --hide says]")
@click.option("--hide", metavar="STEPS", help="The longest sequence of steps that must not show, or a duration.")
@click.option("--step", metavar="DURATION", help="How long a step is, for durations such as 3d.")
@click.option("--bins", metavar="FILE_OR_N", help="All bins of a long file; or how many the described stream has.")
@click.option("--level", type=float, help="Describe a stream: the count of a bin at its lowest.")
@click.option(
    "--amplitude", type=float, help="Describe a stream: how far a count rises above the level and falls back."
)
@click.option("--season", type=int, help="Describe a stream: in how many steps it does so.")
@click.option("--steps", type=int, help="Describe a stream: how long it is.  [default: 1000]")
@click.option(
    "--mechanism",
    "--mechanisms",
    "mechanisms",
    multiple=True,
    metavar="NAME_OR_CLASS",
    help="Try this besides uniform and sample, by name or module:Class; several with commas.  [default: all that fit]",
)
@settings_option
@click.option("--sensitivity", type=int, default=1, show_default=True, help="The most one person adds to a step.")
@click.option(
    "--repetitions", type=int, help="Runs of each candidate.  [default: 50, fewer with more bins, at least 5]"
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same figures.")
@click.option("--out", type=click.Path(path_type=Path), help="Draw everything on a page. It shows true counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    history: str | None,
    epsilon: float,
    window: str | None,
    hide: str | None,
    step: str | None,
    mechanisms: tuple[str, ...],
    settings: tuple[str, ...],
    sensitivity: int,
    repetitions: int | None,
    seed: int,
    out: Path | None,
    as_json: bool,
    **described: Any,
) -> None:
    """Recommend a mechanism for a stream like HISTORY, a file of counts, or like one that is described instead.

    A small study: every candidate publishes the stream some times, and the one with the least error is recommended,
    with the error to expect in your own counts, what other windows and budgets would cost, and the command that
    publishes with it. Only what can be published is tried.

    A choice made on private history is itself a query that nobody paid for. Give a history that is public, old or made
    up, or describe the stream with --level, --amplitude, --season, --steps and --bins. What is printed or drawn here
    comes from true counts and is not private.

    \b
    Example: eventide choose history.csv --epsilon 1 --window 120 --out choice.html
    Example: eventide choose --level 400 --amplitude 100 --season 144 --bins 20 --epsilon 1 --hide 1d --step 10min
    """
    from eventide.bench import choose
    from eventide.cli.html_files import keep_apart, write_page

    if out is not None:
        keep_apart(out, history)
    if out is not None and (out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK)):
        raise InputError(f"cannot write {out}; choose a file in a folder that exists and may be written to with --out")
    hidden = _steps("--hide", hide, step)
    protected = hidden if window is None else _steps("--window", window, step)
    if protected is None:
        raise InputError("--window is missing; say how many steps are protected together, or with --hide what to hide")
    import_from_here()
    named = [name.strip() for several in mechanisms for name in several.split(",")]
    parameters = parse_settings(settings, fixed=("sensitivity", "filter"))
    if parameters and not named:
        raise InputError("--set is for a mechanism that is named; name it with --mechanism")
    with counting("Trying") as tell:
        choice = choose(
            _history(history, protected, **described),
            epsilon=epsilon,
            window=protected,
            mechanisms=named or None,
            parameters=parameters,
            hide=hidden,
            sensitivity=sensitivity,
            repetitions=repetitions,
            seed=seed,
            tell=tell,
        )
    repeat = _repeat(ctx, REPEATED * choice.repetitions)
    if out is not None:
        from eventide.cli.choose_result import build_page

        write_page(out, build_page(choice, repeat))
    if as_json:
        click.echo(json.dumps(_document(choice, repeat, out)))
    else:
        from eventide.cli.choose_result import print_choice

        print_choice(choice, repeat)
        if out is not None:
            click.echo(f"The picture is in {out}; it needs no network.")


def _steps(option: str, text: str | None, step: str | None) -> int | None:
    """A number of steps, given as such or as a duration."""
    from eventide.events.durations import milliseconds, steps_of_window

    if text is None:
        return None
    if option == "--hide" and step is not None and not text.isdecimal():  # it may begin in the middle of a step
        return -(-milliseconds(text) // milliseconds(step)) + 1
    if step is None and not text.isdecimal():
        raise InputError(f"{option} {text} needs --step, which says how long a step is; or give a number of steps")
    return steps_of_window(text, step)


def _history(
    path: str | None, window: int, bins: str | None, level: float | None, **wave: int | float | None
) -> History:
    from eventide.bench import describe
    from eventide.bench.choose.history import read_history
    from eventide.events.bins import parse_bins

    given = {name: value for name, value in wave.items() if value is not None}
    if path is not None and (given or level is not None):
        raise InputError("a HISTORY and a description exclude each other; leave out --level and its like, or the file")
    if path is not None:
        return read_history(path, window, None if bins is None else parse_bins(bins))
    if level is None:
        raise InputError(
            "there is nothing to try mechanisms on; give a HISTORY file, or describe a stream with --level"
        )
    if bins is not None and not bins.isdecimal():
        raise InputError(f"--bins {bins} must be a number for a described stream")
    return describe(level=level, bins=int(bins or 1), **given)  # type: ignore[arg-type]


def _repeat(ctx: click.Context, repetitions: int) -> str:
    """The command that was given, with more repetitions."""
    words = ["eventide", "choose"]
    for parameter in ctx.command.params:
        value = ctx.params[parameter.name or ""]
        if value is None or parameter.name in ("repetitions", "out", "as_json") or value == parameter.default:
            continue
        for each in value if isinstance(value, tuple) else (value,):
            option = [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
            words += [*option, f"{each:g}" if isinstance(each, float) else str(each)]
    return shlex.join([*words, "--repetitions", str(repetitions)])


def _document(choice: Choice, repeat: str, out: Path | None) -> dict[str, Any]:
    """Everything but the counts."""
    from eventide.bench.choose.choice import UNPAID
    from eventide.cli.choose_result import publishing

    return {
        "source": choice.history.source,
        "made_up": choice.history.made_up,
        "warning": None if choice.history.made_up else UNPAID,
        "notes": choice.history.notes,
        "steps": len(choice.history.counts),
        "bins": len(choice.history.bins),
        **{name: getattr(choice, name) for name in SETTINGS},
        "season": choice.season or None,
        **{name: getattr(choice, name) for name in SENTENCES},
        "recommended": asdict(choice.recommended),
        **{name: [asdict(each) for each in getattr(choice, name)] for name in TRIALS},
        "publish": publishing(choice) if choice.useful else None,
        "repeat": repeat,
        "page": None if out is None else str(out),
    }
