"""What a source of events promises, whatever it reads from.

A source hands over batches in the order it reads, and says with each how far it has seen: everything that arrived
before `seen_until` has been handed over. Only that closes steps, so no event decides over another.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol, runtime_checkable

from eventide.events.reader import EventReader, Events
from eventide.events.zones import LATEST

Position = dict[str, Any] | None
"""Where a source stands, as plain data that the store keeps; None where it cannot replay or has not begun."""

FOREVER = LATEST
"""What a complete source has seen until, when all of it was handed over."""


class EventBatch(NamedTuple):
    """Some events, where the source stands after them, and how far it has seen then.

    `key` names a batch that a sender may send twice.
    """

    events: Events
    position: Position
    seen_until: int
    key: str | None = None


@runtime_checkable
class EventSource(Protocol):
    """A way in for events."""

    complete: bool
    """Whether everything is there already, so that nothing can be late."""
    replays: bool
    """Whether `open` can go back to a position; if not, open events are kept in the store."""
    records_arrival: bool
    """Whether an event's arrival is known as such, and not only that it lies between two looks at the source."""

    def open(self, position: Position, reader: EventReader) -> None:
        """Get ready to hand over what comes after a position, None for everything, read by `reader`."""

    def poll(self, timeout: float) -> EventBatch | None:
        """The next batch, empty if there is none within so many seconds; None when the source is at its end."""

    def close(self) -> None:
        """Let go of files and connections."""
