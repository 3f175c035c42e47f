"""Which source a word means: a path, - for standard input, or a broker's address.

Anything else is refused, with the endings that are known.
"""

from __future__ import annotations

import os
from pathlib import Path

from eventide.errors import InputError
from eventide.events.clock import Clock
from eventide.events.files.lines import CSV_ENDINGS, JSON_ENDINGS, is_lines
from eventide.events.files.open_file import open_file
from eventide.live.addresses import is_address
from eventide.live.sources.base import EventSource
from eventide.live.sources.complete_file import CompleteFile
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka
from eventide.live.sources.standard_input import StandardInput


def open_source(
    source: str | Path, clock: Clock | None = None, *, follow: bool = False, clients: str | Path | None = None
) -> EventSource:
    """Open a source of events; with `follow` a file is read on as it grows, and `clock` tells when its lines arrive.

    clients: a file of client settings, for an address; the one that EVENTIDE_CLIENTS names where left out.
    """
    if source == "-":
        return StandardInput(clock=clock)
    scheme = str(source).partition("://")[0]
    if scheme == "nats":
        return JetStream(str(source), clients=clients)
    if scheme == "kafka":
        return Kafka(str(source), clock, clients=clients)
    if is_address(source):
        raise InputError(f"{scheme}:// is no source that eventide knows; give nats://, kafka:// or the path of a file")
    path = Path(source)
    if not os.path.isfile(path):  # noqa: PTH113 - False also where it cannot be looked at
        raise InputError(f"{path} is not a file; check the path")
    if follow:
        if not is_lines(path.name) or path.suffix.lower() == ".gz":
            raise InputError(f"{path.name} cannot be followed; only {', '.join(CSV_ENDINGS + JSON_ENDINGS)} grow")
        return GrowingFile(path, clock)
    return CompleteFile(open_file(path))
