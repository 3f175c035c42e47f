"""What `eventide choose` shows of caps: which one to take, and for each the error from noise and from what is left out.

On the terminal, as a document, and as a picture on one HTML page. All of it comes from true events, and says so.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import asdict
from typing import Any, NamedTuple, Self

import click
from rich.console import Console

from eventide.bench.choose.cap_choice import CapChoice, CapTrial
from eventide.bench.choose.choice import UNPAID
from eventide.cli.choose_asked import Asked
from eventide.cli.choose_result import MADE_UP, text_table
from eventide.cli.html_files import plain_page
from eventide.cli.settings import parse_settings, written_settings
from eventide.display.drawings import COLOURS, percent, shown

SETTINGS = ("epsilon", "window", "max_per_step", "repetitions", "seed", "level", "useful", "verdict", "reading")
CONFIDENTIAL = "This page shows figures made from true events: it is as confidential as the history."
HEIGHT = 460
WITHOUT = "no cap"


class CapAnswer(NamedTuple):
    """Which cap for people like these; `repeat` is the command that gives more exact figures."""

    choice: CapChoice
    asked: Asked

    @classmethod
    def to(cls, asked: Asked, tell: Callable[[int, int], None]) -> Self:
        """Try the caps."""
        from eventide.bench import choose_cap

        most, study = asked.sensitivity, asked.study()
        return cls(choose_cap(asked.events(), caps=asked.tried_caps(), max_per_step=most, tell=tell, **study), asked)

    def show(self, repeat: str) -> None:
        """Print everything but the picture."""
        choice = self.choice
        for sentence in (choice.verdict, *choice.reading, "", self._about()):
            click.echo(sentence)
        table = text_table("Error of one bin at one step", self.headings, self.rows(), self._name(choice.best.cap))
        Console().print(table)
        for words, code in self._following(repeat):
            click.echo(f"{words} {code}")
        if not choice.people.made_up:
            click.echo(UNPAID)

    def document(self, repeat: str) -> dict[str, Any]:
        """All figures."""
        choice = self.choice
        return {
            "source": choice.people.source,
            "made_up": choice.people.made_up,
            "warning": None if choice.people.made_up else UNPAID,
            "notes": choice.people.notes,
            "steps": choice.people.steps,
            "bins": len(choice.people.bins),
            **{name: getattr(choice, name) for name in SETTINGS},
            "best": self._described(choice.best),
            "without": self._described(choice.without),
            "trials": [self._described(trial) for trial in choice.trials],
            "useless": [choice.written(cap) for cap in choice.useless],
            "publish": self._publishing() if choice.useful else None,
            "repeat": repeat,
        }

    def page(self, repeat: str) -> str:
        """The picture, with everything that is printed."""
        choice = self.choice
        warning = MADE_UP if choice.people.made_up else f"{CONFIDENTIAL} {UNPAID}"
        following = [f"{words} {code}" for words, code in self._following(repeat)]
        sentences = [choice.verdict, *choice.reading, self._about(), warning, *following]
        return plain_page("Which cap?", sentences, self._chart(), self.headings, self.rows(), HEIGHT)

    @property
    def headings(self) -> list[str]:
        """Above `rows`."""
        names = dict.fromkeys(trial.mechanism for trial in self.choice.trials)
        of_each = [heading for name in names for heading in (f"noise of {name}", f"{name} in all")]
        return ["cap", "events left out", "error from what is left out", *of_each]

    def rows(self) -> list[list[str]]:
        """For each cap what is left out, and the errors of each mechanism behind it."""
        found: dict[str, list[str]] = {}
        for trial in self.choice.trials:
            row = found.setdefault(self._name(trial.cap), [percent(trial.missing), shown(trial.left_out)])
            row += [shown(trial.noise), shown(trial.error)]
        empty = [""] * (len(self.headings) - 2)
        return [[name, *row] for name, row in found.items()] + [
            [self._name(cap), "useless", *empty] for cap in self.choice.useless
        ]

    def _chart(self) -> dict[str, Any]:
        """Lines over the caps: what is left out, and of each mechanism its noise and all together."""
        choice, lines = self.choice, []
        for number, name in enumerate(dict.fromkeys(trial.mechanism for trial in choice.trials)):
            own = [trial for trial in choice.trials if trial.mechanism == name and trial.cap is not None]
            caps, colour = [self._name(trial.cap) for trial in own], COLOURS[number]
            if not number:
                lines.append(_line("what is left out", caps, [trial.left_out for trial in own], "#8a96a3", "dot"))
            lines.append(_line(f"noise of {name}", caps, [trial.noise for trial in own], colour, "dot"))
            lines.append(_line(f"{name} in all", caps, [trial.error for trial in own], colour, "solid"))
        best = choice.without
        lines.append(_line(f"{best.mechanism} without a cap", caps, [best.error] * len(caps), "#b3471d", "dash"))
        axes = {
            "xaxis": {"title": {"text": "cap"}, "type": "category"},
            "yaxis": {"title": {"text": "error of a released count"}, "rangemode": "tozero"},
        }
        return {"data": lines, "layout": {**axes, "hovermode": "x unified", "margin": {"t": 30, "r": 30}}}

    def _about(self) -> str:
        people, choice = self.choice.people, self.choice
        notes = "".join(f" {note[0].upper()}{note[1:]}." for note in people.notes)
        return (
            f"Tried on {people.source}: steps {people.steps:,}, bins {len(people.bins):,}, epsilon {choice.epsilon:g}, "
            f"window {choice.window}, runs of each {choice.repetitions}. Errors are against the counts before the cap, "
            f"with at most {choice.max_per_step} of a person in a step.{notes}"
        )

    def _name(self, cap: Any) -> str:
        return WITHOUT if cap is None else self.choice.written(cap)

    def _described(self, trial: CapTrial) -> dict[str, Any]:
        return asdict(trial) | {"cap": None if trial.cap is None else self.choice.written(trial.cap)}

    def _following(self, repeat: str) -> list[tuple[str, str]]:
        return [("Publish:", self._publishing())] * self.choice.useful + [("More exactly:", repeat)]

    def _publishing(self) -> str:
        """The command that publishes with what is recommended."""
        choice, asked, best = self.choice, self.asked, self.choice.best
        words = ["eventide", "publish", "EVENTS", "--user", asked.user or "USER", "--step", choice.people.length]
        words += ["--time", asked.time] if asked.time else []
        words += ["--bin", asked.bin or "BIN", "--bins", "BINS", "--epsilon", f"{choice.epsilon:g}"]
        words += ["--window", asked.window or str(choice.window)]
        words += ["--max-per-step", str(choice.max_per_step)] if choice.max_per_step > 1 else []
        words += [] if best.cap is None else ["--cap", choice.written(best.cap)]
        words += ["--mechanism", best.mechanism, *written_settings(parse_settings(asked.settings))]
        return shlex.join([*words, "--out", "private.csv"])


def _line(name: str, x: list[str], y: list[float], colour: str, dash: str) -> dict[str, Any]:
    line = {"color": colour, "dash": dash, "width": 3 if dash == "solid" else 2}
    return {"type": "scatter", "mode": "lines+markers", "name": name, "x": x, "y": y, "line": line}
