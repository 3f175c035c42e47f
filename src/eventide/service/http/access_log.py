"""Who read and who operated, and when: a line of JSON for each request, in a file for the operator.

Requests that send events are left out: how many there are says something about people. Of the others the path is
written, and nothing that was asked beyond it. The file is opened anew for every line, so it may be renamed at any time.
"""

from __future__ import annotations

import json
import logging
import os
from datetime import UTC, datetime
from pathlib import Path

from fastapi import Request

from eventide.service.http.tokens import Token

LOG = logging.getLogger("eventide.live.service")


class AccessLog:
    """The file at `path`, readable by its owner alone; None writes nothing."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._works = True

    def note(self, request: Request, role: str, token: Token | None, outcome: str) -> None:
        """Write down who asked for something that needs the role, and what became of it."""
        if self._path is None or role == "ingest":
            return
        line = {
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "who": token.name if token else None,
            "address": request.client.host if request.client else None,
            "needs": role,
            "method": request.method,
            "path": request.url.path,
            "outcome": outcome,
        }
        try:
            self._write(json.dumps(line))
            self._works = True
        except OSError as problem:
            if self._works:
                LOG.warning("the access log cannot be written: %s", problem.strerror)
            self._works = False

    def _write(self, line: str) -> None:
        assert self._path is not None
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, line.encode() + b"\n")
        finally:
            os.close(descriptor)
