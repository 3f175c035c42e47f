"""The rows of a store: each is written with a digest, and checked against it when it is read.

The steps form a chain: the digest of a step's charges goes into that of the next step's, and the rest of the row is
sealed with it. So a changed, missing or misplaced row is found by whoever reads it. A reader takes a store of an older
version as it is; a writer changes rows in a transaction of its caller.

A release that is much like an earlier one is stored as what differs from it. Digests are of the lines themselves, in
whatever way they are stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from zlib import error as NotCompressed

from eventide.errors import StoreError
from eventide.live import faults
from eventide.live.stores.base import Commit, Epoch, Intrusion, PlanRecord, PlanStep, still_kept
from eventide.live.stores.database import Database
from eventide.live.stores.differences import difference, restored
from eventide.live.stores.digests import digest
from eventide.live.stores.epochs import read_setting, setting_text
from eventide.live.stores.tables import NO_CHAIN

GONE = b"{}"  # stands where a release was, once it is not kept any more
ROWS_AT_A_TIME = 64  # a reader never holds the database for longer than these take


class Head(NamedTuple):
    """Which writer may commit, and the last step with the chain's digest there; kept apart, so that a loss shows."""

    fence: int
    step: int
    chain: bytes


class StoredStep(NamedTuple):
    """A row of the table of steps with its release as a line."""

    step: int
    epoch: int
    entries: str
    chain: bytes
    seal: bytes
    release: bytes
    recorded: bytes


def sealed(
    before: bytes, step: int, epoch: int, entries: str, release: bytes, recorded: bytes, position: str | None = None
) -> StoredStep:
    """The row of a step behind the one whose chain is `before`; in the first version a row had a position as well."""
    chain = digest(before, step, epoch, entries)
    content = (release, recorded) if position is None else (position, release, recorded)
    return StoredStep(step, epoch, entries, chain, digest(chain, *content), release, recorded)


