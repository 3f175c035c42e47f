"""Messages of a broker as events: one JSON object each; what is none is refused and counted, and stops nothing.

Imports `event_reader`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.live.event_reader import EventReader, Events


def read_messages(reader: EventReader, messages: Sequence[bytes], arrival: Ints) -> Events:
    """The events of messages, each with the moment at which its broker appended it."""
    rows = [_object(message) for message in messages]
    good = np.array([row is not None for row in rows], dtype=np.bool_)
    return reader.read([row for row in rows if row is not None], int(np.count_nonzero(~good)), arrival[good])


def _object(message: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(message)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
