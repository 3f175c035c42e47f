"""The page itself: parts with a promise, a picture of the budget, questions with answers, limits and a proof.

It has no script, loads nothing, and is made to be printed. Every text is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import NamedTuple

from eventide import __version__
from eventide.display.pages import paragraphs, printed_page
from eventide.display.step_picture import step_picture
from eventide.live.guarantee.over_epochs import Promised

_SIGNATURE = (
    f'<section class="signed"><p>This page was made by eventide {__version__}.</p>'
    "<table><tr><th>Name</th><th>Date</th><th>Signature</th></tr></table></section>"
)


class Budget(NamedTuple):
    """What windows held over time, by where each begins or ends."""

    places: Sequence[float]
    held: Sequence[float]
    epsilon: float | Sequence[float]  # one for all places, or one for each
    ends: tuple[str, str]
    what: str


class Part(NamedTuple):
    """What the page says of a store or an account."""

    title: str
    promise: str  # in plain sentences
    notes: Sequence[str]
    budget: Budget | None
    answers: Sequence[tuple[str, str]]
    limits: Sequence[str]
    proof: str
    problems: Sequence[str] = ()
    instead: str | None = None  # of a promise, where none holds
    past: Sequence[Promised] = ()  # what was promised of the steps so far


def guarantee_page(title: str, parts: Sequence[Part], answers: Sequence[tuple[str, str]] = ()) -> str:
    """The whole page; `answers` are about all parts together."""
    body = "".join(map(_part, parts))
    if answers:
        body += f"<section><h2>All of it</h2>{_table(answers)}</section>"
    return printed_page(title, body + _SIGNATURE)


def _part(part: Part) -> str:
    kept = f'<p class="broken">NOT KEPT: {html.escape("; ".join(part.problems))}</p>' if part.problems else ""
    budget = ""
    if part.budget is not None and part.budget.places:
        budget = (
            f"<figure>{step_picture(*part.budget)}<figcaption>{html.escape(part.budget.what)}; the line is epsilon."
            "</figcaption></figure>"
        )
    limits = "".join(f"<li>{html.escape(limit)}</li>" for limit in part.limits)
    return (
        f"<section><h2>{html.escape(part.title)}</h2>{kept}"
        f'<p class="promise">{html.escape(part.promise)}</p>{paragraphs(part.notes)}{budget}{_table(part.answers)}'
        f"<h3>What is not protected</h3><ul>{limits}</ul>"
        f'<h3>Proof</h3><p class="proof">{html.escape(part.proof)}</p></section>'
    )


def _table(answers: Sequence[tuple[str, str]]) -> str:
    rows = "".join(f"<tr><th>{html.escape(asked)}</th><td>{html.escape(told)}</td></tr>" for asked, told in answers)
    return f"<table>{rows}</table>"
