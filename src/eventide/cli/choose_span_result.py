"""What `eventide choose --span` shows: how to publish the histogram of the last steps, and what each way costs.

On the terminal, as a document, and as a picture on one HTML page. All of it comes from true counts, and says so.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import click
from rich.console import Console

from eventide.bench.choose.choice import UNPAID
from eventide.bench.choose.span_choice import SpanChoice, SpanTrial
from eventide.bench.run.histograms import LARGEST
from eventide.cli.choose_asked import Asked
from eventide.cli.choose_result import CONFIDENTIAL, MADE_UP, text_table
from eventide.cli.html_files import plain_page
from eventide.cli.settings import written_settings
from eventide.display.drawings import COLOURS, percent, shown

SETTINGS = ("span", "epsilon", "window", "sensitivity", "repetitions", "seed", "level", "level_of_largest")
SENTENCES = ("useful", "verdict", "reading")
HEADINGS = ("way", "error", "nine of ten runs", "of the level", f"error of the {LARGEST} largest")


class SpanAnswer(NamedTuple):
    """How to publish histograms of a stream like this one; `repeat` is the command that gives more exact figures."""

    choice: SpanChoice

    @classmethod
    def to(cls, asked: Asked, tell: Callable[[int, int], None]) -> Self:
        """Try the ways."""
        from eventide.bench import choose_span

        told: dict[str, Any] = {"sensitivity": asked.sensitivity, "tell": tell, "processes": os.cpu_count() or 1}
        return cls(choose_span(asked.counts(), span=asked.histogram_steps, **told, **asked.study()))

    def show(self, repeat: str) -> None:
        """Print everything but the picture."""
        choice = self.choice
        for sentence in (choice.verdict, *choice.reading, "", self._about()):
            click.echo(sentence)
        title = f"Error of one bin of the histogram of the last {choice.span} steps"
        Console().print(text_table(title, HEADINGS, self.rows(), choice.best.label))
        for words, code in self._following(repeat):
            click.echo(f"{words} {code}")
        if not choice.history.made_up:
            click.echo(UNPAID)

    def document(self, repeat: str) -> dict[str, Any]:
        """All figures."""
        choice, history = self.choice, self.choice.history
        return {
            "source": history.source,
            "made_up": history.made_up,
            "warning": None if history.made_up else UNPAID,
            "notes": history.notes,
            "steps": len(history.counts),
            "bins": len(history.bins),
            **{name: getattr(choice, name) for name in (*SETTINGS, *SENTENCES)},
            "best": asdict(choice.best),
            "trials": [asdict(trial) for trial in choice.trials],
            "publish": publishing(choice, choice.best) if choice.useful else None,
            "repeat": repeat,
        }

    def page(self, repeat: str) -> str:
        """The picture, with everything that is printed."""
        choice = self.choice
        warning = MADE_UP if choice.history.made_up else f"{CONFIDENTIAL} {UNPAID}"
        following = [f"{words} {code}" for words, code in self._following(repeat)]
        sentences = [choice.verdict, *choice.reading, self._about(), warning, *following]
        height = 160 + 40 * len(choice.trials)
        return plain_page("Which histogram of the last steps?", sentences, self._chart(), HEADINGS, self.rows(), height)

    def rows(self) -> list[list[str]]:
        """Each way, and in brackets what it is measured against, the best first; below `HEADINGS`."""
        choice = self.choice
        found = [
            (trial.error, trial.label, f"{shown(trial.low)} to {shown(trial.high)}", trial.of_largest)
            for trial in choice.trials
        ]
        found.append((choice.level, "(all zeros)", "", choice.level_of_largest))
        return [
            [label, shown(error), spread, percent(error / choice.level), shown(of_largest)]
            for error, label, spread, of_largest in sorted(found)
        ]

    def _chart(self) -> dict[str, Any]:
        """A bar for each way, with where nine of ten runs lie."""
        trials = self.choice.trials[::-1]
        around = {
            "type": "data",
            "array": [trial.high - trial.error for trial in trials],
            "arrayminus": [trial.error - trial.low for trial in trials],
        }
        bars: dict[str, Any] = {"type": "bar", "orientation": "h", "error_x": around, "marker": {"color": COLOURS[0]}}
        bars |= {"x": [trial.error for trial in trials], "y": [trial.label for trial in trials]}
        axes = {"xaxis": {"title": {"text": "error of a bin"}, "rangemode": "tozero"}, "yaxis": {"automargin": True}}
        return {"data": [bars], "layout": {**axes, "margin": {"t": 30, "r": 30}}}

    def _about(self) -> str:
        choice, (steps, bins) = self.choice, self.choice.history.counts.shape
        notes = "".join(f" {note[0].upper()}{note[1:]}." for note in choice.history.notes)
        return (
            f"Tried on {choice.history.source}: steps {steps:,}, bins {bins:,}, epsilon {choice.epsilon:g}, window "
            f"{choice.window}, runs of each {choice.repetitions}.{notes}"
        )

    def _following(self, repeat: str) -> list[tuple[str, str]]:
        publish = [("Publish:", publishing(self.choice, self.choice.best))]
        return publish * self.choice.useful + [("More exactly:", repeat)]


def publishing(choice: SpanChoice, best: SpanTrial) -> str:
    """The command that publishes with what is recommended."""
    words = ["eventide", "publish", "COUNTS", "--epsilon", f"{choice.epsilon:g}", "--window", str(choice.window)]
    if choice.sensitivity != 1:
        words += ["--sensitivity", str(choice.sensitivity)]
    if best.how == "planned":
        query = f"[[query]] window = {choice.span}, step = {best.parameters.get('step', 1)}"
        return f"{shlex.join([*words, '--queries', 'queries.toml', '--out', 'private.csv'])}  # queries.toml: {query}"
    own = best.parameters | ({"span": choice.span} if best.how == "published" else {})
    words += ["--mechanism", best.mechanism, *written_settings(own)]
    words += [] if best.how == "published" else ["--filter", "none"]
    return shlex.join([*words, "--out", "private.jsonl"])