class CheckedRows:
    """Reads the rows of a database."""

    def __init__(self, database: Database) -> None:
        self.all = database.all
        self._database = database
        self._has_positions = database.version == 1  # in every row
        self._further = {1: "NULL, position", 2: "NULL, NULL"}.get(database.version, "base, NULL")

    def one(self, query: str, *values: Any) -> tuple[Any, ...] | None:
        """The first row of a query."""
        return next(iter(self.all(query, *values)), None)

    def number(self, query: str, *values: Any) -> int | None:
        """The whole number that a query finds first, None where it finds none."""
        row = self.one(query, *values)
        if row is not None and not isinstance(row[0], int | None):
            raise self.damaged("a number")
        return None if row is None else row[0]

    def identity(self) -> tuple[str, bytes, bool]:
        """The store's name, its secret key, and whether it is for tests."""
        name, key, for_tests = self._intact("SELECT name, key, for_tests, digest FROM store", "its name and key")[0]
        return name, key, bool(for_tests)

    def head(self) -> Head:
        """Where the store stands; its step is -1 before the first."""
        row = self.one("SELECT fence, step, chain FROM head")
        if row is None or [type(part) for part in row] != [int, int, bytes]:
            raise self.damaged("its head")
        return Head._make(row)

    def position(self) -> str:
        """Where the source stands, as JSON."""
        _, position = self._intact("SELECT chain, position, seal FROM head", "the position of its source")[0]
        return str(position)

    def check_before_writing(self) -> None:
        """Refuse what a writer would go on with and not look at row by row."""
        self.check_head()
        self.deliveries()
        self.batches()

    def check_head(self) -> None:
        """Refuse a table of steps that has lost its end."""
        row = self.one(  # one query, so that no commit comes between two
            "SELECT head.step, head.chain, step.step, step.chain FROM head "
            "LEFT JOIN step ON step.step = (SELECT MAX(step) FROM step)"
        )
        if row is None or row[:2] != (row[2:] if row[2] is not None else (-1, NO_CHAIN)):
            raise self.damaged("the end of its steps")

    def chain_before(self, step: int) -> bytes:
        """The chain's digest at the last step stored before this one."""
        row = self.one("SELECT chain FROM step WHERE step < ? ORDER BY step DESC LIMIT 1", step)
        return NO_CHAIN if row is None else row[0]

    def charges(self, first: int) -> Iterator[tuple[int, str]]:
        """The steps from `first` on and what each was charged; the chain ties it to all steps before."""
        before, step = self.chain_before(first), first
        query = "SELECT step, epoch, entries, chain FROM step WHERE step >= ? ORDER BY step LIMIT ?"
        while rows := self.all(query, step, 64 * ROWS_AT_A_TIME):
            for charged, epoch, entries, chain in rows:
                if chain != digest(before, charged, epoch, entries):
                    raise self.damaged(f"the charges of step {charged}")
                before, step = chain, charged + 1
                yield charged, entries

    def steps(self, first: int, last: int | None = None) -> Iterator[StoredStep]:
        """The rows of the steps from `first` up to and including `last`."""
        before, step = self.chain_before(first), first
        columns = f"step, epoch, entries, chain, seal, release, tape, {self._further}"
        lines: dict[int, bytes] = {}  # of the base that steps had last
        query = f"SELECT {columns} FROM step WHERE step BETWEEN ? AND ? ORDER BY step LIMIT ?"
        while rows := self.all(query, step, 2**62 if last is None else last, ROWS_AT_A_TIME):
            for *stored, base, position in rows:
                row = StoredStep._make(stored)
                row = row._replace(release=self._line(row, base, lines))
                if row != sealed(before, *row[:3], row.release, row.recorded, position):
                    raise self.damaged(f"step {row.step}")
                before, step = row.chain, row.step + 1
                yield row

    def _line(self, row: StoredStep, base: int | None, lines: dict[int, bytes]) -> bytes:
        """The line of a release, by the line of its base if it has one; `lines` remembers that."""
        try:
            told = self._database.expanded(row.release)
            if base is None:
                return told
            if base not in lines:
                lines.clear()
                found = self.one("SELECT release FROM step WHERE step = ?", base) or (b"",)
                lines[base] = self._database.expanded(found[0])
            return restored(told, lines[base])
        except (NotCompressed, ValueError, IndexError, AttributeError, TypeError):
            raise self.damaged(f"step {row.step}") from None

    def kept_from(self) -> int:
        """The first step whose release is kept; the next one where none is."""
        first = self.number("SELECT MIN(step) FROM step WHERE release <> ?", GONE)
        return self.head().step + 1 if first is None else first

    def whole_before(self, step: int) -> int:
        """The last step up to one that no earlier release is needed for."""
        return self.number("SELECT MAX(step) FROM step WHERE base IS NULL AND step <= ?", step) or 0

    def first_kept(self, before: int, most: int) -> list[tuple[int, int, str, bytes]]:
        """The charges of the first steps before one whose releases are kept: step, epoch, entries and chain."""
        query = "SELECT step, epoch, entries, chain FROM step WHERE step < ? AND release <> ? ORDER BY step LIMIT ?"
        return [(step, epoch, entries, chain) for step, epoch, entries, chain in self.all(query, before, GONE, most)]

    def epochs(self) -> list[Epoch]:
        """All epochs in order."""
        columns = "number, first_step, measured_from, restored, setting, guarantee, digest"
        rows = self._intact(f"SELECT {columns} FROM epoch ORDER BY number", "an epoch", at_least=0)
        return [
            Epoch(number, first, measured_from, read_setting(setting), bool(restored), guarantee)
            for number, first, measured_from, restored, setting, guarantee in rows
        ]

    def last_kept(self) -> int:
        """The number of the last row of events that were kept, -1 where there is none."""
        last = self.number("SELECT MAX(id) FROM kept")
        return -1 if last is None else last

    def kept(self) -> list[tuple[int, bytes]]:
        """The events of open steps."""
        query = "SELECT step, tally, digest FROM kept ORDER BY step, id"
        return [(step, tally) for step, tally in self._intact(query, "the events of an open step", at_least=0)]

    def snapshot(self) -> tuple[int, bytes | None]:
        """The last state saved, and the step after which it was; -1 and None where there is none."""
        rows = self._intact("SELECT step, state, digest FROM snapshot", "the saved state", at_least=0)
        return (rows[0][0], rows[0][1]) if rows else (-1, None)

    def plan(self) -> PlanRecord | None:
        """What rebuilds the plan of window queries, None where there is none."""
        query = "SELECT step, part, state, digest FROM plan ORDER BY step"
        rows = self._intact(query, "what step {} left of its window queries", at_least=0)
        states: dict[str, list[bytes]] = {"snapshot": [], "released": [], "open": []}
        for _, part, state in rows:
            states[part].append(state)
        if not rows:
            return None
        if len(states["snapshot"]) != 1 or len(states["open"]) != 1:
            raise self.damaged("the state of its window queries")
        return PlanRecord(states["snapshot"][0], states["released"], states["open"][0])

    def deliveries(self) -> dict[str, int]:
        """The last step that each sink has confirmed."""
        return dict(self._intact("SELECT sink, step, digest FROM delivery", "what a sink has", at_least=0))

    def intrusions(self) -> list[Intrusion]:
        """The announcements of intrusions, none where nobody watches for them."""
        if not self._database.has_table("intrusion"):
            return []
        query = "SELECT number, at, first, last, noted, digest FROM intrusion ORDER BY number"
        rows = self._intact(query, "the announcement of an intrusion", at_least=0)
        return [Intrusion(number, at, first, last, bool(noted)) for number, at, first, last, noted in rows]

    def batches(self) -> dict[str, int]:
        """The last step of each batch that may come again."""
        return dict(self._intact("SELECT name, step, digest FROM batch", "the name of a batch", at_least=0))

    def _intact(self, query: str, what: str, at_least: int = 1) -> list[Any]:
        """Rows without their last column, which must be the digest of the others; `what` they are, by the first one."""
        rows = self.all(query)
        for *row, stored in rows:
            if stored != digest(*row):
                raise self.damaged(what.format(*row))
        if len(rows) < at_least:
            raise self.damaged(what)
        return [row[:-1] for row in rows]

    def verify(self) -> None:
        """Read everything."""
        if found := self._database.check_structure():
            raise self.damaged(f"its structure ({found})")
        kept_from = self.kept_from()
        for row in self.steps(0):
            if row.release == GONE and row.step >= kept_from:
                raise self.damaged(f"step {row.step}")
        self.check_before_writing()
        self.identity()
        self.epochs()
        self.kept()
        self.snapshot()
        self.plan()
        self.intrusions()
        if not self._has_positions:
            self.position()

    def damaged(self, what: str) -> StoreError:
        """The error that says so."""
        return StoreError(
            f"{self._database.place} is damaged: {what} is not what was written; restore a backup and go on with "
            "--after-restore"
        )


