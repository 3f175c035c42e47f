"""What a publisher has published, for analysts: as frames, as a picture, and what is promised about it.

Made of stored releases, byte for byte, so nothing in it is raw but `operators_only`, which is kept apart: no frame,
picture, card or representation shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, cast
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from eventide.arrays import Bools, Floats
from eventide.errors import InputError, unknown
from eventide.events.levels import Levels
from eventide.events.statistics import SLOTS
from eventide.live.feeds.operators_only import OperatorsOnly
from eventide.live.sinks.base import Sink
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.ledger import WindowLedger
from eventide.releases.labels import label
from eventide.releases.level_values import EVENTS, Groups, Rows, flat, statistics_of
from eventide.releases.lines import ReleaseLine, read_line
from eventide.releases.long_table import LongFrames, long_table


class KeptReleases(Sink):
    """Keeps the stored releases of these bins and groups, those of earlier runs too."""

    name, begins_anew = "a frame", True

    def __init__(self, bins: tuple[str, ...], groups: Groups | None = None) -> None:
        self.bins, self.groups = bins, groups
        self.lines: list[ReleaseLine] = []

    def open(self) -> None:
        """Begin anew."""
        self.lines.clear()

    def send(self, step: int, release: bytes) -> None:
        """Keep a release."""
        self.lines.append(read_line(release))


class Releases(LongFrames):
    """The releases of some steps, as `eventide.publish` gives them.

    Parameters
    ----------
    bins
        The names of the bins.
    lines
        The releases, step after step.
    guarantee
        What is promised about all of them; `str()` of it is one sentence.
    ledger
        What was spent: `left()` at this step, `worst_window()` of all, which is never above epsilon.
    zone
        The time zone in which the starts of steps are shown.
    end
        When the last step ends, as ISO text; None where there is no clock.
    operators_only
        How many events were taken, late, refused, and left out by the limit per person (max_per_step, 1 unless more is
        said), of several statistics also for each; `str()` of it is a sentence. Raw numbers: never publish them. None
        where counts were given.
    levels
        The groups that are published besides, and add up; None where there are none.
    statistics
        What is published of every bin.
    """

    def __init__(
        self,
        bins: tuple[str, ...],
        lines: Sequence[ReleaseLine],
        guarantee: Guarantee,
        ledger: WindowLedger,
        zone: str = "UTC",
        end: str | None = None,
        operators_only: OperatorsOnly | None = None,
        levels: Levels | None = None,
        statistics: Sequence[str] = (EVENTS,),
    ) -> None:
        groups = None if levels is None else levels.groups
        if not any(line.statistics for line in lines):
            statistics = statistics_of(statistics[0], windows=any(line.window_values is not None for line in lines))
        self.statistics = tuple(statistics)
        self._rows = Rows.of(bins, groups, statistics)
        self._of_steps = Rows.of(bins, groups).names  # the rows that are no histograms of sliding windows
        lines = [flat(line, self._rows) for line in lines]
        self.levels = levels
        self.bins, self.guarantee, self.ledger, self.operators_only = bins, guarantee, ledger, operators_only
        self._steps = np.array([line.step for line in lines], dtype=np.int64)
        self._fresh = np.array([line.fresh for line in lines], dtype=np.bool_)
        self._values = self._stacked(lines, "values")
        self._scale = self._stacked(lines, "scale")
        known = any(line.low is not None for line in lines)
        self._low = self._stacked(lines, "low") if known else None
        self._high = self._stacked(lines, "high") if known else None
        self._zone = zone
        has_clock = end is not None and all(line.start for line in lines)
        self._starts = [self._moment(cast(str, line.start)) for line in lines] if has_clock else None
        self._end = self._moment(cast(str, end)) if has_clock else None

    def __len__(self) -> int:
        """How many steps were released."""
        return len(self._steps)

    def to_arrow(self) -> pa.Table:
        """The releases as an Arrow table, a row for each step and bin, and where there are levels for each group.

        Where there are histograms of sliding windows, they are rows of another statistic.
        """
        return long_table(
            self._rows,
            self._steps,
            self._values,
            self._fresh,
            self._scale,
            low=self._low,
            high=self._high,
            starts=self._starts,
            zone=self._zone,
        )

    def plot(self, bins: Sequence[str | int] | None = None, statistic: str | None = None) -> Any:
        """The released series over time as a matplotlib figure, with a band from low to high where that is known.

        Parameters
        ----------
        bins
            The names of those to draw; left out, the few with the largest releases.
        statistic
            Which of several statistics to draw, by its name in the column `statistic`; left out, the first. What is of
            a slot of several steps is drawn over all of them.
        """
        from eventide.display.drawings import Panel, shortened
        from eventide.display.images import draw
        from eventide.mechanisms.pictures import places, released

        if not len(self):
            raise InputError("nothing was released, so there is nothing to draw; publish at least one step")
        chosen = self.statistics[0] if statistic is None else statistic
        names, columns = self._rows_of(chosen)
        values = self._values[:, columns]
        known: Bools = np.ones(len(self), np.bool_)
        if chosen.startswith(SLOTS):  # a number at the last step of a slot, and none at the others
            known = np.asarray((~np.isnan(values)).any(axis=1))
        if not known.any():
            raise InputError(f"no slot of {chosen} is over, so there is nothing to draw; publish until its end")
        edges: list[Any] = [*self._steps.tolist(), int(self._steps[-1]) + 1]
        if self._starts is not None:
            edges = [*self._starts, self._end]
        edges = [edges[0], *(edges[step + 1] for step in np.flatnonzero(known))]
        low, high = (None if end is None else end[known, columns] for end in (self._low, self._high))
        plain = self.statistics == (EVENTS,)  # which may be counts that were given
        axis, panels = "count" if plain else label(chosen), []
        for place in places(names, bins, np.nan_to_num(values)):
            curve = released(edges, values[known], low, high, place)
            panels.append(Panel(shortened(names[place]), "", axis, [curve], y_log=False))
        panels[-1] = panels[-1]._replace(x_title="step" if self._starts is None else "")
        return draw(self._title() if plain else f"{axis}: {self._title()}", panels, across=1, height=2.0)

    def __repr__(self) -> str:
        return f"Releases(steps={len(self)}, bins={len(self.bins)}, epsilon={self.guarantee.epsilon:g})"

    def _repr_html_(self) -> str:
        from eventide.display.cards import card
        from eventide.mechanisms.pictures import bin_table
        from eventide.privacy.pictures import ledger_facts

        facts = {"steps": self._title(), "bins": f"{len(self.bins):,}", **ledger_facts(self.ledger)}
        notes, table = [str(self.guarantee)], None
        if len(self):
            last = {"last value": self._values, "low": self._low, "high": self._high}
            names = self._of_steps
            cells = {name: None if a is None else a[-1, : len(names)] for name, a in last.items()}
            table, more = bin_table(names, cells)
            notes = [*more, *notes]
        return card("Releases", facts, table, notes)

    def _rows_of(self, statistic: str) -> tuple[tuple[str, ...], slice]:
        """The names of the rows of a statistic, and where they stand."""
        if statistic not in self.statistics:
            raise InputError(unknown("statistic", statistic, self.statistics))
        first, place = len(self._of_steps), self.statistics.index(statistic)
        if place == 0:
            return self._of_steps, slice(first)
        begin = first + (place - 1) * len(self.bins)
        return self.bins, slice(begin, begin + len(self.bins))

    def _title(self) -> str:
        steps = f"{len(self):,} {'step' if len(self) == 1 else 'steps'}"
        if self._starts is None or self._end is None or not len(self):
            return steps
        return f"{steps} from {self._starts[0]:%Y-%m-%d %H:%M} to {self._end:%Y-%m-%d %H:%M} ({self._zone})"

    def _moment(self, iso: str) -> datetime:
        return datetime.fromisoformat(iso).astimezone(ZoneInfo(self._zone))

    def _stacked(self, lines: Sequence[ReleaseLine], name: str) -> Floats:
        unknown = np.full(len(self._rows.names), np.nan)
        rows = [unknown if (row := getattr(line, name)) is None else row for line in lines]
        return np.stack(rows) if rows else np.zeros((0, len(self._rows.names)))
