"""Visits of three people on three days, for tests of people of days: rows, a frame and a file of them."""

from __future__ import annotations

START, UNTIL = "2026-01-01T00:00:00+00:00", "2026-01-04T00:00:00+00:00"
ROWS = [
    ("2026-01-01T00:10", "anna", "help"),  # the first of two bins
    ("2026-01-01T05:10", "anna", "start"),
    ("2026-01-01T23:10", "anna", "help"),
    ("2026-01-01T09:30", "ben", "start"),
    ("2026-01-02T09:30", "ben", "start"),
    ("2026-01-02T11:30", "ben", "start"),
    ("2026-01-03T23:59", "cleo", "help"),
]
NAMES = ("timestamp", "user", "bin")
BINS = ("start", "help")
FRAME = dict(zip(NAMES, map(list, zip(*ROWS, strict=True)), strict=True))


def written(folder):
    """The path of a file of them, sorted by time, beside a list of the bins."""
    path = folder / "visits.csv"
    path.write_text("\n".join([",".join(NAMES), *map(",".join, sorted(ROWS)), ""]))
    path.with_name("bins.txt").write_text("start\nhelp\n")
    return path
