"""Which source a word means: a file, a folder, a pattern, - for standard input, or a broker's address.

Anything else is refused, with the endings that are known.
"""

from __future__ import annotations

import os
from pathlib import Path

from eventide.errors import InputError
from eventide.events.clock import Clock
from eventide.events.files.lines import CSV_ENDINGS, JSON_ENDINGS, is_lines
from eventide.events.files.members import Paths, find_members
from eventide.live.addresses import is_address
from eventide.live.sources.base import EventSource
from eventide.live.sources.complete_files import CompleteFiles
from eventide.live.sources.growing_file import GrowingFile
from eventide.live.sources.jetstream import JetStream
from eventide.live.sources.kafka import Kafka
from eventide.live.sources.line_by_line import FileLines, PipeLines
from eventide.live.sources.standard_input import StandardInput


def open_source(
    source: Paths,
    clock: Clock | None = None,
    *,
    follow: bool = False,
    continue_with: str | Path | None = None,
    clients: str | Path | None = None,
    one_by_one: bool = False,
) -> EventSource:
    """Open a source of events: several files are read as if they were one.

    With `follow` a file is read on as it grows and is rotated, and `clock` tells when its lines arrive; `continue_with`
    is where to begin if the file that was read before is not to be found. clients: a file of client settings, for an
    address; the one that EVENTIDE_CLIENTS names where left out. one_by_one: read nothing ahead, and keep no position;
    what cannot do that is opened all the same, and refused by whoever needs it.
    """
    if continue_with is not None and not follow:
        raise InputError("--continue-with names a file of a log that is followed; give --follow as well")
    if not isinstance(source, str | Path) and any(place == "-" or is_address(place) for place in source):
        raise InputError("of several sources each must be a file or folder; an address or - stands alone")
    if source == "-":
        return PipeLines(clock=clock) if one_by_one else StandardInput(clock=clock)
    scheme = str(source).partition("://")[0]
    if scheme == "nats":
        return JetStream(str(source), clients=clients, one_by_one=one_by_one)
    if scheme == "kafka":
        return Kafka(str(source), clock, clients=clients, one_by_one=one_by_one)
    if isinstance(source, str) and is_address(source):
        raise InputError(f"{scheme}:// is no source that eventide knows; give nats://, kafka:// or the path of a file")
    if not follow:
        return CompleteFiles(find_members(source))
    path = _growing(source)
    if one_by_one:
        if continue_with is not None:
            raise InputError("--continue-with is for positions, and pan_private keeps none; leave it out")
        return FileLines(path, clock)
    return GrowingFile(path, clock, continue_with=None if continue_with is None else Path(continue_with))


def _growing(source: Paths) -> Path:
    if not isinstance(source, str | Path) or os.path.isdir(source) or not os.path.isdir(Path(source).parent):  # noqa: PTH112
        raise InputError(f"{source} is not a file; only one file can be followed, so name it")
    path = Path(source)
    if not is_lines(path.name) or path.suffix.lower() == ".gz":
        raise InputError(f"{path.name} cannot be followed; only {', '.join(CSV_ENDINGS + JSON_ENDINGS)} grow")
    return path
