"""A choice on the terminal: the recommendation, the candidates, what privacy costs, what to do next.

The rows and sentences are those of the page as well.
"""

from __future__ import annotations

from collections.abc import Sequence

import click
from rich.console import Console
from rich.table import Table

from eventide.bench import Choice
from eventide.bench.choose.choice import UNPAID, Trial
from eventide.display.drawings import percent, shown

HEADINGS = ("mechanism", "error", "nine of ten runs", "of the level", "looks per w")


def print_choice(choice: Choice, repeat: str) -> None:
    """Print everything but the picture; `repeat` is the command that gives more exact figures."""
    steps, bins = choice.history.counts.shape
    for sentence in (choice.verdict, *choice.reading, *choice.remedy_advice, ""):
        click.echo(sentence)
    click.echo(f"Tried on {choice.history.source}: steps {steps:,}, bins {bins:,}, runs of each {choice.repetitions}.")
    for note in choice.history.notes:
        click.echo(f"Note: {note}.")
    console = Console()
    console.print(_table("Error of one bin at one step", HEADINGS, rows(choice), choice.recommended.label))
    console.print(_table("Error at other windows", *cost_rows("window", choice.over_window)))
    console.print(_table("Error at other budgets", *cost_rows("epsilon", choice.over_epsilon)))
    for sentence in choice.window_advice:
        click.echo(sentence)
    click.echo()
    for words, code in following(choice, repeat):
        click.echo(f"{words} {code}")
    if not choice.history.made_up:
        click.echo(UNPAID)


def rows(choice: Choice) -> list[list[str]]:
    """The candidates, and in brackets what they are measured against, the best first; below `HEADINGS`."""
    found = [
        (trial.error, trial.label, f"{shown(trial.low)} to {shown(trial.high)}", shown(trial.looks))
        for trial in choice.candidates
    ]
    found += [(choice.level, "(all zeros)", "", ""), (choice.movement, "(bin medians)", "", "")]
    return [
        [label, shown(error), spread, percent(error / choice.level), looks]
        for error, label, spread, looks in sorted(found)
    ]


def cost_rows(setting: str, trials: Sequence[Trial]) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: a row for each mechanism, a column for each value of `setting`, window or epsilon."""
    errors = {(trial.label, getattr(trial, setting)): shown(trial.error) for trial in trials}
    values = sorted({value for _, value in errors})
    labels = dict.fromkeys(label for label, _ in errors)
    return [setting, *(f"{value:g}" for value in values)], [
        [label, *(errors[label, value] for value in values)] for label in labels
    ]


def following(choice: Choice, repeat: str) -> list[tuple[str, str]]:
    """How the recommendation is used, if it is worth it, and how it is checked: words and code."""
    best = choice.recommended
    sensitivity = {} if choice.sensitivity == 1 else {"sensitivity": choice.sensitivity}
    steps = [("More exactly:", repeat)]
    if choice.useful and best.parameters:
        given = {"epsilon": choice.epsilon, "window": choice.window} | best.parameters | sensitivity
        words = ", ".join(f"{name}={value!r}" for name, value in given.items())
        code = f'eventide.mechanism("{best.mechanism}", {words}, bins=BINS, filter="truncate")'
        steps.insert(0, ("Publish, in Python:", code))
    elif choice.useful:
        options = "".join(f" --{name} {value}" for name, value in sensitivity.items())
        code = f"eventide publish COUNTS --epsilon {choice.epsilon:g} --window {choice.window}"
        steps.insert(0, ("Publish:", f"{code} --mechanism {best.mechanism}{options} --out private.csv"))
    return steps


def _table(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]], recommended: str = "") -> Table:
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for line in lines:
        style = "bold" if line[0] == recommended else "dim" if line[0].startswith("(") else None
        table.add_row(*line, style=style)
    return table
