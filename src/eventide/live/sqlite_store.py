"""A store in one SQLite file: what `Store` promises, each commit one transaction that is on disk when it returns.

The writer holds a lock beside the file and a fence number inside it. What was erased (kept events, an old snapshot) is
overwritten in the file, and the log that may still show it is cut by the first commit that comes a second after the
last cut, or at the end. May import `errors` and its neighbours.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from eventide.errors import StateError, StoreError
from eventide.live import faults
from eventide.live.digests import digest
from eventide.live.quarantine import first_measured
from eventide.live.setting_changes import refuse_noise, refuse_other_setting, refuse_other_steps, setting_text
from eventide.live.sqlite_file import PATIENCE, refusals
from eventide.live.sqlite_rows import CheckedRows, Head, sealed
from eventide.live.store import Commit, Epoch, Setting, Standing, Store
from eventide.live.writer_lock import WriterLock
from eventide.privacy.ledger import Entry

CUT_LOG_EVERY = 1.0  # seconds, while there is something erased in it


class _Writer(NamedTuple):
    """The place of the one who may commit, and the epoch it commits to."""

    lock: WriterLock
    fence: int
    epoch: Epoch


class SqliteStore(Store):
    """The store at `path`, which exists; `open_store` makes it. Threads may share it."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self.path = path
        self._rows = CheckedRows(path, read_only=read_only)
        self._connection = self._rows.connection
        self._writer: _Writer | None = None
        self._erased, self._log_cut_at = False, time.monotonic()
        try:
            self.name, self._key, self.for_tests = self._rows.identity()
        except BaseException:
            self._connection.close()
            raise

    def begin(
        self, setting: Setting, *, new_epoch: bool = False, take_over: bool = False, after_restore: bool = False
    ) -> Standing:
        """Become the writer and say where the store stands; refuse another setting unless a new epoch is wanted."""
        refuse_noise(setting, for_tests=self.for_tests)
        with refusals(self.path):
            lock = WriterLock(self.path, take_over=take_over)
        try:
            with self._transaction("inside-epoch") as head:
                self._rows.check_head()
                if not after_restore:
                    self._refuse_forgotten(lock)
                epoch = self._epoch_for(setting, new_epoch=new_epoch)
                self._connection.execute("UPDATE head SET fence = ?", (head.fence + 1,))
                standing = self._standing(epoch)
            with refusals(self.path):
                lock.settle(self.name, head.step)
        except BaseException:
            lock.release()
            raise
        self._writer = _Writer(lock, head.fence + 1, epoch)
        faults.passing("after-epoch")
        return standing

    def after_restore(self, next_step: int) -> Standing:
        """Count the w steps before `next_step` as fully spent and go on there; what was lost is not released again."""
        writer = self._writing()
        with self._transaction("inside-epoch"):
            first = max(next_step, self.next_step(), writer.lock.reached(self.name) + 1)
            setting = writer.epoch.setting
            epoch = Epoch(writer.epoch.number + 1, first, first - 1 + setting.window, setting, restored=True)
            self._begin_epoch(epoch)
            standing = self._standing(epoch)
        self._writer = writer._replace(epoch=epoch)
        faults.passing("after-epoch")
        return standing

    def promise(self, guarantee: str) -> None:
        """Keep the sentence that the publisher of this epoch gives, for whoever reads the store."""
        writer = self._writing()
        if guarantee != writer.epoch.guarantee:
            epoch = writer.epoch._replace(guarantee=guarantee)
            with self._transaction():
                self._write_epoch(epoch)
            self._writer = writer._replace(epoch=epoch)

    def commit(self, commit: Commit) -> None:
        """Make a step durable, erase the kept events of it, and move on; refuse if the fence has moved."""
        writer, execute = self._writing(), self._connection.execute
        _refuse_misplaced(commit, writer.epoch)
        entries = json.dumps([[entry.kind, entry.lane, entry.amount] for entry in commit.entries])
        content = (json.dumps(commit.position), commit.release, commit.tape)
        with self._transaction("inside-transaction") as head:
            if commit.step != (next_step := max(head.step + 1, writer.epoch.first_step)):
                raise StateError(f"step {commit.step} came to be committed where step {next_step} is next")
            row = sealed(head.chain, commit.step, writer.epoch.number, entries, *content)
            execute("INSERT INTO step VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            execute("UPDATE head SET step = ?, chain = ?", (row.step, row.chain))
            if commit.snapshot is not None:
                saved = (commit.step, commit.snapshot, digest(commit.step, commit.snapshot))
                execute("REPLACE INTO snapshot VALUES (1, ?, ?, ?)", saved)
            kept = execute("DELETE FROM kept WHERE step <= ?", (commit.step,)).rowcount
            execute("DELETE FROM batch WHERE step < ?", (commit.step - writer.epoch.setting.window,))
        writer.lock.note(self.name, commit.step)
        self._erased = self._erased or kept > 0 or commit.snapshot is not None
        self._cut_log()

    def release(self, step: int) -> bytes | None:
        """The stored release of a step."""
        return next((row.release for row in self._rows.steps(step, step)), None)

    def releases(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Stored releases in order, from `first` up to and including `last`."""
        return ((row.step, row.release) for row in self._rows.steps(first, last))

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All ledger entries from step `first` on, in order of steps."""
        for row in self._rows.charges(first):
            yield from (Entry(row.step, kind, lane, amount) for kind, lane, amount in json.loads(row.entries))

    def epochs(self) -> list[Epoch]:
        """All epochs in order."""
        return self._rows.epochs()

    def next_step(self) -> int:
        """The first step that is not released."""
        begun = self._rows.one("SELECT first_step FROM epoch ORDER BY number DESC LIMIT 1")
        return max(self._rows.head().step + 1, 0 if begun is None else int(begun[0]))

    def delivered(self, sink: str) -> int:
        """The last step that a sink has confirmed, -1 before the first."""
        row = self._rows.one("SELECT step FROM delivery WHERE sink = ?", sink)
        return -1 if row is None else int(row[0])

    def deliver(self, sink: str, step: int) -> None:
        """Remember that a sink has confirmed everything up to a step."""
        self._writing()
        with self._transaction():
            self._connection.execute("REPLACE INTO delivery VALUES (?, ?)", (sink, step))

    def keep(self, tallies: Iterable[tuple[int, bytes]], batch: str | None = None) -> bool:
        """Keep open events of a source that cannot replay, durably; False if `batch` was kept before.

        The name of a batch is forgotten when its last step is a window old.
        """
        self._writing()
        rows = [(step, tally, digest(step, tally)) for step, tally in tallies]
        with self._transaction("inside-keep"):
            if batch is not None and self._rows.one("SELECT 1 FROM batch WHERE name = ?", batch):
                return False
            next_step = self.next_step()
            if any(row[0] < next_step for row in rows):
                raise StateError(f"events of steps before {next_step} came to be kept; those steps are released")
            self._connection.executemany("INSERT INTO kept (step, tally, digest) VALUES (?, ?, ?)", rows)
            if batch is not None:
                reach = max((row[0] for row in rows), default=next_step)
                self._connection.execute("INSERT INTO batch VALUES (?, ?)", (batch, reach))
        faults.passing("after-keep")
        return True

    def kept(self) -> list[tuple[int, bytes]]:
        """The open events kept, by step."""
        return self._rows.kept()

    def verify(self) -> None:
        """Read everything and refuse if a bit of it has changed."""
        self._rows.verify()

    def close(self) -> None:
        """Give up the writer's place and let go."""
        with self._rows.turn:
            self._connection.close()
            if self._writer is not None:
                self._writer.lock.release()
                self._writer = None

    def _writing(self) -> _Writer:
        if self._writer is None:
            raise StateError("only the writer of a store may change it; become it with `begin`")
        return self._writer

    @contextmanager
    def _transaction(self, point: str = "") -> Iterator[Head]:
        """All or nothing, on disk at the end; refused if another writer took this one's place."""
        with self._rows.turn, refusals(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                head = self._rows.head()
                if self._writer is not None and head.fence != self._writer.fence:
                    raise StoreError(f"{self.path} was taken over by another writer; this one commits nothing any more")
                yield head
                faults.passing(point)
                self._connection.execute("COMMIT")
            except BaseException:
                self._connection.rollback()
                raise

    def _refuse_forgotten(self, lock: WriterLock) -> None:
        last, reached = self.next_step() - 1, lock.reached(self.name)
        if last < reached:
            raise StoreError(
                f"{self.path} ends at step {last} but had come to step {reached}: it was restored from a backup, or "
                "its log is damaged; --after-restore goes on behind what was published"
            )

    def _epoch_for(self, setting: Setting, *, new_epoch: bool) -> Epoch:
        """The epoch to go on with: the last one, or a new one where that is wanted and needed."""
        epochs = self.epochs()
        if not epochs:
            return self._begin_epoch(Epoch(0, 0, 0, setting))
        refuse_other_steps(epochs[-1].setting, setting)
        if setting_text(epochs[-1].setting) == setting_text(setting):
            return epochs[-1]
        next_step = self.next_step()
        first = first_measured(epochs, self.entries(), next_step, setting.window)
        if not new_epoch:
            refuse_other_setting(epochs[-1].setting, setting, first)
        return self._begin_epoch(Epoch(len(epochs), next_step, first, setting))

    def _begin_epoch(self, epoch: Epoch) -> Epoch:
        """Write an epoch; the state of the mechanism before and the events it was to see go."""
        self._write_epoch(epoch)
        self._connection.execute("DELETE FROM snapshot")
        self._connection.execute("DELETE FROM kept")
        self._erased = True
        return epoch

    def _write_epoch(self, epoch: Epoch) -> None:
        numbers = (epoch.number, epoch.first_step, epoch.measured_from, int(epoch.restored))
        row = (*numbers, setting_text(epoch.setting), epoch.guarantee)
        columns = "number, first_step, measured_from, restored, setting, guarantee, digest"
        update = "guarantee = excluded.guarantee, digest = excluded.digest"
        self._connection.execute(
            f"INSERT INTO epoch ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET {update}",
            (*row, digest(*row)),
        )

    def _standing(self, epoch: Epoch) -> Standing:
        """Where the epoch stands, from rows that were checked: the last window, and all since the last snapshot."""
        next_step = self.next_step()
        for _ in self._rows.charges(next_step - epoch.setting.window):
            pass
        taken, state = self._rows.snapshot()
        taken = max(taken, epoch.measured_from - 1)
        since = list(self._rows.steps(min(taken + 1, self._rows.head().step)))
        return Standing(
            next_step=next_step,
            origin=epoch.measured_from,
            measured_from=epoch.measured_from,
            snapshot=state,
            tapes=[row.tape for row in since if row.step > taken],
            last_release=since[-1].release if since else None,
            position=json.loads(since[-1].position) if since else None,
            key=self._key,
        )

    def _cut_log(self) -> None:
        """Empty the log of what was erased, unless a reader is in it; then the next commit does."""
        if self._erased and time.monotonic() - self._log_cut_at >= CUT_LOG_EVERY:
            with self._rows.turn, refusals(self.path):
                self._connection.execute("PRAGMA busy_timeout = 0")
                (busy, *_) = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                self._connection.execute(f"PRAGMA busy_timeout = {round(PATIENCE * 1000)}")
            self._erased, self._log_cut_at = bool(busy), time.monotonic()


def _refuse_misplaced(commit: Commit, epoch: Epoch) -> None:
    """Refuse charges of another step, or before the epoch may measure: windows of two epochs would mix."""
    if any(entry.step != commit.step for entry in commit.entries):
        raise StateError(f"step {commit.step} came with the charges of another step")
    if commit.step < epoch.measured_from and (commit.entries or commit.snapshot is not None):
        raise StateError(f"step {commit.step} was measured, but nothing may be measured before {epoch.measured_from}")
