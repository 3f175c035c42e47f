"""Where the file of a store was when a writer last opened it, kept in the store itself: so that a copy is noticed.

A copy holds the ledger of its original up to some moment. If both went on, the same steps would be drawn twice. A file
keeps its number (its inode) when it is renamed, and a copy has another one. A file with another number is taken for a
store that was moved only if its original is not there any more, and the note of its writer came along (`writer_lock`),
so that nothing is missing. A table of its own keeps the home: older versions pass over it, and their stores have none.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from eventide.errors import StoreError
from eventide.live.stores.database import WriterPlace
from eventide.live.stores.digests import digest
from eventide.live.stores.writer_lock import is_held, read_note

HOME = """CREATE TABLE IF NOT EXISTS home (
    id INTEGER PRIMARY KEY CHECK (id = 1), path BLOB NOT NULL, file TEXT NOT NULL, digest BLOB NOT NULL)"""


class Home(NamedTuple):
    """A name and the number of the file that it means."""

    path: Path
    file: str

    @classmethod
    def of(cls, path: Path) -> Home:
        """The home of the store that is at a path now."""
        return cls(path, str(path.stat().st_ino))


def move_in(connection: sqlite3.Connection, here: Home, place: WriterPlace, *, after_restore: bool) -> None:
    """Refuse a copy, or write down that the store is here; inside a transaction of its writer.

    Who says that a copy is a restored backup may go on with it. Then the writer's place learns how far the store came
    where it was before.
    """
    before, (name,) = _written(connection, here.path), connection.execute("SELECT name FROM store").fetchone()
    if before == here:
        return
    if before is not None:
        _refuse_beside(before, here, name, after_restore=after_restore)
        if before.file != here.file and not (after_restore or place.knows(name)):
            raise StoreError(
                f"{here.path} is a copy of the store that was at {before.path}, and no .lock file beside it proves "
                f"that it is the newest. If you moved it, take {before.path.name}.lock along as {here.path.name}.lock; "
                "else give --after-restore"
            )
        place.learn(name, read_note(before.path))
    write_home(connection, here)


def write_home(connection: sqlite3.Connection, here: Home) -> None:
    """Write down where the store is, inside a transaction."""
    row = os.fsencode(here.path), here.file
    connection.execute(HOME)
    connection.execute("INSERT OR REPLACE INTO home VALUES (1, ?, ?, ?)", (*row, digest(*row)))


def _written(connection: sqlite3.Connection, path: Path) -> Home | None:
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'home'").fetchone():
        return None
    row = connection.execute("SELECT path, file, digest FROM home").fetchone()
    if row is None or row[2] != digest(*row[:2]):
        raise StoreError(
            f"{path} is damaged: where it was is not what was written; restore a backup and go on with --after-restore"
        )
    return Home(Path(os.fsdecode(row[0])), row[1])


def _refuse_beside(before: Home, here: Home, name: str, *, after_restore: bool) -> None:
    """Refuse where the store is also at the place of before: as another file, or as this one under another name."""
    with suppress(OSError, sqlite3.Error):  # nothing is there, or nothing that could be a store
        if _same_entry(before.path, here.path):
            return
        if before.path.samefile(here.path):
            raise StoreError(f"{here.path} is another name of {before.path}, which has a log of its own: use that name")
        with closing(sqlite3.connect(f"{before.path.as_uri()}?mode=ro", uri=True)) as other:
            (found,) = other.execute("SELECT name FROM store").fetchone()
        if found == name and (is_held(before.path) or not after_restore):
            raise StoreError(
                f"{here.path} is a copy of {before.path}, which is still there: if both went on, steps would be "
                f"published twice. Publish to {before.path}; or stop doing that for good, and go on here with "
                "--after-restore"
            )


def _same_entry(one: Path, other: Path) -> bool:
    """Whether two paths are the same name in the same folder, in whatever way that is reached."""
    return one.name == other.name and one.parent.samefile(other.parent)
