"""What `eventide choose` shows: the recommendation, the candidates, what privacy costs, what to do next.

On the terminal and, with true counts beside released ones, on one HTML page that loads nothing from anywhere. The page
is for data that may be looked at, and says so.
"""

from __future__ import annotations

import html
import os
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import click
import numpy as np
from rich.console import Console
from rich.table import Table

from eventide.bench import Choice
from eventide.bench.choose.choice import UNPAID, Trial
from eventide.cli.choose_asked import Asked
from eventide.cli.settings import written_settings
from eventide.display.drawings import percent, shown
from eventide.display.pages import embedded, filled, paragraphs

SETTINGS = ("epsilon", "window", "hide", "sensitivity", "repetitions", "seed", "level", "movement")
SENTENCES = ("useful", "verdict", "reading", "window_advice")
TRIALS = ("candidates", "over_window", "over_epsilon", "remedies")
HEADINGS = ("mechanism", "error", "nine of ten runs", "of the level", "looks per w")
CONFIDENTIAL = "This page shows true counts and figures made from them: it is as confidential as the history."
MADE_UP = "The stream is made up from a description: nobody's data was looked at."


class MechanismAnswer(NamedTuple):
    """Which mechanism for a stream like this one; `repeat` is the command that gives more exact figures."""

    choice: Choice

    @classmethod
    def to(cls, asked: Asked, tell: Callable[[int, int], None]) -> Self:
        """Try the mechanisms."""
        from eventide.bench import choose

        study = asked.study()
        cores = os.cpu_count() or 1
        return cls(
            choose(
                asked.counts(),
                hide=asked.hidden,
                levels=asked.levels,
                sensitivity=asked.sensitivity,
                tell=tell,
                processes=cores,
                **study,
            )
        )

    def page(self, repeat: str) -> str:
        """Everything on a page."""
        return build_page(self.choice, repeat)

    def show(self, repeat: str) -> None:
        """Print everything but the picture."""
        print_choice(self.choice, repeat)

    def document(self, repeat: str) -> dict[str, Any]:
        """Everything but the counts."""
        choice = self.choice
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
        }


def print_choice(choice: Choice, repeat: str) -> None:
    """Print everything but the picture; `repeat` is the command that gives more exact figures."""
    steps, bins = choice.history.counts.shape
    for sentence in (choice.verdict, *choice.reading, *choice.remedy_advice, ""):
        click.echo(sentence)
    click.echo(f"Tried on {choice.history.source}: steps {steps:,}, bins {bins:,}, runs of each {choice.repetitions}.")
    for note in choice.history.notes:
        click.echo(f"Note: {note}.")
    console = Console()
    console.print(text_table("Error of one bin at one step", HEADINGS, rows(choice), choice.recommended.label))
    console.print(text_table("Error at other windows", *cost_rows("window", choice.over_window)))
    console.print(text_table("Error at other budgets", *cost_rows("epsilon", choice.over_epsilon)))
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
    return [("Publish:", publishing(choice))] * choice.useful + [("More exactly:", repeat)]


def publishing(choice: Choice) -> str:
    """The command that publishes with what is recommended."""
    best = choice.recommended
    read_with = choice.history.read_with
    words = ["eventide", "publish", *(read_with or ("COUNTS",))]
    words += ["--epsilon", f"{choice.epsilon:g}", "--window", str(choice.window)]
    words += ["--mechanism", best.mechanism, *written_settings(best.parameters)]
    words += ["--levels", "LEVELS"] if best.levels else []
    if choice.sensitivity != 1:
        words += ["--max-per-step" if read_with else "--sensitivity", str(choice.sensitivity)]
    return shlex.join([*words, "--out", "private.csv"])


