"""`eventide choose`: which mechanism for a stream like this one, how to publish its last steps together, or which cap.

It looks at true counts or events, or at ones made up from a description, and says so.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import click

from eventide.cli.choose_asked import Asked
from eventide.cli.progress import counting
from eventide.cli.settings import import_from_here, settings_option

REPEATED = 5  # times the repetitions, in the command that says it more exactly


@click.command("choose")
@click.argument("history", required=False)
@click.option("--epsilon", type=float, required=True, help="Privacy budget of every window of steps.")
@click.option("--window", metavar="STEPS", help="Steps protected together, or a duration.  [default: what --hide says]")
@click.option("--hide", metavar="STEPS", help="The longest sequence of steps that must stay hidden, or a duration.")
@click.option("--step", metavar="DURATION", help="How long a step is, for durations such as 3d.")
@click.option("--span", metavar="STEPS", help="Choose for the histogram of so many last steps, or of a duration.")
@click.option(
    "--user",
    metavar="COLUMN",
    help="HISTORY is a file of events, and this is its column of people. With --bins events are counted, at most "
    "--max-per-step of a user in a step; without it a cap is chosen.",
)
@click.option("--time", metavar="COLUMN", help="Of events: the column of times.  [default: timestamp]")
@click.option("--bin", metavar="COLUMN", help="Of events: the column of bins.  [default: bin; of caps all in one]")
@click.option(
    "--time-format", metavar="FORMAT", help="Of events that are counted: how times are written, as in publish."
)
@click.option("--other", metavar="NAME", help="Of events that are counted: the bin for those of unknown bins.")
@click.option("--start", metavar="ISO", help="Of events that are counted: when the first step begins.")
@click.option("--until", metavar="ISO", help="Of events that are counted: when the last step ends.")
@click.option(
    "--zone", help="Of events that are counted: the zone of days and of times that name none.  [default: UTC]"
)
@click.option("--people", type=int, help="Choose a cap for people that are described: how many they are.")
@click.option("--events-per-week", type=float, help="Describe people: events of one in a week, on average.")
@click.option(
    "--cap",
    "caps",
    multiple=True,
    metavar="EVENTS/DURATION",
    help="Try this cap, such as 2/7d; may be repeated.  [default: 1 to 12 events in a window]",
)
@click.option(
    "--bins",
    metavar="FILE_OR_N",
    help="All bins of a long file, or of events that are counted; or how many the described stream has.",
)
@click.option("--levels", metavar="FILE", help="Publish groups of bins as well: a CSV of bins and the groups of each.")
@click.option("--level", type=float, help="Describe a stream: the count of a bin at its lowest.")
@click.option(
    "--amplitude", type=float, help="Describe a stream: how far a count rises above the level and falls back."
)
@click.option("--season", type=int, help="Describe a stream or people: in how many steps counts rise and fall once.")
@click.option("--steps", type=int, help="Describe a stream or people: how many steps there are.  [default: 1000]")
@click.option(
    "--mechanism",
    "--mechanisms",
    "mechanisms",
    multiple=True,
    metavar="NAME_OR_CLASS",
    help="Try this besides uniform and sample, by name or module:Class; several with commas.  [default: all that fit; "
    "for caps uniform and tide]",
)
@settings_option
@click.option(
    "--sensitivity",
    "--max-per-step",
    "sensitivity",
    type=int,
    default=1,
    show_default=True,
    help="The most one person adds to a step.",
)
@click.option(
    "--repetitions", type=int, help="Runs of each candidate.  [default: 50, fewer with more bins, at least 5]"
)
@click.option("--seed", type=int, default=1, show_default=True, help="The same seed gives the same figures.")
@click.option("--out", type=click.Path(path_type=Path), help="Draw everything on a page. It shows true counts.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, out: Path | None, as_json: bool, **given: Any) -> None:
    """Recommend a mechanism for a stream like HISTORY, a file of counts, or like one that is described instead.

    A small study: every candidate publishes the stream some times, and the one with the least error is recommended,
    with the error to expect in your own counts, what other windows and budgets would cost, and the command that
    publishes with it. Only what can be published is tried.

    HISTORY may hold events: with --step, --bins and the names of columns they are counted and bounded as `publish`
    would, and a mechanism is recommended for what comes out.

    With --user and without --bins a cap on the events is recommended: how many events of a person count in a window.
    For each cap you see two errors: that of the noise, and that of the events it leaves out. People can be
    described instead, with --people and --events-per-week.

    With --span the histogram of the last steps is asked for at every step, and you see how far off it is when a
    mechanism publishes it, a plan of window queries answers it, or releases are added up.

    A choice made on private history tells something about it, and no budget covers that. Give a history that is public,
    old or made up, or describe the stream with --level, --amplitude, --season, --steps and --bins. What is printed or
    drawn here comes from true counts and is not private.

    \b
    Example: eventide choose history.csv --epsilon 1 --window 120 --out choice.html
    Example: eventide choose --level 400 --amplitude 100 --season 144 --bins 20 --epsilon 1 --hide 1d --step 10min
    Example: eventide choose history.csv --epsilon 1 --window 1 --span 15
    Example: eventide choose events.csv --step 1h --user who --bin page --bins pages.txt --window 24h --epsilon 1
    Example: eventide choose events.csv --user who --step 1h --window 7d --epsilon 1 --out caps.html
    Example: eventide choose --people 4000 --events-per-week 2 --step 1h --window 7d --epsilon 1
    """
    from eventide.cli.choose_cap_result import CapAnswer
    from eventide.cli.choose_result import MechanismAnswer
    from eventide.cli.choose_span_result import SpanAnswer
    from eventide.cli.html_files import check_page, write_page
    from eventide.privacy.guarantees import about_large

    asked = Asked(**given)
    if out is not None:
        check_page(out, asked.history)
    import_from_here()
    with counting("Trying", unit="trials") as tell:
        of_steps = MechanismAnswer if asked.span is None else SpanAnswer
        answer = (CapAnswer if asked.about_people else of_steps).to(asked, tell)
    repeat = _repeat(ctx, REPEATED * answer.choice.repetitions)
    if out is not None:
        write_page(out, answer.page(repeat))
    if as_json:
        click.echo(json.dumps(answer.document(repeat) | {"page": out and str(out)}))
        return
    answer.show(repeat)
    for sentence in about_large(asked.epsilon):
        click.echo(sentence)
    if out is not None:
        click.echo(f"The picture is in {out}; it needs no network.")


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
