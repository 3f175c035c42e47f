"""What is logged, on standard error: warnings and notices as sentences, or with `--log json` every step as JSON.

The fields are the publisher's, which hold no raw value; times are whole seconds, since finer ones would tell how long
the counting took.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

from eventide.live.notices import NOTICES


@contextlib.contextmanager
def logging_to_stderr(form: str | None) -> Iterator[None]:
    """Show what eventide logs while the block runs; `form` is "json" or None."""
    log = logging.getLogger("eventide")
    handler = logging.StreamHandler()
    handler.setFormatter(_Json() if form == "json" else _Sentence())
    level = log.level
    log.addHandler(handler)
    log.setLevel(logging.INFO if form == "json" else logging.WARNING)
    NOTICES.setLevel(logging.INFO)
    try:
        yield
    finally:
        log.removeHandler(handler)
        log.setLevel(level)
        NOTICES.setLevel(logging.NOTSET)


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="seconds")
        document = {"time": time, "level": record.levelname.lower(), "event": record.getMessage()}
        return json.dumps(document | getattr(record, "fields", {}))


class _Sentence(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        kind = "Note" if record.levelno == logging.INFO else record.levelname.capitalize()
        sentence = f"{kind}: {record.getMessage()}"
        said = ", ".join(f"{name} {value}" for name, value in getattr(record, "fields", {}).items())
        return f"{sentence} ({said})" if said else sentence
