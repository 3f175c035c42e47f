"""A store in a database: what `Store` promises, each commit one transaction that is durable when it returns.

The writer holds a place outside the rows and a fence number inside them. Where the connection is lost in the middle of
a transaction, the rows are read before anything is done again: what was committed stays as it is, what was not is
written once more, as it was drawn.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypeVar

from eventide.errors import InputError, StateError, StoreError
from eventide.events.bin_names import BinNames
from eventide.live import faults
from eventide.live.stores.base import Approve, Commit, Epoch, Intrusion, Rename, Store, StoreSetting, StoreState
from eventide.live.stores.database import ConnectionLost, Database, Unavailable, WriterPlace
from eventide.live.stores.epochs import epoch_for, first_measured, first_measured_after_loss, refuse_noise
from eventide.live.stores.rows import GONE, CheckedRows, Head, StoredStep, WrittenRows, sealed
from eventide.privacy.ledger import Entry

Result = TypeVar("Result")


FORGOTTEN_AT_A_TIME = 1000  # releases, so that no commit waits for long


class _Writer(NamedTuple):
    """The place of the one who may commit, and the epoch it commits to."""

    lock: WriterPlace
    fence: int
    epoch: Epoch
    began_epoch: bool  # rather than going on with it
    kept_before: int  # the last row of events that others had kept


class DatabaseStore(Store):
    """The store in a database, which exists; `open_store` makes it. Threads may share it."""

    def __init__(self, database: Database) -> None:
        self._database, self.called = database, Path(database.place).name
        self._rows = CheckedRows(database)
        self._written = WrittenRows(database)
        self._writer: _Writer | None = None
        self._latest: list[tuple[int, bytes]] = []  # the releases that this writer committed last
        database.gives_up = lambda: self.patience.is_over
        database.wait_until_back = self._wait_until_back
        try:
            self.name, self._key, self.for_tests = self._rows.identity()
        except BaseException:
            database.close()
            raise

    def begin(
        self,
        setting: StoreSetting,
        *,
        new_epoch: bool = False,
        take_over: bool = False,
        after_restore: bool = False,
        not_before: int = 0,
        approve: Approve = lambda _: None,
    ) -> StoreState:
        """Become the writer and say where the store stands; refuse another setting unless a new epoch is wanted."""
        refuse_noise(setting, for_tests=self.for_tests)
        with self._database.turn:
            while True:
                try:
                    lock = self._database.writer_place(take_over=take_over)
                    state = self._begin(lock, setting, new_epoch, after_restore, not_before, approve)
                    break
                except ConnectionLost:  # an epoch that was committed is found; the place may be another's by now
                    self._database.come_back()
            levels = "levels" in setting.mechanism.get("parameters", {})
            if self._writing().began_epoch and (levels or setting.named is not None):
                self._database.show_epoch(levels=levels)
        faults.passing("after-epoch")
        return state

    def withdraw(self) -> None:
        """Undo what this writer has begun, if no step was ever committed, and give up its place."""
        writer = self._writing()
        self._settled(lambda head: self._write_withdrawal(head, writer))
        self._database.forget(["kept"])
        self._writer = None
        writer.lock.release()

    def check_place(self) -> None:
        """Refuse if another writer has taken this one's place, or the store is gone."""
        self._database.check_in_place()
        self._own_head()

    def after_restore(self, next_step: int, not_before: int = 0, longest_window: int = 0) -> StoreState:
        """Count the w steps before `next_step` as fully spent and go on there; what was lost is not released again.

        w is the longest window that these steps may have been published under: of the epochs that the store knows, of
        those that its writer noted elsewhere, and `longest_window`. No step before `not_before` may be measured.
        """
        writer, head = self._writing(), self._own_head()
        first = max(next_step, self.next_step(), writer.lock.reached(self.name) + 1)
        epochs = self.epochs()
        setting = epochs[-1].setting
        measured = first_measured_after_loss(epochs, self.entries(), head.step + 1, first, setting)
        longest = setting._replace(window=longest_window).reach
        free = max(measured, not_before, writer.lock.free_from(self.name), first - 1 + longest)
        return self._begin_epoch(Epoch(len(epochs), first, free, setting, restored=True))

    def begin_apart(self, not_before: int = 0) -> StoreState:
        """Begin one more epoch with the setting of the last, apart from all charges so far."""
        self._own_head()
        epochs, next_step = self.epochs(), self.next_step()
        setting = epochs[-1].setting
        first = max(first_measured(epochs, self.entries(), next_step, setting), not_before)
        return self._begin_epoch(Epoch(len(epochs), next_step, first, setting))

    def _begin_epoch(self, epoch: Epoch) -> StoreState:
        """As the writer: an epoch that is never withdrawn."""
        self._settled(lambda _: self._written.new_epoch(epoch), "inside-epoch")
        self._writer = self._writing()._replace(epoch=epoch, began_epoch=False)
        faults.passing("after-epoch")
        return self._state_of(epoch)

    def promise(self, guarantee: str) -> None:
        """Keep the sentence that the publisher of this epoch gives, for whoever reads the store."""
        writer = self._writing()
        if guarantee != writer.epoch.guarantee:
            self._settled(lambda _: self._written.epoch(self.epochs()[-1]._replace(guarantee=guarantee)))
            self._writer = writer._replace(epoch=writer.epoch._replace(guarantee=guarantee))

    def remember_columns(self, read: dict[str, str | None]) -> None:
        """Keep from which columns events are read from now on."""
        self._writing()

        def write(_: Head) -> None:
            last = self.epochs()[-1]
            self._written.epoch(last._replace(setting=last.setting._replace(read=read)))

        if self._patiently(self.epochs)[-1].setting.read != read:
            self._settled(write)

    def bin_names(self) -> BinNames | None:
        """The names that the bins of the last epoch have by now; None where they never change."""
        return self._patiently(super().bin_names)

    def rename(self, change: Rename) -> BinNames:
        """Name or close bins, durably; whoever writes to the store meanwhile goes on, and learns of it soon."""
        wanted: BinNames | None = None

        def write(_: Head) -> None:
            nonlocal wanted
            if not (epochs := self.epochs()):
                raise InputError("this store has no bins yet; publish first")
            setting = epochs[-1].setting
            wanted = change(BinNames(setting.bins, setting.named or ()), self.next_step())
            named = [list(each) for each in wanted.said]
            self._written.epoch(epochs[-1]._replace(setting=setting._replace(named=named)))

        self._settled(write, "inside-naming", done=lambda: wanted is not None and self.bin_names() == wanted)
        faults.passing("after-naming")
        assert wanted is not None
        return wanted

    def commit(self, *commits: Commit) -> None:
        """Make steps durable together, erase the kept events of them, and move on; refuse if the fence has moved."""
        writer, last = self._writing(), commits[-1].step
        for commit in commits:
            _refuse_misplaced(commit, writer.epoch)
        rows: list[StoredStep] = []

        def write(head: Head) -> None:
            rows[:] = self._write_steps(head, commits)

        def is_written() -> bool:
            return bool(rows) and self._rows.head()[1:] == (last, rows[-1].chain)

        self._settled(write, "inside-transaction", done=is_written)
        self._patiently(lambda: writer.lock.note(self.name, last, _free_from(writer.epoch, last)))
        self._patiently(lambda: self._database.forget(self._erased))
        self._latest = [(commit.step, commit.release) for commit in commits]

    def release(self, step: int) -> bytes | None:
        """The stored release of a step."""
        return next((release for _, release in self.releases(step, step)), None)

    def releases(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Stored releases in order, from `first` up to and including `last`."""
        if self._latest and first >= self._latest[0][0]:  # whoever follows a writer needs no look at its disk
            return (each for each in self._latest if first <= each[0] and (last is None or each[0] <= last))
        return ((row.step, row.release) for row in self._rows.steps(first, last) if row.release != GONE)

    def kept_from(self) -> int:
        """The first step whose release is kept."""
        return self._rows.kept_from()

    def forget_releases(self, before: int) -> None:
        """Erase the releases of steps before one, some at a time, as far as nothing is rebuilt from them."""
        taken, planned = self._rows.snapshot()[0], self._rows.number("SELECT MIN(step) FROM plan")
        cut = self._rows.whole_before(min(before, taken, self._rows.head().step if planned is None else planned))
        if taken >= self._writing().epoch.measured_from and (old := self._rows.first_kept(cut, FORGOTTEN_AT_A_TIME)):
            faults.passing("before-forgetting")
            self._settled(lambda _: self._written.gone(old), "inside-forgetting")
            faults.passing("after-forgetting")

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All ledger entries from step `first` on, in order of steps."""
        for step, entries in self._rows.charges(first):
            yield from (Entry(step, kind, lane, amount) for kind, lane, amount in json.loads(entries))

    def epochs(self) -> list[Epoch]:
        """All epochs in order."""
        return self._rows.epochs()

    def next_step(self) -> int:
        """The first step that is not released."""
        begun = self._rows.number("SELECT first_step FROM epoch ORDER BY number DESC LIMIT 1")
        return max(self._rows.head().step + 1, begun or 0)

    def delivered(self, sink: str) -> int:
        """The last step that a sink has confirmed, -1 before the first."""
        return self._rows.deliveries().get(sink, -1)

    def deliver(self, sink: str, step: int) -> None:
        """Remember that a sink has confirmed everything up to a step."""
        self._writing()
        self._settled(lambda _: self._written.delivery(sink, step))

    def keep(self, tallies: Iterable[tuple[int, bytes]], batch: str | None = None) -> bool:
        """Keep open events of a source that cannot replay, durably; False if `batch` was kept before.

        The name of a batch is forgotten when its last step is released: sent again, all of it is late.
        """
        self._writing()
        held = list(tallies)
        if batch is not None and self._patiently(lambda: self._rows.one("SELECT 1 FROM batch WHERE name = ?", batch)):
            return False
        before = self._patiently(self._rows.last_kept)
        self._settled(
            lambda _: self._write_kept(held, batch), "inside-keep", done=lambda: self._rows.last_kept() > before
        )
        faults.passing("after-keep")
        self._patiently(lambda: self._database.forget(()))
        return True

    def kept(self) -> list[tuple[int, bytes]]:
        """The open events kept, by step."""
        return self._patiently(self._rows.kept)

    def watch_intrusions(self) -> None:
        """Get ready for announcements of intrusions."""
        self._settled(lambda _: self._database.make_intrusions())
        self._database.listen_for_intrusions()

    def announce_intrusion(self, at: int) -> int:
        """Announce, from any process, that somebody saw what the publisher holds; give the announcement's number."""
        self.watch_intrusions()
        numbers: list[int] = []

        def write(_: Head) -> None:
            numbers.append(self.last_intrusion() + 1)
            self._written.intrusion(Intrusion(numbers[-1], at))
            self._database.tell_of_intrusion()

        self._settled(write, done=lambda: self.last_intrusion() >= numbers[-1])
        return numbers[-1]

    def note_intrusion(self, number: int, first: int, last: int) -> None:
        """Remember which steps were open at an intrusion."""
        at = next(each.at for each in self.intrusions() if each.number == number)
        self._settled(lambda _: self._written.intrusion(Intrusion(number, at, first, last, noted=True)))

    def is_told_of_intrusion(self) -> bool:
        """Whether there may be a new announcement."""
        return self._database.is_told_of_intrusion()

    def last_intrusion(self) -> int:
        """The number of the last announcement, 0 before the first."""
        return self._patiently(lambda: self._rows.number("SELECT MAX(number) FROM intrusion")) or 0

    def intrusions(self) -> list[Intrusion]:
        """All announcements in order."""
        return self._patiently(self._rows.intrusions)

    def verify(self) -> None:
        """Read everything and refuse if a bit of it has changed."""
        self._rows.verify()

    def close(self) -> None:
        """Give up the writer's place and let go."""
        with self._database.turn:
            self._database.close()
            if self._writer is not None:
                self._writer.lock.release()
                self._writer = None

    def _writing(self) -> _Writer:
        if self._writer is None:
            raise StateError("only the writer of a store may change it; become it with `begin`")
        return self._writer

    @contextmanager
    def _transaction(self, point: str = "") -> Iterator[Head]:
        """All or nothing, durable at the end; refused if another writer took this one's place."""
        with self._database.transaction():
            yield self._own_head()
            faults.passing(point)

    def _own_head(self) -> Head:
        """The head, as long as this writer's fence is in it."""
        head = self._rows.head()
        if self._writer is not None and head.fence != self._writer.fence:
            raise StoreError(
                f"{self._database.place} was taken over by another writer; this one writes nothing any more"
            )
        return head

    def _settled(
        self, work: Callable[[Head], object], point: str = "", done: Callable[[], bool] = lambda: False
    ) -> None:
        """Do some work in a transaction; if that fails half way, read whether it is `done`, or do it again.

        What was done to a store that was removed meanwhile is not durable, and is refused.
        """
        tried = False

        def once() -> None:
            nonlocal tried
            with self._database.turn:
                if not (tried and done()):
                    tried = True
                    with self._transaction(point) as head:
                        work(head)
                self._database.check_in_place()

        self._patiently(once)

    def look(self) -> None:
        """Wait for a server that went away while nothing was to be done, where somebody wants to know that at once."""
        if self.patience.looks and self._database.is_lost:
            with self._database.turn:
                self._wait_until_back()

    def _wait_until_back(self) -> None:
        """Connect again, as long as patience lasts."""
        self.patience.lost()
        while True:
            try:
                self._database.come_back()
                break
            except Unavailable as fault:
                self.patience.wait(fault)
        self.patience.healed()

    def _patiently(self, work: Callable[[], Result]) -> Result:
        """Do some work, again where the connection was lost, and as long as patience lasts where it cannot be done."""
        lost = False
        while True:
            try:
                if lost:
                    self._database.come_back()
                    lost = False
                result = work()
            except ConnectionLost:
                lost = True
                self.patience.lost()
            except Unavailable as fault:
                self.patience.wait(fault)
                self._database.make_room()
            else:
                self.patience.healed()
                return result

    def _begin(
        self,
        lock: WriterPlace,
        setting: StoreSetting,
        new_epoch: bool,
        after_restore: bool,
        not_before: int,
        approve: Approve,
    ) -> StoreState:
        try:
            with self._transaction("inside-epoch") as head:
                self._rows.check_before_writing()
                self._database.move_in(lock, after_restore=after_restore)
                if after_restore:
                    not_before = 0  # the epoch that follows sees to it
                else:
                    self._refuse_forgotten(lock)
                epoch = epoch_for(self, setting, new_epoch=new_epoch, not_before=not_before)
                if began := epoch.number == len(self.epochs()):
                    self._written.new_epoch(epoch)
                kept = self._rows.last_kept()
                self._database.change("UPDATE head SET fence = ?", head.fence + 1)
                state = self._state_of(epoch)
                approve(state.next_step)
            lock.settle(self.name, head.step, _free_from(epoch, head.step))
        except BaseException:
            lock.release()
            raise
        self._writer = _Writer(lock, head.fence + 1, epoch, began, kept)
        return state

    def _write_steps(self, head: Head, commits: Sequence[Commit]) -> list[StoredStep]:
        """Write steps that come next, each tied to the one before; give their rows."""
        epoch, chain, rows = self._writing().epoch, head.chain, []
        for next_step, commit in enumerate(commits, max(head.step + 1, epoch.first_step)):
            if commit.step != next_step:
                raise StateError(f"step {commit.step} came to be committed where step {next_step} is next")
            entries = json.dumps([[entry.kind, entry.lane, entry.amount] for entry in commit.entries])
            rows.append(sealed(chain, next_step, epoch.number, entries, commit.release, commit.recorded))
            chain = rows[-1].chain
        self._erased = self._written.steps(rows, commits)
        return rows

    def _write_withdrawal(self, head: Head, writer: _Writer) -> None:
        if head.step >= 0:
            raise StateError("a store that has released a step cannot be withdrawn from")
        self._written.withdrawal(writer.epoch.number if writer.began_epoch else None, writer.kept_before)

    def _write_kept(self, tallies: list[tuple[int, bytes]], batch: str | None) -> None:
        next_step, steps = self.next_step(), [step for step, _ in tallies]
        if any(step < next_step for step in steps):
            raise StateError(f"events of steps before {next_step} came to be kept; those steps are released")
        self._written.kept(tallies, batch, max(steps, default=next_step))

    def _refuse_forgotten(self, lock: WriterPlace) -> None:
        last, reached = self.next_step() - 1, lock.reached(self.name)
        if last < reached:
            raise StoreError(
                f"{self._database.place} ends at step {last} but had come to step {reached}: it was restored from a "
                "backup, or its log is damaged; --after-restore goes on behind what was published"
            )

    def _state_of(self, epoch: Epoch) -> StoreState:
        """Where the epoch stands, from rows that were checked: the last window, and all since the last snapshot."""
        next_step = self.next_step()
        for _ in self._rows.charges(next_step - epoch.setting.window):
            pass
        taken, state = self._rows.snapshot()
        taken = max(taken, epoch.measured_from - 1)
        since = list(self._rows.steps(min(taken + 1, self._rows.head().step)))
        return StoreState(
            next_step=next_step,
            origin=epoch.measured_from,
            measured_from=epoch.measured_from,
            snapshot=state,
            recorded=[row.recorded for row in since if row.step > taken],
            last_release=since[-1].release if since else None,
            position=json.loads(self._rows.position()),
            key=self._key,
            plan=self._rows.plan(),
        )


def _free_from(epoch: Epoch, step: int) -> int:
    """The first step that shares no window with any up to this one of an epoch, nor with charges of earlier epochs."""
    return max(epoch.measured_from, step + epoch.setting.reach)


def _refuse_misplaced(commit: Commit, epoch: Epoch) -> None:
    """Refuse charges of another step, or before the epoch may measure: windows of two epochs would mix."""
    if any(entry.step != commit.step for entry in commit.entries):
        raise StateError(f"step {commit.step} came with the charges of another step")
    if commit.step < epoch.measured_from and (commit.entries or commit.snapshot is not None or commit.plan is not None):
        raise StateError(f"step {commit.step} was measured, but nothing may be measured before {epoch.measured_from}")
