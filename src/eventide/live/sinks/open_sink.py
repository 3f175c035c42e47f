"""Which sink a path or an address means.

What cannot be one is refused with a sentence before anything is published.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.live.addresses import is_address
from eventide.live.sinks.appending_file import AppendingFile, AppendingTable
from eventide.live.sinks.base import Sink
from eventide.live.sinks.delta import DeltaSink
from eventide.live.sinks.iceberg import IcebergSink
from eventide.live.sinks.jetstream import JetStreamSink
from eventide.live.sinks.kafka import KafkaSink
from eventide.live.sinks.sqlite_tables import SqliteTables
from eventide.live.sinks.standard_output import StandardOutput
from eventide.live.sinks.webhook import Webhook
from eventide.live.sinks.whole_file import WholeFile
from eventide.releases.files import refuse_path, refuse_read
from eventide.releases.formats import FORMATS
from eventide.releases.level_values import EVENTS, Groups

_ADDRESSES: dict[str, Callable[..., Sink]] = {
    "http": Webhook,
    "https": Webhook,
    "nats": JetStreamSink,
    "kafka": KafkaSink,
}
_TABLES: dict[str, Callable[..., Sink]] = {"iceberg": IcebergSink, ".delta": DeltaSink, ".sqlite": SqliteTables}
ENDINGS = [*FORMATS, *(kind for kind in _TABLES if kind[0] == ".")]  # of paths


def open_sink(
    place: str | Path,
    bins: Sequence[str],
    *,
    layout: str | None = None,
    growing: bool = True,
    starts: bool = False,
    intervals: bool = False,
    groups: Groups | None = None,
    statistics: Sequence[str] = (EVENTS,),
    sources: Sequence[str] = (),
    clients: str | Path | None = None,
) -> Sink:
    """The sink for a path with an ending that we know, for "-" (standard output), or for an address.

    .jsonl, .csv and .parquet are files; .delta is the folder of a Delta table, .sqlite a file with tables for SQL.

    growing: a .jsonl or .csv file gets each step at once, instead of appearing when all is done, and a .parquet file
    keeps what it had. starts: tables tell when each step begins. intervals: wide tables tell low and high; long ones
    and JSON lines always do. groups: those of each level, where releases have levels. statistics: what is published of
    every bin. sources: what is being read, which is never replaced. clients: a file of client settings, for an address;
    the one that EVENTIDE_CLIENTS names where left out.
    """
    text = str(place)
    if (scheme := text.partition("://")[0]) in _ADDRESSES:
        return _ADDRESSES[scheme](text, clients=clients)
    path, ending = Path(text), Path(text).suffix.lower()
    if is_table(text):
        _refuse_for_a_table(text, layout, growing=growing)
        refuse_read(path, [Path(source) for source in sources], "--out")
        table = _TABLES[scheme if is_address(text) else ending]
        return table(text, bins, starts=starts, groups=groups, statistics=statistics)
    if is_address(text):
        raise InputError(
            f"{scheme}:// is no output that eventide knows; give {', '.join(_ADDRESSES)}, iceberg or a path"
        )
    if text != "-":
        refuse_path(path, [Path(source) for source in sources], ENDINGS)
    if layout is not None and (text == "-" or ending == ".jsonl"):
        raise InputError("a layout is for .csv and .parquet; JSON lines hold one object a step, so leave it out")
    if intervals and (text == "-" or ending == ".jsonl"):
        raise InputError(
            "intervals are a choice for .csv and .parquet; JSON lines have low and high where they are known"
        )
    if text == "-":
        return StandardOutput()
    how: dict[str, Any] = {"starts": starts, "groups": groups, "statistics": statistics}
    how["intervals"] = intervals or None  # where it was not asked for, the layout says
    if not growing or ending == ".parquet":
        return WholeFile(path, bins, layout, keeps=growing, **how)
    return AppendingFile(path) if ending == ".jsonl" else AppendingTable(path, bins, layout, **how)


def is_table(place: str) -> bool:
    """Whether a path or an address means a table that grows, rather than a file or a stream of messages."""
    return (place.partition("://")[0] if is_address(place) else Path(place).suffix.lower()) in _TABLES


def _refuse_for_a_table(place: str, layout: str | None, *, growing: bool) -> None:
    if not growing:
        raise InputError(f"--out {place} is a table that grows from run to run; give a store too (--store PATH)")
    if layout == "wide":
        raise InputError(f"--out {place} has a row for each bin, whatever bins there are; leave --layout wide out")
