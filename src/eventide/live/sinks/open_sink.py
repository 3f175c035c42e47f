"""Which sink a path or an address means.

What cannot be one is refused with a sentence before anything is published.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from eventide.errors import InputError
from eventide.live.sinks.appending_file import AppendingFile, AppendingTable
from eventide.live.sinks.base import Sink
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sinks.standard_output import StandardOutput
from eventide.live.sinks.webhook import Webhook
from eventide.live.sinks.whole_file import WholeFile
from eventide.releases.formats import FORMATS

_ADDRESSES: dict[str, Callable[[str], Sink]] = {
    "http": Webhook,
    "https": Webhook,
    "nats": JetStreamSink,
    "kafka": KafkaSink,
}


def open_sink(
    place: str | Path,
    bins: Sequence[str],
    *,
    layout: str | None = None,
    growing: bool = True,
    starts: bool = False,
    source: str | None = None,
) -> Sink:
    """The sink for a path ending in .jsonl, .csv or .parquet, for "-" (standard output), or for an address.

    growing: a .jsonl or .csv file gets each step at once, instead of appearing when all is done, and a .parquet file
    keeps what it had. starts: tables tell when each step begins. source: what is being read, which is never replaced.
    """
    text = str(place)
    if (scheme := text.partition("://")[0]) in _ADDRESSES:
        return _ADDRESSES[scheme](text)
    ending = Path(text).suffix.lower()
    if text != "-" and ending not in FORMATS:
        raise InputError(f"--out {text} ends in none of {', '.join(FORMATS)}; choose one of them")
    if layout is not None and (text == "-" or ending == ".jsonl"):
        raise InputError("a layout is for .csv and .parquet; JSON lines hold one object a step, so leave it out")
    if text == "-":
        return StandardOutput()
    if os.path.isdir(text):  # noqa: PTH112 - False also where it cannot be looked at
        raise InputError(f"--out {text} is a folder; give the name of a file")
    if source and all(map(os.path.exists, (text, source))) and os.path.samefile(text, source):  # noqa: PTH121
        raise InputError(f"--out {text} is the file that is read; choose another name")
    if not growing or ending == ".parquet":
        return WholeFile(text, bins, layout, starts=starts, keeps=growing)
    return AppendingFile(text) if ending == ".jsonl" else AppendingTable(text, bins, layout, starts=starts)
