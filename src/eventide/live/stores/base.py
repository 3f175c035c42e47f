"""What a store promises, whatever database it is made of.

One commit holds everything of a step, or of several that follow each other: charges, releases, the answers behind them
and what rebuilds the mechanism and the plan of window queries. A step is committed once and never again; whoever asks
for it later gets the stored bytes. Only one writer holds a store: each commit checks the fence that the writer was
given, so one that was paused and taken over can commit nothing.

When a setting changes (a new epoch) or a backup was restored, nothing is measured until nobody's window reaches a
charge of before: `measured_from` is the first step at which the mechanism may look again.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from eventide.errors import InputError, StoreError
from eventide.events.bin_names import BinNames
from eventide.live.sources.base import Position
from eventide.live.stores.patience import Patience
from eventide.privacy.ledger import Entry


class StoreMissing(InputError):
    """There is no store where one was to be read."""


class StoreSetting(NamedTuple):
    """What a store was made for. A change of epsilon, window, bins, mechanism, queries or people is a new epoch."""

    people: str
    mechanism: dict[str, Any]  # registry name and parameters, as a saved state describes them
    epsilon: int  # nano
    window: int
    sensitivity: int
    bins: tuple[str, ...]
    steps: dict[str, Any]  # how steps are cut and events bounded; may never change in a store
    noise: str
    queries: dict[str, Any] | None = None  # the window queries that are answered besides, with their share of epsilon
    window_sensitivity: int | None = None  # the most that counts change when one person's rows in a window do
    cap: dict[str, int] | None = None  # what it follows from: how many events of a person count in how many steps
    named: list[list[Any]] | None = None  # what bins were named or closed since, and when: no change of the setting
    read: dict[str, str | None] | None = None  # from which columns events were read last, where that is known

    @property
    def bin_names(self) -> BinNames | None:
        """The names of the bins by now; None where they never change."""
        return None if self.named is None else BinNames(self.bins, self.named)

    @property
    def names(self) -> tuple[str, ...]:
        """The same as a list; spare bins that wait for a name are called so."""
        return self.bins if self.bin_names is None else self.bin_names.names

    @property
    def measured_by(self) -> str:
        """The name of the mechanism, or of those that measure several statistics; empty where it has none."""
        name = self.mechanism.get("name", "")
        if name != "several":
            return str(name)
        return ", ".join(dict.fromkeys(each["mechanism"] for each in self.mechanism["parameters"]["statistics"]))

    @property
    def block(self) -> int:
        """For how many steps it is remembered what counted of a person: 1 where nothing is.

        Ready-made counts with a window sensitivity do not say how long their blocks are: they are taken to be no longer
        than the window.
        """
        if self.window_sensitivity is None:
            return 1
        return self.window if self.cap is None else self.cap["block"]

    @property
    def reach(self) -> int:
        """Within how many consecutive steps counts change when one person's rows in a window do.

        What is remembered of a person changes counts behind the window too, until the block is over.
        """
        return self.window + self.block - 1

    def apart(self, other: StoreSetting) -> int:
        """How many steps a charge of one epoch lies behind the last one of another, so that nobody's change meets both.

        Somebody changes rows in a window of either, of which the first step is the last one that the earlier epoch
        charged. Counts of the later epoch can change until its block is over. Either epoch may be the later one here.
        """
        return max(self.window, other.window) + max(self.block, other.block) - 1

    def loss(self, charge: int) -> int:
        """What one person loses by a charge, rounded up: with a window sensitivity C, C / m of it."""
        if self.window_sensitivity is None:
            return charge
        return -(-charge * self.window_sensitivity // self.sensitivity)


class PlanRecord(NamedTuple):
    """What rebuilds a plan at work: a snapshot, what the steps since released, and the open slots, which are raw."""

    snapshot: bytes
    released: list[bytes]
    open_slots: bytes

    def __repr__(self) -> str:
        return f"<record of a plan, {len(self.released)} steps behind its snapshot>"


class PlanStep(NamedTuple):
    """What one step adds to that: the whole state (all before it can go) or what it released; and the open slots."""

    state: bytes
    open_slots: bytes
    whole: bool

    def __repr__(self) -> str:
        return f"<a plan's {'snapshot' if self.whole else 'step'}>"


class StoreState(NamedTuple):
    """Where a store stands when a writer opens it."""

    next_step: int
    origin: int  # step of the store that is the mechanism's own step 0
    measured_from: int  # before it every step repeats the last release
    snapshot: bytes | None  # of the mechanism, None at its beginning
    recorded: list[bytes]  # the answers of the steps since the snapshot, in order
    last_release: bytes | None
    position: Position
    key: bytes  # secret, drawn once per store
    plan: PlanRecord | None = None  # of the window queries, None where there are none or at their beginning

    def __repr__(self) -> str:
        return f"<state before step {self.next_step}>"


class Commit(NamedTuple):
    """Everything of one step, made durable together."""

    step: int
    entries: list[Entry]  # what the ledger was charged; steps counted as the store counts them
    release: bytes  # the JSON line, as every sink shows it
    recorded: bytes  # the answers behind it
    snapshot: bytes | None  # taken after this step, where the answers since the last one are not enough or many
    position: Position
    plan: PlanStep | None = None  # of the window queries, whose answers stand in the release
    kept: tuple[int, bytes] | None = None  # what the feed wants to have kept until another step is committed; raw
    fresh: bool = True  # False where nothing was measured, so that the release may be much like the one before


def still_kept(commits: Sequence[Commit], before: Iterable[tuple[int, bytes]] = ()) -> list[tuple[int, bytes]]:
    """What the feed wants to have kept, by these commits and before, until a step behind them is committed."""
    brought = [commit.kept for commit in commits if commit.kept is not None]
    return [each for each in [*before, *brought] if each[0] > commits[-1].step]


class Epoch(NamedTuple):
    """A stretch of steps under one setting."""

    number: int
    first_step: int
    measured_from: int
    setting: StoreSetting
    restored: bool = False  # began after a restored backup: the steps just before it count as fully spent
    guarantee: str = ""  # the sentence its publisher gave


def with_ends(epochs: Sequence[Epoch], next_step: int) -> Iterator[tuple[Epoch, int]]:
    """Each epoch with the step before which it ends; the last one ends before `next_step`."""
    return zip(epochs, [*(epoch.first_step for epoch in epochs), next_step][1:], strict=True)


class Intrusion(NamedTuple):
    """Somebody saw what a pan-private publisher holds, and it was announced.

    `first` and `last` are the steps whose cells were open then, once the publisher has noted them; of those that were
    not released, it knows that they are lost if it has started since.
    """

    number: int  # from 1
    at: int  # microseconds since 1970, UTC
    first: int = -1
    last: int = -2
    noted: bool = False


Approve = Callable[[int], None]
"""Asked, with the next step, before a store is changed for good: what it raises leaves the store as it was.

