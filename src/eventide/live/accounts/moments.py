"""Moments of event time as text."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta


def iso(moment: int) -> str:
    """A moment, in microseconds since 1970, as ISO text in UTC.

    >>> iso(3_600_000_000)
    '1970-01-01T01:00:00+00:00'
    """
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=moment)).isoformat()
