"""Messages of a broker as events: one JSON object each; what is none is refused and counted, and stops nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.events.files.lines import json_object
from eventide.events.reader import EventReader, Events
from eventide.events.rows import ParsedRows, unparsed_list


def read_messages(reader: EventReader, messages: Sequence[bytes], arrival: Ints) -> Events:
    """The events of messages, each with the moment at which its broker appended it."""
    rows = [json_object(message) for message in messages]
    good = np.array([row is not None for row in rows], dtype=np.bool_)
    found = _found(rows)
    return reader.read(found.rows, found.unreadable, arrival[good], unparsed_list(rows, _found))


def _found(rows: Sequence[Any]) -> ParsedRows:
    """The objects among them, and how many are none."""
    objects = [row for row in rows if row is not None]
    return ParsedRows(objects, len(rows) - len(objects))
