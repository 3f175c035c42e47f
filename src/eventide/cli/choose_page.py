"""A choice on one HTML page with everything inside, which loads nothing from anywhere.

It shows true counts beside released ones, for data that may be looked at, and says so.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eventide.bench import Choice
from eventide.bench.choose.choice import UNPAID, Trial
from eventide.cli.choose_tables import HEADINGS, cost_rows, following, rows
from eventide.cli.page import write_page
from eventide.display.pages import embedded, filled

CONFIDENTIAL = "This page shows true counts and figures made from them: it is as confidential as the history."
MADE_UP = "The stream is made up from a description: nobody's data was looked at."


def write_choice(path: Path, choice: Choice, repeat: str) -> None:
    """Write the page; `repeat` is the command that gives more exact figures."""
    write_page(path, build_page(choice, repeat))


def build_page(choice: Choice, repeat: str) -> str:
    """Fill the template; every text is escaped."""
    steps, bins = choice.history.counts.shape
    notes = "".join(f" {note[0].upper()}{note[1:]}." for note in choice.history.notes)
    parts = {
        "usefulness": "useful" if choice.useful else "useless",
        "verdict": html.escape(choice.verdict),
        "reading": _paragraphs(choice.reading),
        "about": html.escape(
            f"Tried on {choice.history.source}: {steps:,} steps, {bins:,} {'bin' if bins == 1 else 'bins'}, epsilon "
            f"{choice.epsilon:g}, window {choice.window}, {choice.repetitions} runs of each candidate.{notes}"
        ),
        "warning": html.escape(MADE_UP if choice.history.made_up else f"{CONFIDENTIAL} {UNPAID}"),
        "remedies": _remedies(choice),
        "height": f"{8 + 1.4 * len(choice.candidates):.0f}",
        "table": _table(HEADINGS, rows(choice), choice.recommended.label),
        "window_table": _table(*cost_rows("window", choice.over_window)),
        "epsilon_table": _table(*cost_rows("epsilon", choice.over_epsilon)),
        "window_advice": _paragraphs(choice.window_advice),
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


def _paragraphs(sentences: Iterable[str]) -> str:
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


def _table(headings: Sequence[str], lines: Iterable[Sequence[str]], recommended: str = "") -> str:
    """Head and rows; what is recommended, and what stands in brackets, looks different."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = ""
    for line in lines:
        kind = "recommended" if line[0] == recommended else "reference" if line[0].startswith("(") else "candidate"
        body += f'<tr class="{kind}">' + "".join(f"<td>{html.escape(cell)}</td>" for cell in line) + "</tr>"
    return f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
