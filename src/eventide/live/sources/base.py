"""What a source of events promises, whatever it reads from.

A source hands over batches in the order it reads, and says with each how far it has seen: everything that arrived
before `seen_until` has been handed over. Only that closes steps, so no event decides over another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, runtime_checkable

from eventide.events.zones import LATEST

if TYPE_CHECKING:  # stores know positions, and need neither Arrow nor compiled code to be read
    from eventide.events.reader import EventReader, Events

Position = dict[str, Any] | None
"""Where a source stands, as plain data that the store keeps; None where it cannot replay or has not begun."""

FOREVER = LATEST
"""What a complete source has seen until, when all of it was handed over."""


class ReadAgain(Exception):
    """A source lost its way: it has to be opened again, at the position of the last step that was committed."""


class EventBatch(NamedTuple):
    """Some events, where the source stands after them, and how far it has seen then.

    Parameters
    ----------
    events
        What `EventReader.read` made of some rows.
    position
        Where to go on after them, as plain data; None where the source cannot go back.
    seen_until
        Everything that arrived before this moment has been handed over; in microseconds since 1970, UTC.
    key
        Names a batch that a sender may send twice.
    """

    events: Events
    position: Position
    seen_until: int
    key: str | None = None

    @classmethod
    def last(cls, events: Events, position: Position = None) -> Self:
        """The last batch of a complete source: with it everything was handed over.

        Parameters
        ----------
        events, position
            As in any batch.
        """
        return cls(events, position, FOREVER)


@runtime_checkable
class EventSource(Protocol):
    """A way in for events. (Sources of noise are `eventide.noise.Source`.)

    Attributes
    ----------
    complete
        Whether everything is there already, so that nothing can be late.
    replays
        Whether `open` can go back to a position; if not, open events are kept in the store.
    records_arrival
        Whether an event's arrival is known as such, and not only that it lies between two looks at the source.
    """

    complete: bool
    replays: bool
    records_arrival: bool

    def open(self, position: Position, reader: EventReader) -> None:
        """Get ready to hand over what comes after a position, read by `reader`.

        Parameters
        ----------
        position
            That of the last batch whose steps are committed; None for everything.
        reader
            Makes events of rows.
        """

    def poll(self, timeout: float) -> EventBatch | None:
        """The next batch; None when the source is at its end.

        Parameters
        ----------
        timeout
            So many seconds it may wait; then the batch is empty.
        """

    def close(self) -> None:
        """Let go of files and connections."""


@runtime_checkable
class OnlyFromNow(Protocol):
    """A source whose events arrive when they are read, as those of a pipe: what is older than that comes too late."""

    def first_arrival(self) -> int:
        """The moment before which no event arrives."""