class WrittenRows:
    """Changes the rows of a database."""

    def __init__(self, database: Database) -> None:
        self._change, self._change_each, self._compressed = database.change, database.change_each, database.compressed
        self._base: tuple[int, bytes] | None = None  # the last step that was written whole, and its line

    def steps(self, rows: Sequence[StoredStep], commits: Sequence[Commit]) -> list[str]:
        """Write steps and move the head to the last one; the tables in which anything raw was erased."""
        for row, commit in zip(rows, commits, strict=True):
            if row is not rows[0]:
                faults.passing("inside-group")
            told, base = self._told(row, fresh=commit.fresh)
            columns = (*row._replace(release=self._compressed(told)), base)
            self._change("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?)", *columns)
            if commit.plan is not None:
                self._plan(row.step, commit.plan)
        last, position = rows[-1], json.dumps(commits[-1].position)
        self._change(
            "UPDATE head SET step = ?, chain = ?, position = ?, seal = ?",
            *(last.step, last.chain, position, digest(last.chain, position)),
        )
        over = [table for table in ("kept", "batch") if self._change(f"DELETE FROM {table} WHERE step <= ?", last.step)]
        if kept := still_kept(commits):
            self.kept(kept, None, last.step)
        if saved := [(commit.step, commit.snapshot) for commit in commits if commit.snapshot is not None]:
            self._snapshot(*saved[-1])
        replaced = {"plan": commits[-1].plan, "snapshot": saved or None, "head": commits[-1].position}
        return over + [table for table, state in replaced.items() if state is not None]

    def _snapshot(self, step: int, state: bytes) -> None:
        """Keep the state of the mechanism after a step; the one before is erased."""
        self._change(
            "INSERT INTO snapshot VALUES (1, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET step = excluded.step, "
            "state = excluded.state, digest = excluded.digest",
            *(step, state, digest(step, state)),
        )

    def _told(self, row: StoredStep, *, fresh: bool) -> tuple[bytes, int | None]:
        """The release of a step as what differs from a base, if that is little, or whole; then it is the next base."""
        if self._base is not None and not fresh and self._base[0] < row.step:  # one that was not committed comes again
            base, line = self._base
            if (told := difference(row.release, line)) is not None:
                return told, base
        self._base = row.step, row.release
        return row.release, None

    def gone(self, charges: list[tuple[int, int, str, bytes]]) -> None:
        """Erase the releases of some steps, and the answers behind them; their charges stay in the chain.

        Rows are deleted and written anew: SQLite gives the room of a deleted row to others, but not that of one that
        has become shorter.
        """
        for step, _, _, _ in charges:
            self._change("DELETE FROM step WHERE step = ?", step)
        rows = [(*charge, digest(charge[-1], GONE, b""), GONE, b"", None) for charge in charges]
        self._change_each("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)

    def _plan(self, step: int, plan: PlanStep) -> None:
        """Keep what a step left of the plan; open slots of before are erased, and behind a snapshot all the rest."""
        self._change("DELETE FROM plan" if plan.whole else "DELETE FROM plan WHERE part = 'open'")
        parts = ("snapshot" if plan.whole else "released", plan.state), ("open", plan.open_slots)
        rows = [(step, part, state, digest(step, part, state)) for part, state in parts]
        self._change_each("INSERT INTO plan VALUES (?, ?, ?, ?)", rows)

    def kept(self, tallies: list[tuple[int, bytes]], batch: str | None, reach: int) -> None:
        """Keep open events, and the name of their batch until step `reach` is released."""
        rows = [(step, tally, digest(step, tally)) for step, tally in tallies]
        self._change_each("INSERT INTO kept (step, tally, digest) VALUES (?, ?, ?)", rows)
        if batch is not None:
            self._change("INSERT INTO batch VALUES (?, ?, ?)", batch, reach, digest(batch, reach))

    def delivery(self, sink: str, step: int) -> None:
        """Remember how far a sink is."""
        update = "step = excluded.step, digest = excluded.digest"
        query = f"INSERT INTO delivery VALUES (?, ?, ?) ON CONFLICT (sink) DO UPDATE SET {update}"
        self._change(query, sink, step, digest(sink, step))

    def intrusion(self, each: Intrusion) -> None:
        """Write an announcement, or what was noted of it."""
        row = (*each[:4], int(each.noted))
        update = "first = excluded.first, last = excluded.last, noted = excluded.noted, digest = excluded.digest"
        query = f"INSERT INTO intrusion VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET {update}"
        self._change(query, *row, digest(*row))

    def new_epoch(self, epoch: Epoch) -> None:
        """Write an epoch; the state of the mechanism and the plan before and the events they were to see go."""
        self.epoch(epoch)
        for table in ("snapshot", "plan", "kept"):
            self._change(f"DELETE FROM {table}")

    def withdrawal(self, epoch: int | None, kept_before: int) -> None:
        """Erase the events that were kept after a row, and an epoch of which nothing was released."""
        self._change("DELETE FROM kept WHERE id > ?", kept_before)
        if epoch is not None:
            self._change("DELETE FROM epoch WHERE number = ?", epoch)

    def epoch(self, epoch: Epoch) -> None:
        """Write an epoch, or its sentence and the names of its bins anew."""
        numbers = (epoch.number, epoch.first_step, epoch.measured_from, int(epoch.restored))
        row = (*numbers, setting_text(epoch.setting), epoch.guarantee)
        columns = "number, first_step, measured_from, restored, setting, guarantee, digest"
        update = "setting = excluded.setting, guarantee = excluded.guarantee, digest = excluded.digest"
        self._change(
            f"INSERT INTO epoch ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (number) DO UPDATE SET {update}",
            *(*row, digest(*row)),
        )
