"""What time it is for the curator, in microseconds UTC, and what is certain of it.

A step that was sealed stays sealed, so a clock that is wrong for a moment must not seal the future. The machine has two
clocks: one that people and programs set, and one that only runs on (also while the machine sleeps, where it can tell).
While they agree, the first one is told. When it jumps, nobody can say which is right: steps wait, and arrivals are
stamped as if it had not jumped. The doubt ends when the jump is taken back, or when the clock has run evenly for some
minutes since: then somebody meant it. What was certain never goes back: a clock that was set back for good stands still
until it is there again. A restart believes the clock as it is. All this is decided by clocks alone.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple, Protocol

log = logging.getLogger("eventide.live")

SECOND = 1_000_000
JUMP = 2 * SECOND  # between two looks; clocks that are corrected little by little move by less
BELIEVED_AFTER = 300 * SECOND


class Clock(Protocol):
    """Anything that tells the time and can wait."""

    def now(self) -> int:
        """Microseconds UTC, never less than what was certain before: when something arrives."""

    def certain(self) -> int:
        """The moment that has passed beyond doubt, never less than before: steps that end until then are sealed."""

    def wait(self, seconds: float) -> None:
        """Let time pass."""


def steady_nanoseconds() -> int:
    """A clock that nobody sets, and that runs on while the machine sleeps if there is one."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class _Doubt(NamedTuple):
    """How far the clock that can be set is from the steady one since it has jumped, and when that was seen."""

    offset: int
    since: int


class SystemClock:
    """The machine's clock, without its jumps; `wall` and `steady` give nanoseconds."""

    def __init__(self, wall: Callable[[], int] = time.time_ns, steady: Callable[[], int] = steady_nanoseconds) -> None:
        self._wall, self._steady = wall, steady
        self._lock = threading.Lock()
        self._certain = wall() // 1_000
        self._offset = self._certain - steady() // 1_000  # of the two clocks, as long as they agree
        self._doubt: _Doubt | None = None

    def now(self) -> int:
        """Microseconds UTC, as if the clock had not jumped where it did and that is in doubt."""
        with self._lock:
            return max(self._look(), self._certain)

    def certain(self) -> int:
        """The same, but it stands still while the clocks of the machine disagree."""
        with self._lock:
            self._look()
            return self._certain

    def wait(self, seconds: float) -> None:
        """Sleep."""
        time.sleep(seconds)

    def _look(self) -> int:
        """Compare the clocks and give the time by the one that nobody sets."""
        steady = self._steady() // 1_000
        offset = self._wall() // 1_000 - steady
        if abs(offset - self._offset) <= JUMP:
            self._agree(offset)
        elif self._doubt is None or abs(offset - self._doubt.offset) > JUMP:
            self._disagree(offset, steady)
        elif steady - self._doubt.since >= BELIEVED_AFTER:
            self._believe(offset, steady)
        if self._doubt is None:
            self._certain = max(self._certain, steady + self._offset)
        return steady + self._offset

    def _agree(self, offset: int) -> None:
        if self._doubt is not None:
            log.warning("the machine's clock is back where it was; steps are released again")
        self._offset, self._doubt = offset, None

    def _disagree(self, offset: int, steady: int) -> None:
        if self._doubt is None:
            log.warning(
                "the machine's clock was set %s by %d seconds; no step is released until it is set right again or has "
                "run evenly for %d minutes; if it is right now, restart to go on at once",
                "forward" if offset > self._offset else "back",
                abs(offset - self._offset) // SECOND,
                BELIEVED_AFTER // (60 * SECOND),
            )
        self._doubt = _Doubt(offset, steady)

    def _believe(self, offset: int, steady: int) -> None:
        self._offset, self._doubt = offset, None
        if steady + offset < self._certain:
            log.warning(
                "the machine's clock has run evenly since it was set back, and is trusted again; steps until %s are "
                "released already, so their events are late and no step is released until then",
                datetime.fromtimestamp(self._certain // SECOND, UTC).isoformat(),
            )
        else:
            log.warning("the machine's clock has run evenly since it was set forward, and is trusted again")


class ManualClock:
    """A clock for tests: it shows what it is set to, and waiting moves it on."""

    def __init__(self, now: int = 0) -> None:
        self._now = now

    def now(self) -> int:
        """What it was set to."""
        return self._now

    def certain(self) -> int:
        """The same."""
        return self._now

    def set(self, now: int) -> None:
        """Show another time; an earlier one is ignored."""
        self._now = max(self._now, now)

    def wait(self, seconds: float) -> None:
        """Move on at once."""
        self._now += round(seconds * 1_000_000)
