"""What a sink promises to whoever delivers to it.

It takes stored releases in order, knows a repeated one by its step, and says what failed for now and what for good.
"""

from __future__ import annotations

import abc
import os
from collections.abc import Sequence
from pathlib import Path

from eventide.errors import InputError
from eventide.releases.level_values import Groups


class Sink(abc.ABC):
    """Takes stored releases in order of steps; the step is the key by which a repeated one is known.

    What fails for now raises `OSError` and is tried again later; what can never succeed raises an error of eventide.
    `begins_anew` is True where each run hands over all stored releases, from the first one on. `bins` are those whose
    releases it shows, in its columns; None where it shows any. `groups` are those of each level that it shows besides.
    `steps_at_a_time` is how many it takes in one go where so many wait for it. `leaves_out_windows` is True where it
    does not show the histograms of sliding windows that releases have.
    """

    name: str
    begins_anew = False
    steps_at_a_time = 1
    bins: tuple[str, ...] | None = None
    groups: Groups | None = None
    leaves_out_windows = False

    def check(self) -> None:  # noqa: B027 - what stands behind an address is seen when it is opened
        """Refuse what `open` would refuse, as far as it can be told without making or changing anything.

        After it a sink that can say what it has says so, as after `open`.
        """

    def open(self) -> None:  # noqa: B027 - most have nothing to do
        """Get ready; asked when the store is held, so that nobody else writes to the same place.

        Asked once more, after a `close`, where the store's server went away meanwhile.
        """

    def last_step(self) -> int | None:
        """The last step it surely has, -1 before the first; None where it cannot say and the store must know."""
        return None

    def holds(self, release: bytes) -> bool:
        """Whether this is the release it has of its last step."""
        return True

    @abc.abstractmethod
    def send(self, step: int, release: bytes) -> None:
        """Take the release of a step, as the store holds it."""

    def send_all(self, releases: Sequence[tuple[int, bytes]]) -> None:
        """Take the releases of up to `steps_at_a_time` steps; where that fails, all of them are sent again."""
        for step, release in releases:
            self.send(step, release)

    def flush(self) -> None:  # noqa: B027
        """Make durable what was taken."""

    def finish(self) -> None:
        """All that will be published was sent: show it."""
        self.flush()

    def close(self) -> None:  # noqa: B027
        """Let go; what was not finished does not appear."""


def refuse_unwritable(path: Path, *, in_place: bool) -> None:
    """Refuse a file that may not be changed in place, or else a folder in which it cannot be made; nothing is tried."""
    if not os.path.isdir(path.parent) or not os.access(path if in_place else path.parent, os.W_OK):  # noqa: PTH112
        raise InputError(f"cannot write {path}; choose a folder that exists and may be written to")


def name_of_file(path: Path) -> str:
    """The name of a file as a sink: one for all ways to write its path, and text whatever bytes are in it."""
    return "file " + os.fsencode(os.path.realpath(path)).decode(errors="backslashreplace")
