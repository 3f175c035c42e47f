"""What a store asks of a database: rows, transactions, one writer's place, and to say in one sentence what is wrong.

Queries are plain SQL with ? where a value goes. A transaction is all or nothing, and durable when it has ended.
"""

from __future__ import annotations

import abc
import errno
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from eventide.errors import StoreError


class Unavailable(StoreError):
    """The database cannot be used now, and what was asked of it may be asked again: its disk is full, it is away.

    Parameters
    ----------
    what
        What is wrong.
    otherwise
        What to do, for somebody who does not wait until it has passed.
    """

    def __init__(self, what: str, otherwise: str) -> None:
        super().__init__(f"{what}; {otherwise}")
        self.what = what


class Unreachable(StoreError):
    """The server of a store or an account does not answer from here, or does not let us in."""


_PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EMFILE, errno.ENFILE)


def unusable(what: str, problem: OSError, otherwise: str) -> StoreError:
    """The refusal that an error of the operating system is: one that may pass by itself, or not."""
    sentence = f"{what}: {problem.strerror}"
    if problem.errno in _PASSING:
        return Unavailable(sentence, otherwise)
    return StoreError(f"{sentence}; {otherwise}")


class ConnectionLost(Exception):
    """The database went away in the middle of a transaction: whether that happened must be read, not guessed."""


class WriterPlace:
    """The place of the only writer of a store, held until `release`.

    This one is the session of a server: it says by itself who is here, ends by itself, and nothing outside the database
    knows how far the store came.
    """

    def settle(self, store: str, last_step: int, free_from: int) -> None:
        """Say who is here now, and remember what `note` does."""

    def reached(self, store: str) -> int:
        """The last step that the store is known, apart from itself, to have committed; -1 where nothing is known."""
        return -1

    def free_from(self, store: str) -> int:
        """The first step known to share no window with any that the store has committed; 0 where nothing is known."""
        return 0

    def learn(self, store: str, note: Mapping[str, Any]) -> None:
        """Take over what was noted of the store elsewhere, where it says more."""

    def knows(self, store: str) -> bool:
        """Whether anything is known, apart from the store itself, of how far it came."""
        return False

    def note(self, store: str, step: int, free_from: int) -> None:
        """Remember that the store has committed a step, and which one is the first that shares no window with it."""

    def release(self) -> None:
        """Let the next writer in."""


class Database(abc.ABC):
    """A connection to the database of one store; `turn` is held by whichever thread uses it."""

    place: str
    """How messages name the store."""

    version: int
    """Of the tables; a reader may find an older one than a writer, who brings the store to the newest."""

    def __init__(self) -> None:
        self.turn = threading.RLock()
        self.gives_up: Callable[[], bool] = lambda: False  # whether a server that went away is waited for no longer
        self.wait_until_back: Callable[[], None] = lambda: self.come_back()  # a writer has more patience

    @abc.abstractmethod
    def all(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        """All rows of a query."""

    @abc.abstractmethod
    def has_table(self, name: str) -> bool:
        """Whether there is a table that not every store has."""

    @abc.abstractmethod
    def make_intrusions(self) -> None:
        """Make the table of announced intrusions, inside a transaction, where there is none."""

    def listen_for_intrusions(self) -> None:  # noqa: B027 - a file is looked at, and nobody counts that
        """Have announcements told to this session."""

    def tell_of_intrusion(self) -> None:  # noqa: B027
        """Tell the sessions that listen of an announcement, inside its transaction."""

    def is_told_of_intrusion(self) -> bool:
        """Whether to look for an announcement now: always, or since the last time somebody told of one.

        Asked before each event, so nothing may be asked of a server: it counts its statements, and so the events.
        """
        return True

    @abc.abstractmethod
    def change(self, query: str, *values: Any) -> int:
        """Do something inside a transaction; give how many rows it touched."""

    @abc.abstractmethod
    def change_each(self, query: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Do something for each row, inside a transaction."""

    @abc.abstractmethod
    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing, durable at the end; no other writer's transaction runs meanwhile."""

    @abc.abstractmethod
    def writer_place(self, *, take_over: bool) -> WriterPlace:
        """The writer's place, or a refusal if somebody has it, unless it is to be taken over."""

    @abc.abstractmethod
    def check_structure(self) -> str | None:
        """What is wrong with the database itself, if it can tell."""

    def come_back(self) -> None:  # noqa: B027 - a file does not go away
        """Connect again after the connection was lost, or refuse after a while."""

    @property
    def is_lost(self) -> bool:
        """Whether the connection was lost, as far as that shows without asking."""
        return False

    def make_room(self) -> None:  # noqa: B027 - a server sees to it
        """Called before something that failed is tried again: give back what is taken up and not needed."""

    def move_in(self, place: WriterPlace, *, after_restore: bool) -> None:  # noqa: B027 - a server tells no copies
        """Refuse a copy of the store, or remember where it is; inside a transaction of its writer."""

    def check_in_place(self) -> None:  # noqa: B027 - a transaction of a server is where its name says
        """Refuse if the store's name does not mean any more what was just written to."""

    def show_epoch(self, *, levels: bool) -> None:  # noqa: B027 - a file has nothing that shows its rows
        """Let whatever shows the rows to readers show an epoch, too, that has names for spare bins, or levels."""

    def compressed(self, data: bytes) -> bytes:
        """Bytes as they are stored; a server compresses what is long by itself."""
        return data

    def expanded(self, data: bytes) -> bytes:
        """What `compressed` was given."""
        return data

    def forget(self, erased: Collection[str]) -> None:  # noqa: B027
        """Called after each commit of a step or of events: what these tables have erased must not be found for long."""

    @abc.abstractmethod
    def close(self) -> None:
        """Let go of the connection."""
