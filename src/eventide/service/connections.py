"""How many connections there are, of all clients and of each address, and when that is too many.

Whoever has too many is turned away at the door, before a byte is read. Above the limit of all clients a connection is
still read, so that a health check is answered; every other request is refused.
"""

from __future__ import annotations

from collections import Counter

from eventide.service.config.settings import Limits

SPARE = 100  # connections above the limit that are read, in which a health check may come


class Connections:
    """Counts the connections of one port."""

    def __init__(self, most: int, of_one_address: int) -> None:
        self._most, self._of_one_address = most, of_one_address
        self._open: Counter[str] = Counter()

    @classmethod
    def within(cls, limits: Limits) -> Connections:
        """Those of the port that everybody uses."""
        return cls(limits.connections, limits.connections_per_address or -(-limits.connections // 2))

    def enter(self, address: str) -> bool:
        """Count a connection from this address, unless there are too many; each is to `leave` in the end."""
        if self._open.total() >= self._most + SPARE or self._open[address] >= self._of_one_address:
            return False
        self._open[address] += 1
        return True

    def leave(self, address: str) -> None:
        """Count one less."""
        self._open[address] -= 1
        if not self._open[address]:
            del self._open[address]

    @property
    def crowded(self) -> bool:
        """Whether there are more than may be answered."""
        return self._open.total() > self._most