Asked again where the store's server went away meanwhile.
"""


Rename = Callable[[BinNames, int], BinNames]
"""Given the names of before and the next step, the names from now on; asked again where a server went away."""


class Store(abc.ABC):
    """A durable ledger with its releases. Made by `open_store`, used by one writer and any number of readers.

    `durable` is False for that of a run that leaves nothing behind; whatever is only for going on is not given to it.
    `for_tests` is True for one that was made for tests: it takes noise that is not private, and says so for ever.
    `name` was drawn when the store was made: it is the same wherever the store is moved to, and in no other store.
    `called` is what people call it: the name of its file or its schema. `patience` says what a writer does while the
    store cannot be used.
    """

    durable = True
    for_tests = False
    name = called = ""
    patience = Patience()

    @abc.abstractmethod
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
        """Become the writer and say where the store stands; refuse another setting unless a new epoch is wanted.

        No step before `not_before` may be measured: where the last epoch would, a new one is needed as well. A store
        that is known to have forgotten steps is refused too, unless a call of `after_restore` follows.
        """

    def withdraw(self) -> None:  # noqa: B027 - what is not durable needs no undoing
        """Undo what this writer has begun, if no step was ever committed, and give up its place."""

    def look(self) -> None:  # noqa: B027 - only a server goes away while nobody uses it
        """Called now and then while nothing is to be done: see whether the store is still there."""

    def check_place(self) -> None:  # noqa: B027 - nobody else can be the writer of what only this process knows
        """Refuse if another writer has taken this one's place, or the store is gone."""

    @abc.abstractmethod
    def after_restore(self, next_step: int, not_before: int = 0, longest_window: int = 0) -> StoreState:
        """Count the w steps before `next_step` as fully spent and go on there; what was lost is not released again.

        w is the longest window known; an epoch that was lost may have had a longer one, `longest_window`. No step
        before `not_before` may be measured.
        """

    @abc.abstractmethod
    def begin_apart(self, not_before: int = 0) -> StoreState:
        """Begin one more epoch with the setting of the last: the record before it leads nowhere any more.

        It measures only when no window holds a charge of before and one of after, and no step before `not_before`.
        """

    @abc.abstractmethod
    def commit(self, *commits: Commit) -> None:
        """Make steps durable together, erase the kept events of them, and move on; refuse if the fence has moved."""

    @abc.abstractmethod
    def release(self, step: int) -> bytes | None:
        """The stored release of a step."""

    @abc.abstractmethod
    def releases(self, first: int = 0, last: int | None = None) -> Iterator[tuple[int, bytes]]:
        """Stored releases in order, from `first` up to and including `last`."""

    def kept_from(self) -> int:
        """The first step whose release is kept; of those before only the charges are."""
        return 0

    def forget_releases(self, before: int) -> None:  # noqa: B027 - what is not durable is not kept
        """Erase the releases of steps before one, as far as nothing is rebuilt from them; their charges stay."""

    @abc.abstractmethod
    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All ledger entries from step `first` on, in order of steps."""

    @abc.abstractmethod
    def epochs(self) -> list[Epoch]:
        """All epochs in order."""

    @abc.abstractmethod
    def next_step(self) -> int:
        """The first step that is not released."""

    @abc.abstractmethod
    def delivered(self, sink: str) -> int:
        """The last step that a sink has confirmed, -1 before the first."""

    @abc.abstractmethod
    def deliver(self, sink: str, step: int) -> None:
        """Remember that a sink has confirmed everything up to a step."""

    @abc.abstractmethod
    def keep(self, tallies: Iterable[tuple[int, bytes]], batch: str | None = None) -> bool:
        """Keep open events of a source that cannot replay, durably; False if `batch` was kept before."""

    @abc.abstractmethod
    def kept(self) -> list[tuple[int, bytes]]:
        """The open events kept, by step, and what commits brought to be kept until a step."""

    def bin_names(self) -> BinNames | None:
        """The names that the bins of the last epoch have by now; None where they never change."""
        epochs = self.epochs()
        return epochs[-1].setting.bin_names if epochs else None

    @abc.abstractmethod
    def rename(self, change: Rename) -> BinNames:
        """Name or close bins, durably; whoever writes to the store meanwhile goes on, and learns of it soon."""

    def watch_intrusions(self) -> None:  # noqa: B027 - nobody can announce anything to what only this process knows
        """Get ready for announcements of intrusions."""

    def announce_intrusion(self, at: int) -> int:
        """Announce, from any process, that somebody saw what the publisher holds; give the announcement's number."""
        raise StoreError("an intrusion is announced through a store; give one")

    def note_intrusion(self, number: int, first: int, last: int) -> None:  # noqa: B027
        """Remember which steps were open at an intrusion."""

    def is_told_of_intrusion(self) -> bool:
        """Whether there may be a new announcement; asked before each event."""
        return False

    def last_intrusion(self) -> int:
        """The number of the last announcement, 0 before the first."""
        return 0

    def intrusions(self) -> list[Intrusion]:
        """All announcements in order."""
        return []

    def promise(self, guarantee: str) -> None:  # noqa: B027 - a store that nobody reads later keeps nothing
        """Keep the sentence that the publisher of this epoch gives, for whoever reads the store."""

    def remember_columns(self, read: dict[str, str | None]) -> None:  # noqa: B027 - as above
        """Keep from which columns events are read from now on."""

    def verify(self) -> None:  # noqa: B027 - what is not durable cannot be damaged
        """Read everything and refuse if a bit of it has changed."""

    @abc.abstractmethod
    def close(self) -> None:
        """Give up the writer's place and let go."""
