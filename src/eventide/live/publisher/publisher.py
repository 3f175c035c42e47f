"""The publisher: counts of closed steps in, durable releases out.

Charge, draw, commit, emit, in this order: a release leaves only after the store holds it together with its charges and
with what rebuilds the mechanism. A draw that was not committed was seen by nobody; a committed one is never drawn
again. What is emitted is read from the store. Where an account is drawn from, it is charged before the draw, and told
of the commit before anything is emitted.

Where several steps are at hand (of a file, or after a pause), they become durable in one commit, and the same holds for
all of them: nothing is emitted before it, and a group that was not committed was seen by nobody. How many steps that
are follows from the clock, from what a complete source has closed, and from the number of bins; never from what was
drawn. What was drawn whole is committed also where the next step fails. A step that is alone is committed at once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypedDict, Unpack

import numpy as np

from eventide.arrays import Ints
from eventide.errors import InputError, StateError
from eventide.events.bin_names import BinNames
from eventide.events.files.members import Paths
from eventide.live import faults
from eventide.live.accounts.account import Account
from eventide.live.accounts.store_place import StorePlace
from eventide.live.feeds.base import ClosedStep, Feed, Resume
from eventide.live.feeds.first_rows import FirstRowsRefused
from eventide.live.publisher import dry_run, setup
from eventide.live.publisher.delivery import LAST_PATIENCE, Deliveries, SinkStanding
from eventide.live.publisher.rebuilding import OtherCharges, rebuilt, repeated
from eventide.live.publisher.window_queries import NOTHING, Answering, Questions
from eventide.live.sinks.base import Sink
from eventide.live.sources.base import EventSource, Position, ReadAgain
from eventide.live.stores.base import Commit, Store, StoreState
from eventide.live.stores.memory_store import MemoryStore
from eventide.live.stores.open_store import open_store
from eventide.live.stream_spec import FeedOptions
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import Guarantee
from eventide.privacy.ledger import Entry, WindowLedger
from eventide.privacy.recorded_answers import OtherAnswers, RecordedAnswers
from eventide.releases.lines import write_line

log = logging.getLogger("eventide.live")

FORGET_EVERY = 16  # steps, where releases are kept for a while only

TOGETHER = 64  # steps that become durable in one commit at the most, where so many are at hand

NUMBERS_TOGETHER = 1 << 18  # that they have at the most, so that what waits for its commit has a bound

LOOK_FOR_NAMES = 0.5  # seconds after which the store is asked whether bins got names

SNAPSHOT_EVERY = 512  # steps; in between the answers alone are stored


class _Drawn(NamedTuple):
    """A step that is ready to be committed, and what anybody may be told of it once it is."""

    commit: Commit
    event: str
    fields: dict[str, Any]
    fullest: float = 0.0  # window, up to this step


class PublisherOptions(TypedDict, total=False):
    """What a `Publisher` may be told besides its source, mechanism, store and sinks."""

    questions: Questions | None
    population: str
    people: str | None
    new_epoch: bool
    new_columns: bool
    take_over: bool
    after_restore: bool
    longest_window: int | None
    not_before: int
    account: Account | str | Path | None
    allow_refused: bool
    keep: int
    last_patience: float
    clients: str | Path | None


class Publisher:
    """Publishes the steps of a source through a mechanism into a store, and from there to sinks.

    `Publisher.check` takes the same and only looks, as a dry run: what would be refused, where it would go on, and,
    printed, the error to expect.

    Parameters
    ----------
    source
        A feed; or, with `options`, a path, a folder, a pattern such as logs/*.csv, a list of them, "-", an address or a
        source of events.
    mechanism
        A new one. Where the store has steps already, its state is rebuilt.
    store
        A store, its path or address, or None for a run that leaves nothing behind.
    sinks
        Sinks, or paths and addresses.
    questions
        Window queries to be answered besides. Their epsilon comes on top of the mechanism's.
    population, people
        Whose events these are. Everything published about them shares a store. `people` is the older name.
    new_epoch
        Accept that the setting has changed.
    new_columns
        Accept that events are read from other columns, or with another time format, than those before.
    take_over
        Become the writer though another seems to be at work.
    after_restore
        The store is a backup: go on behind whatever the sinks hold.
    longest_window
        With after_restore, how many steps the longest window had since the backup, if it was longer than those that the
        store knows.
    not_before
        The first step that may be measured, where other stores of the same people were charged before it.
    account
        The account that everything published about these people draws from, its path or address. The mechanism's
        epsilon is the part of this store; the account says from which step on it may measure.
    allow_refused
        Publish although more than half of the first rows are refused, or no row of complete files lies between start
        and until. Without it that is an error before the first release of a store, and the store is as it was.
    keep
        For how many steps releases are kept, 0 for ever. What a sink still lacks is kept longer; charges stay.
    last_patience
        How many seconds a sink that fails may take at the end of a run, as long as it takes nothing. What it lacks then
        is an error, and is delivered by the next run.
    clients
        A file of client settings, with passwords and TLS for addresses; the one that EVENTIDE_CLIENTS names where left
        out.
    **options
        How a source is read and cut into steps: step, start, until, zone, late, time, time_format, user, bin and
        other, as a `StreamSpec` has them; follow, to go on as a file grows; continue_with, the file of a log to begin
        with where the one that was followed is not to be found; and clock. Without step a file holds counts.

    >>> import eventide as ev
    >>> mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
    >>> with ev.Publisher(ev.MemoryFeed([[3, 5], [4, 4]]), mechanism) as publisher:
    ...     publisher.run()
    ...     publisher.store.release(1)
    2
    b'{"step": 1, "fresh": true, "values": [4, 4], "scale": [2, 2]}'
    """

    def __init__(
        self,
        source: Feed | EventSource | Paths,
        mechanism: Mechanism,
        store: Store | str | Path | None = None,
        sinks: Iterable[Sink | str | Path] = (),
        *,
        questions: Questions | None = None,
        population: str = "everybody",
        people: str | None = None,
        new_epoch: bool = False,
        new_columns: bool = False,
        take_over: bool = False,
        after_restore: bool = False,
        longest_window: int | None = None,
        not_before: int = 0,
        account: Account | str | Path | None = None,
        allow_refused: bool = False,
        keep: int = 0,
        last_patience: float = LAST_PATIENCE,
        clients: str | Path | None = None,
        **options: Unpack[FeedOptions],
    ) -> None:
        self.feed = setup.feed_of(source, mechanism, options, clients)
        self._allow_refused, self._keep = allow_refused, keep
        self.store: Store = store if isinstance(store, Store) else MemoryStore()
        self._deliveries = Deliveries(self.store)
        self._place: StorePlace | None = None
        self._drawn: list[_Drawn] = []  # in order, to be committed together
        self.log_fields: dict[str, Any] = {}  # what each line of the log says besides
        self._repeats: tuple[int, dict[str, Any]] | None = (
            None  # since which step, and the last of them: not logged yet
        )
        self.next_step = self._origin = 0
        self.measured_from = 0  # steps before it repeat the last release, and cost nothing
        self.published = self.fresh_looks = 0
        self.names: BinNames | None = None
        try:
            setup.check_fit(mechanism, self.feed.promise())
            if isinstance(store, str | Path):
                self.store = open_store(store, clients=clients)
            if account is not None:
                self._place = StorePlace(account, clients)
            placed, setting = setup.as_stored(
                mechanism,
                self.feed,
                people or population,
                questions,
                self.store,
                new_epoch=new_epoch,
                account=self._place.account.name if self._place else None,
            )
            mechanism = placed.mechanism
            setup.check_columns(self.store, setting, changed=new_columns or new_epoch)
            opened = setup.sinks_of(sinks, mechanism, self.feed, self.store, clients)
            self._deliveries = Deliveries(self.store, opened, last_patience)
            if self.feed.promise().one_by_one:
                setup.hold_no_events(mechanism, questions, account)
            unseen = setup.unseen_from(self.feed, self.store, setting)
            not_before = max(not_before, setup.first_counted(self.feed, self.store), unseen)
            if self._place is not None:
                self._place.stand(self.store, setting)
                not_before = max(not_before, self._place.first_measured(after_restore=after_restore))
            state = self.store.begin(
                setting,
                new_epoch=new_epoch,
                take_over=take_over,
                after_restore=after_restore,
                not_before=not_before,
                approve=lambda next_step: self._approve(next_step, not_before, after_restore),
            )
            if after_restore:
                behind = self._deliveries.behind_all(state.next_step)
                state = self.store.after_restore(behind, not_before, longest_window or 0)
                if longest_window is None:
                    setup.warn_of_longer_windows(state, setting)
            self._stand(mechanism, questions, state, not_before)
            self._name(placed.new)
            self.store.promise(str(self.guarantee))
            if setting.read is not None:
                self.store.remember_columns(setting.read)
        except BaseException:
            self.close()
            raise

    check = staticmethod(dry_run.check)

    def publish(self, step: int, counts: Any, position: Position = None) -> bytes:
        """Publish one step and give its stored release; of a step that was published before, the one stored then.

        Parameters
        ----------
        step
            The next one, `next_step`; or one that was published before.
        counts
            As a mechanism takes them; those that come with names are matched with the bins.
        position
            Where the source is to be read again from once this step is durable.
        """
        self._publish(ClosedStep(step, counts, position))
        return self._stored(step)

    def run(self, until: int | None = None, stop: Callable[[], bool] = lambda: False) -> int:
        """Publish the feed's steps until it ends, step `until` is reached or `stop` says so; give how many.

        `stop` is asked after each step and now and then while waiting, so the step in hand is always finished. Where
        more steps are at hand it is asked before the step is durable, and so before it is counted in `published`.
        """
        before = self.published
        if until is None or self.next_step < until:
            try:
                self._run(until, stop)
            except Exception:
                self._commit()  # so that what was drawn is never drawn again because of what came after it
                raise
        return self.published - before

    def deliver(self) -> None:
        """Bring to the sinks what they lack, as far as they take it now."""
        self._deliveries.advance()

    def sinks(self) -> list[SinkStanding]:
        """How far each sink is."""
        return self._deliveries.standing()

    def finish(self) -> None:
        """Bring everything to the sinks, and let them show it."""
        self._deliveries.finish()

    def close_sinks(self) -> None:
        """Let go of the sinks: what they lack stays in the store, and the next run brings it."""
        self._deliveries.close()

    def close(self) -> None:
        """Give up the store and let go of everything."""
        self._deliveries.close()
        self.feed.close()
        self.store.close()
        if self._place is not None:
            self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.close()

    @property
    def ledger(self) -> WindowLedger:
        """What the mechanism has spent; the store also has what answers to window queries have.

        Refused while it holds charges of a step that is not committed.
        """
        self._refuse_half_way(self.next_step)
        return self.mechanism.ledger

    @property
    def epsilon(self) -> float:
        """The budget of every window, for releases and answers together."""
        return setup.total_budget(self.mechanism, self.questions) / NANO

    def worst_window(self) -> float:
        """What the fullest window has held, at the most, of releases and answers together; never above epsilon.

        Charges of a step that is not committed are left out.
        """
        return self._worst_window

    @property
    def _ledgers(self) -> list[WindowLedger]:
        ledger = self.mechanism.ledger
        return [ledger] if self._answering is None else [ledger, self._answering.ledger]

    @property
    def guarantee(self) -> Guarantee:
        """What is promised about everything that this store publishes."""
        kept = self.store.durable
        return setup.guarantee_of(self.mechanism, self.feed, self.questions, kept=kept, account=self.account)

    @property
    def account(self) -> Account | None:
        """The account that the store draws from."""
        return None if self._place is None else self._place.account

    def _approve(self, next_step: int, not_before: int, after_restore: bool) -> None:
        """Open the sinks and take the place in the account, as the only writer of the store; or refuse."""
        self._deliveries.open(next_step, may_be_ahead=after_restore)
        if self._place is not None:
            self._place.take(not_before, after_restore=after_restore)

    def _closed_steps(self) -> Iterator[ClosedStep | None]:
        """The feed's steps from the next one on; where it refuses its first rows, store and sinks are as they were."""
        while True:
            check = not (self.next_step or self._allow_refused)
            kept, keep = self.store.kept(), self.store.keep
            cells = setup.open_cells(self.mechanism, self.feed, self.store, self._origin, self.next_step)
            resume = Resume(self.next_step, self._position, self._key, kept, keep, check, cells)
            try:
                yield from self.feed.steps(resume)
                return
            except ReadAgain:
                self._commit()
            except FirstRowsRefused:
                self.store.withdraw()
                if self._place is not None:
                    self._place.withdraw()
                self._deliveries.close()
                raise

    def _run(self, until: int | None, stop: Callable[[], bool]) -> None:
        """Draw steps as they come, and commit them when no more are at hand, or a complete source closes none."""
        most, closes = self._most_together(), False
        for closed in self._closed_steps():
            self._look_for_names()
            if closed is not None:
                self._draw(closed)
            enough = stop() or (until is not None and self._next_drawn >= until)
            goes_on = closes if closed is None else closed.more
            if enough or not goes_on or len(self._drawn) >= most:
                self._commit()
            if closed is None:
                self.deliver()
                self.store.look()
            if enough or (closed is None and not getattr(self.feed, "is_due", False)):
                self._tell_repeats()
            if enough:
                return
            closes = closed is not None
        self._commit()
        self._tell_repeats()

    def _most_together(self) -> int:
        """How many steps one commit may have: one, where others have to hear of each before the next is drawn."""
        if not self.store.durable or self._place is not None or self.names is not None:
            return 1
        return max(1, min(TOGETHER, NUMBERS_TOGETHER // self.mechanism.numbers))

    def _publish(self, closed: ClosedStep) -> None:
        """Draw a step and commit it at once."""
        self._draw(closed)
        self._commit()
        self._tell_repeats()

    @property
    def _next_drawn(self) -> int:
        """The first step that is not drawn."""
        return self.next_step + len(self._drawn)

    def _draw(self, closed: ClosedStep) -> None:
        """Charge and draw a step; nobody may learn anything about it yet."""
        step = closed.index
        if step > self._next_drawn:
            raise StateError(f"step {step} cannot be published before step {self._next_drawn}")
        if step < self._next_drawn:
            return
        counts = self._counts(step, closed.counts)
        faults.passing("before-draw")
        measured = step >= self.measured_from
        if measured and self._place is not None:
            self._place.charge(step)
            faults.passing("after-charge")
        drawn = (self._measured if measured else self._repeated)(step, counts, closed.position)
        self._drawn.append(drawn._replace(commit=drawn.commit._replace(kept=closed.kept), fullest=self._fullest()))

    def _commit(self) -> None:
        """Make durable what was drawn, and then let it go."""
        group, self._drawn = self._drawn, []
        if not group:
            return
        faults.passing("before-commit")
        self.store.commit(*(drawn.commit for drawn in group))
        faults.passing("after-commit")
        last = group[-1].commit.step
        if last >= self.measured_from and self._place is not None:
            self._place.settle(last)
            faults.passing("after-settle")
        for drawn in group:
            self._committed(drawn)
        self.deliver()
        if self._keep and self.next_step // FORGET_EVERY > group[0].commit.step // FORGET_EVERY:
            lacked = [sink.last + 1 for sink in self._deliveries.standing()]
            self.store.forget_releases(min(self.next_step - self._keep, *lacked, self.next_step))

    def _committed(self, drawn: _Drawn) -> None:
        """Count the step and tell of it; until here nobody could learn anything about it."""
        self.next_step, self._position = drawn.commit.step + 1, drawn.commit.position
        self.published += 1
        self.fresh_looks += drawn.fields.get("fresh", False)
        self._worst_window = drawn.fullest
        self._tell(drawn)

    def _stand(self, mechanism: Mechanism, questions: Questions | None, state: StoreState, not_before: int) -> None:
        """Take up the place where the store stands, or begin an epoch there if the record does not lead to it."""
        timeline, alone = getattr(self.feed, "timeline", None), questions is None
        new = type(mechanism)(**mechanism.parameters()) if mechanism.decides_by_floats else None
        try:
            self.mechanism = rebuilt(mechanism, state, timeline, self.store.entries, alone=alone)
        except (OtherAnswers, OtherCharges):
            if new is None:
                raise
            mechanism, state = new, self.store.begin_apart(not_before)
            log.warning(
                "%s decides by numbers that this version or processor rounds otherwise than the one before: the store "
                "goes on with a new epoch, which measures from step %d on; until then the last release is repeated",
                type(mechanism).__name__,
                state.measured_from,
            )
            self.mechanism = rebuilt(mechanism, state, timeline)
        self.questions = questions
        self._answering = None if questions is None else Answering(questions, mechanism, state)
        self.next_step, self._origin = state.next_step, state.origin
        self.measured_from = state.measured_from
        self._position, self._key = state.position, state.key
        self._last, self._last_bins = state.last_release, self._bins_before(state)
        self._since_snapshot = len(state.recorded)
        self._worst_window = self._fullest()
        self._entries: list[Entry] = []
        if self.store.durable:
            self.mechanism.ledger.entries = self._entries

    def _name(self, new: Sequence[tuple[str, int]]) -> None:
        """Give bins that are new the spare ones that were found for them, from the next step on; know all names."""

        def given(names: BinNames, next_step: int) -> BinNames:
            for name, place in new:
                names = names.given(name, next_step, place)
            return names

        self.names = self.store.rename(given) if new else self.store.bin_names()
        self._looked_at = time.monotonic()
        if self.names is not None:
            if self.mechanism.statistics_told or self.feed.promise().one_by_one:
                raise InputError("only plain counts can have bins that come and go; leave one of them out")
            self.feed.know(self.names)

    def _look_for_names(self) -> None:
        """Learn of bins that were named or closed meanwhile."""
        if self.names is None or time.monotonic() - self._looked_at < LOOK_FOR_NAMES:
            return
        self._looked_at = time.monotonic()
        if (names := self.store.bin_names()) is not None and names != self.names:
            self.names = names
            self.feed.know(names)
            log.info("bins named", extra={"fields": {"bins": len(names.known())}})

    def _bins_before(self, state: StoreState) -> tuple[str, ...]:
        epochs = [epoch for epoch in self.store.epochs() if epoch.first_step < state.next_step]
        return epochs[-1].setting.names if epochs else ()

    def _fullest(self) -> float:
        lost = self.mechanism.ledger.loss
        return sum(int(lost(ledger.worst_charge()).item()) for ledger in self._ledgers) / NANO

    def _refuse_half_way(self, step: int) -> None:
        """Refuse where a step of the store is not the mechanism's next one: it has taken one that was not committed."""
        if self.mechanism.step != max(0, step - self._origin):
            raise StateError(
                "a step was drawn and is not committed; if its commit failed, close this publisher and open the store "
                "again"
            )

    def _measured(self, step: int, counts: Ints, position: Position) -> _Drawn:
        """A step that the mechanism answers."""
        self._refuse_half_way(step)
        self.mechanism.idle = None if self.names is None else self.names.idle(step)
        with RecordedAnswers.recording(self.mechanism.meter) as recorded:
            release = self.mechanism.release(counts)
        answered = NOTHING if self._answering is None else self._answering.take(counts)
        faults.passing("after-draw")
        told_as = release.counted_in(self.feed.promise().counted_in)
        line = write_line(told_as, self.feed.start_of(step), step, answered.answers, self._named_at(step))
        spent = release.spent + sum(entry.amount for entry in answered.entries) / NANO
        room = self.mechanism.ledger.room
        left = sum(int(room(ledger.left_nano()).item()) for ledger in self._ledgers) / NANO
        told = {"fresh": release.fresh, "spent": spent, "left": left}
        if not self.store.durable:
            return _Drawn(Commit(step, [], line, b"", None, position), "released", told)
        entries = [entry._replace(step=entry.step + self._origin) for entry in self._entries]
        self._entries.clear()
        plans_by_the_clock = self.feed.promise().one_by_one
        snapshot = self._snapshot(recorded.whole and not plans_by_the_clock)
        charges, looked = entries + answered.entries, bool(release.fresh)
        commit = Commit(step, charges, line, recorded.data(), snapshot, position, answered.plan, fresh=looked)
        return _Drawn(commit, "released", told)

    def _repeated(self, step: int, counts: Ints, position: Position) -> _Drawn:
        """A step at which nothing may be measured."""
        bins = self.mechanism.bins if self.names is None else self.names.names
        release = repeated(self._last, self._last_bins, bins, self.mechanism, step)
        self._last = write_line(release, self.feed.start_of(step), named=self._named_at(step))
        self._last_bins = bins
        commit = Commit(step, [], self._last, b"", None, position, fresh=False)
        return _Drawn(commit, "repeated", {"measured_from": self.measured_from})

    def _counts(self, step: int, counts: Any) -> Ints:
        """The counts of a step; what comes to a bin that holds nobody counts nowhere."""
        checked: Ints = self.mechanism.checked(counts if self.names is None else self.names.placed(counts))[0]
        return checked if self.names is None else np.where(self.names.idle(step), 0, checked)

    def _named_at(self, step: int) -> dict[str, str]:
        return {} if self.names is None else self.names.told(step)

    def _tell(self, drawn: _Drawn) -> None:
        """Log what may be known to anybody: no count, and no number of events."""
        if log.isEnabledFor(logging.INFO):
            step = drawn.commit.step
            fields = {**self.log_fields, "step": step, **drawn.fields, "lag": self._lag(step)}
            if drawn.event != "repeated":
                self._tell_repeats()
                log.info(drawn.event, extra={"fields": fields})
            else:
                first = step if self._repeats is None else self._repeats[0]
                self._repeats = first, fields

    def _tell_repeats(self) -> None:
        """Log the steps that only repeated since the last line in one, however many they were."""
        if self._repeats is not None:
            (first, fields), self._repeats = self._repeats, None
            log.info("repeated", extra={"fields": fields if first == fields["step"] else {"first": first, **fields}})

    def _lag(self, step: int) -> float | None:
        """The seconds since the end of a step, in whole steps: finer ones would tell how long the counting took."""
        begin, end = self.feed.start_of(step), self.feed.start_of(step + 1)
        if begin is None or end is None:
            return None
        length = datetime.fromisoformat(end) - datetime.fromisoformat(begin)
        passed = max(datetime.now(UTC) - datetime.fromisoformat(end), timedelta(0))
        return (passed // length * length).total_seconds()

    def _snapshot(self, tape_is_enough: bool) -> bytes | None:
        self._since_snapshot += 1
        if tape_is_enough and self._since_snapshot < SNAPSHOT_EVERY:
            return None
        faults.passing("before-snapshot")
        self._since_snapshot = 0
        snapshot = self.mechanism.save()
        faults.passing("after-snapshot")
        return snapshot

    def _stored(self, step: int) -> bytes:
        release = self.store.release(step)
        if release is None:
            raise StateError(f"the release of step {step} is no longer kept; give a store to look it up later")
        return release