def text_table(title: str, headings: Sequence[str], lines: Sequence[Sequence[str]], recommended: str = "") -> Table:
    """A table for a terminal; the row that begins with what is recommended stands out."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == headings[0] else "right")
    for line in lines:
        style = "bold" if line[0] == recommended else "dim" if line[0].startswith("(") else None
        table.add_row(*line, style=style)
    return table


def build_page(choice: Choice, repeat: str) -> str:
    """The page; `repeat` is the command that gives more exact figures."""
    steps, bins = choice.history.counts.shape
    notes = "".join(f" {note[0].upper()}{note[1:]}." for note in choice.history.notes)
    parts = {
        "usefulness": "useful" if choice.useful else "useless",
        "verdict": html.escape(choice.verdict),
        "reading": paragraphs(choice.reading),
        "about": html.escape(
            f"Tried on {choice.history.source}: {steps:,} steps, {bins:,} {'bin' if bins == 1 else 'bins'}, epsilon "
            f"{choice.epsilon:g}, window {choice.window}, {choice.repetitions} runs of each candidate.{notes}"
        ),
        "warning": html.escape(MADE_UP if choice.history.made_up else f"{CONFIDENTIAL} {UNPAID}"),
        "remedies": _remedies(choice),
        "height": f"{8 + 1.4 * len(choice.candidates):.0f}",
        "table": _html_table(HEADINGS, rows(choice), choice.recommended.label),
        "window_table": _html_table(*cost_rows("window", choice.over_window)),
        "epsilon_table": _html_table(*cost_rows("epsilon", choice.over_epsilon)),
        "window_advice": paragraphs(choice.window_advice),
        "following": "".join(
            f"<p>{html.escape(words)}</p><code>{html.escape(code)}</code>" for words, code in following(choice, repeat)
        ),
        "data": embedded(_data(choice)),
    }
    return filled("eventide.cli", "choose_page.html", parts)


def _data(choice: Choice) -> dict[str, Any]:
    """What the charts are drawn from."""
    return {
        "epsilon": choice.epsilon,
        "window": choice.window,
        "level": choice.level,
        "candidates": [
            {
                "label": trial.label,
                "error": trial.error,
                "low": trial.low,
                "high": trial.high,
                "recommended": trial is choice.recommended,
            }
            for trial in choice.candidates
        ],
        "references": [
            {"label": "all zeros", "error": choice.level},
            {"label": "bin medians", "error": choice.movement},
        ],
        "series": _series(choice),
        "over_window": _lines(choice.over_window, lambda trial: trial.window),
        "over_epsilon": _lines(choice.over_epsilon, lambda trial: trial.epsilon),
    }


def _series(choice: Choice) -> list[dict[str, Any]]:
    """The busiest bin, one of the usual size, and the total; of a single bin, that one."""
    counts, released, bins = choice.history.counts, choice.released, choice.history.bins
    by_size = np.argsort(-counts.sum(axis=0), kind="stable")
    places = {"the busiest bin": by_size[0], "a bin of usual size": by_size[len(bins) // 2]}
    shown = [(f"{name}, {bins[place]}", counts[:, place], released[:, place]) for name, place in places.items()]
    shown.append(("all bins together", counts.sum(axis=1), released.sum(axis=1)))
    return [
        {"name": name, "truth": true.tolist(), "released": values.tolist()}
        for name, true, values in (shown if len(bins) > 1 else [(bins[0], *shown[0][1:])])
    ]


def _lines(trials: Sequence[Trial], setting: Callable[[Trial], float]) -> list[dict[str, Any]]:
    """A line for each mechanism, over the settings."""
    found = []
    for label in dict.fromkeys(trial.label for trial in trials):
        points = sorted((setting(trial), trial.error) for trial in trials if trial.label == label)
        settings, errors = zip(*points, strict=True)
        found.append({"label": label, "settings": settings, "errors": errors})
    return found


def _remedies(choice: Choice) -> str:
    if not choice.remedies:
        return ""
    heading, *remedies = choice.remedy_advice
    items = "".join(f"<li>{html.escape(remedy)}</li>" for remedy in remedies)
    return f'<section id="remedies"><p>{html.escape(heading)}</p><ul>{items}</ul></section>'


def _html_table(headings: Sequence[str], lines: Iterable[Sequence[str]], recommended: str = "") -> str:
    """Head and rows; what is recommended, and what stands in brackets, looks different."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = ""
    for line in lines:
        kind = "recommended" if line[0] == recommended else "reference" if line[0].startswith("(") else "candidate"
        body += f'<tr class="{kind}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
