"""How a publisher begins: what it takes, what its store is made for, what is promised, and where it would go on.

A mechanism whose promise would not hold when steps are made durable one by one is refused before anything is charged.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

from eventide.errors import InputError
from eventide.events.bins import is_spare
from eventide.events.durations import in_words
from eventide.events.files.members import Paths
from eventide.filters.seasons import Automatic
from eventide.live.accounts.account import Account
from eventide.live.accounts.store_place import StorePlace
from eventide.live.feeds.base import Feed, Promise
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.publisher.open_cells import OpenCells
from eventide.live.publisher.spare_bins import Placed, over_places
from eventide.live.publisher.window_queries import Questions
from eventide.live.sinks.base import Sink
from eventide.live.sinks.open_sink import open_sink
from eventide.live.sources.base import EventSource
from eventide.live.stores.base import Store, StoreMissing, StoreSetting, StoreState
from eventide.live.stores.epochs import is_same, refuse_other_columns
from eventide.live.stores.memory_store import MemoryStore
from eventide.live.stores.open_store import open_store
from eventide.live.stream_spec import FeedOptions, StreamSpec
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.pan_private import ANNOUNCED, PanPrivateMechanism, what_may_be_seen
from eventide.mechanisms.publishing import why_not_published
from eventide.mechanisms.saving import as_before
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import unpack
from eventide.privacy.guarantees import THIS_RUN_ONLY, Guarantee
from eventide.privacy.noise import recorded_name
from eventide.releases.level_values import EVENTS, statistics_of

WRITE_TO_A_FILE = "To publish what is older, write it to a file, and publish the file to a new store"

log = logging.getLogger("eventide.live")

_SAID_ELSEWHERE = {
    "window",
    "bins",
    "sensitivity",
    "window_sensitivity",
    "replicas",
}  # in a setting, beside the parameters


class _StoreToBe(MemoryStore):
    """The store that would be made."""

    durable = True


@contextmanager
def reading(store: Store | str | Path | None, clients: str | Path | None = None) -> Iterator[Store]:
    """A store as a reader sees it, also where it is still to be made."""
    if store is None or isinstance(store, Store):
        yield store or MemoryStore()
        return
    try:
        opened = open_store(store, read_only=True, waits=True, clients=clients)
    except StoreMissing:
        opened = _StoreToBe()
    with closing(opened):
        yield opened


@contextmanager
def place_in(account: Account | str | Path, clients: str | Path | None = None) -> Iterator[StorePlace]:
    """A place in an account for as long as somebody looks; an account that was given stays open."""
    place = StorePlace(account, clients)
    with nullcontext() if place.account is account else closing(place):
        yield place


def feed_of(
    source: Feed | EventSource | Paths,
    mechanism: Mechanism,
    options: FeedOptions,
    clients: str | Path | None = None,
) -> Feed:
    """The feed that a publisher was given, or that of a source or of paths with these options."""
    if isinstance(source, str | Path | EventSource | Sequence):
        opening: dict[str, Any] = {
            name: options.pop(name) for name in ("follow", "continue_with", "clock") if name in options
        }
        spec = StreamSpec.for_mechanism(mechanism, options)
        return spec.feed(source, **opening, clients=clients, zone_is_given="zone" in options)
    if options:
        raise TypeError(f"a feed takes no further options; {min(options)!r} is for a path")
    return source


def sinks_of(
    places: Iterable[Sink | str | Path],
    mechanism: Mechanism,
    feed: Feed,
    store: Store,
    clients: str | Path | None = None,
) -> list[Sink]:
    """The sinks that a publisher was given, or that paths and addresses mean; none is opened yet."""
    how: dict[str, Any] = {"growing": store.durable, "starts": feed.start_of(0) is not None, "clients": clients}
    how |= {"groups": mechanism.levels and mechanism.levels.groups, "statistics": statistics(mechanism, feed)}
    return [place if isinstance(place, Sink) else open_sink(place, mechanism.bins, **how) for place in places]


def statistics(mechanism: Mechanism, feed: Feed) -> tuple[str, ...]:
    """The names of what is published of every bin."""
    if len(mechanism.statistics_told) > 1:
        return mechanism.statistics_told
    return statistics_of(feed.describe().get("statistic", EVENTS), windows=mechanism.gives_windows)


def check_fit(mechanism: Mechanism, promise: Promise) -> None:
    """Refuse a mechanism that does not fit, in one sentence."""
    if mechanism.step:
        raise InputError("the mechanism has released steps already; give a new one, the store rebuilds its state")
    if reason := why_not_published(mechanism, one_by_one=promise.one_by_one):
        raise InputError(reason)
    if mechanism.gives_windows and not promise.adds_up_in_time:
        raise InputError(
            "numbers of different people cannot be added up over steps, and this mechanism does that; choose another "
            "mechanism, or publish events"
        )
    if promise.most is not None and promise.most != mechanism.sensitivity:
        raise InputError(
            f"one person adds up to {promise.most} to a step and the mechanism's sensitivity is "
            f"{mechanism.sensitivity}; make both the same"
        )
    if promise.most is not None:
        _check_cap(mechanism, promise)


def _check_cap(mechanism: Mechanism, promise: Promise) -> None:
    """Of events the window sensitivity is what a cap keeps, and nothing else."""
    given, bound = mechanism.window_sensitivity, promise.window_sensitivity(mechanism.window)
    if bound is None and given is not None:
        raise InputError(
            "window_sensitivity is for ready-made counts. For events only a cap bounds what a person adds in a window: "
            "give one, such as cap='2/7d', or leave both out"
        )
    if given != bound:
        raise InputError(
            f"the cap {promise.cap} and a window of {mechanism.window} steps need a mechanism with "
            f"window_sensitivity={bound}, and this one has {given}; make it {bound}"
        )


def places_of(mechanism: Mechanism, store: Store | str | Path | None, clients: str | Path | None = None) -> Mechanism:
    """The mechanism over the bins that a store has: those of before, where new ones take spare bins."""
    with reading(store, clients) as stored:
        epochs = stored.epochs()
    return over_places(mechanism, epochs[-1].setting if epochs else None).mechanism


def as_stored(
    mechanism: Mechanism,
    feed: Feed,
    population: str,
    questions: Questions | None,
    store: Store,
    *,
    new_epoch: bool,
    account: str | None = None,
) -> tuple[Placed, StoreSetting]:
    """The mechanism, over the bins of the store, and its setting.

    It has the algorithm of the store's last epoch, and its seasons where nobody chose any. Older versions had none, and
    what follows from a step's length may change. With `new_epoch` both stay only if the epoch goes on with them.
    """
    epochs = store.epochs()
    last = epochs[-1].setting if epochs else None
    placed = over_places(mechanism, last)
    mechanism = placed.mechanism
    setting = setting_of(mechanism, feed, population, questions, account)
    if last is not None and setting.bins == last.bins:
        setting = setting._replace(named=last.named)
    stored = _unchosen(mechanism, last.mechanism["parameters"]) if last is not None else {}
    if last is None or all(getattr(mechanism, name) == value for name, value in stored.items()):
        return placed, setting
    kept = type(mechanism)(**mechanism.parameters() | stored)
    unchanged = setting_of(kept, feed, population, questions, account)._replace(named=setting.named)
    if new_epoch and not is_same(unchanged, last):
        return placed, setting
    return placed._replace(mechanism=kept), unchanged


def _unchosen(mechanism: Mechanism, stored: dict[str, Any]) -> dict[str, Any]:
    """What nobody chose of a mechanism's parameters, as a store has it."""
    before = as_before(type(mechanism)) | stored
    found = {name: before[name] for name in mechanism.kept_by_stores}
    if isinstance(getattr(mechanism, "seasons", None), Automatic):
        found["seasons"] = before["seasons"]
    return found


def setting_of(
    mechanism: Mechanism,
    feed: Feed,
    population: str,
    questions: Questions | None = None,
    account: str | None = None,
) -> StoreSetting:
    """The setting, with the mechanism as a saved state describes it; epsilon is for releases and answers together.

    The account whose part a store draws can never change, like its steps.
    """
    document = unpack(mechanism.save())
    given = {name: value for name, value in document["parameters"].items() if name not in _SAID_ELSEWHERE}
    return StoreSetting(
        people=population,  # as stores have always called it
        mechanism={"name": document["mechanism"], "parameters": given},
        epsilon=total_budget(mechanism, questions),
        window=mechanism.window,
        sensitivity=mechanism.sensitivity,
        bins=mechanism.bins,
        steps=feed.describe() | ({"account": account} if account else {}),
        noise=recorded_name(mechanism.source),
        queries=questions.described() if questions else None,
        window_sensitivity=mechanism.window_sensitivity,
        cap=cap._asdict() if (cap := feed.promise().cap) else None,
        named=[] if any(map(is_spare, mechanism.bins)) else None,
        read=feed.read_from() if isinstance(feed, EventFeed) else None,
    )


def check_columns(store: Store, setting: StoreSetting, *, changed: bool) -> None:
    """Refuse other columns than those of the last run, unless they are meant or nothing was released yet."""
    if store.next_step() and not changed:
        refuse_other_columns(store.epochs()[-1].setting, setting)


def guarantee_of(
    mechanism: Mechanism, feed: Feed, questions: Questions | None, *, kept: bool, account: Account | None = None
) -> Guarantee:
    """What is promised about everything that is published; `kept` where a store keeps the ledger after the run."""
    promise = feed.promise()
    about_counts = mechanism.assumptions() if promise.most is None else mechanism.covered()
    assumptions = (*about_counts, *promise.assumptions, *(what_may_be_seen(mechanism) if promise.one_by_one else ()))
    if not kept:
        assumptions = (*assumptions, THIS_RUN_ONLY)
    if account is not None:
        assumptions = (*assumptions, account.sentence())
    if questions is not None:
        assumptions = (questions.assumption(mechanism.shared_steps), *assumptions)
    return dataclasses.replace(
        mechanism.guarantee,
        epsilon=total_budget(mechanism, questions) / NANO,
        unit=promise.unit,
        assumptions=assumptions,
        exchanged=promise.exchanged,
        moved=promise.moved,
        worth=promise.worth,
        lasting=in_words(mechanism.window * length) if (length := feed.describe().get("length")) else None,
    )


def hold_no_events(mechanism: Mechanism, questions: Questions | None, account: Account | str | Path | None) -> None:
    """Make a mechanism hold events in cells alone."""
    check_cells(questions, account)
    assert isinstance(mechanism, PanPrivateMechanism)
    mechanism.hold_several_steps()


def check_cells(questions: Questions | None, account: Account | str | Path | None) -> None:
    """Refuse what does not go together with events that are held in cells alone."""
    if questions is not None:
        raise InputError("window queries hold sums of true counts while they are open; leave them or pan_private out")
    if account is not None:
        raise InputError("a pan-private publication cannot draw from an account yet; leave one of them out")


def open_cells(mechanism: Mechanism, feed: Feed, store: Store, origin: int, next_step: int) -> OpenCells | None:
    """Where the events of a feed go that holds none; new cells, where it reads events again."""
    if not (isinstance(mechanism, PanPrivateMechanism) and feed.promise().one_by_one):
        return None
    assert isinstance(feed, NoisyFeed)
    if feed.reads_again:
        mechanism.forget_cells()
    if store.durable and mechanism.pan_private == ANNOUNCED:
        store.watch_intrusions()
    return OpenCells(mechanism, store, origin, next_step, feed.last_open)


def first_counted(feed: Feed, store: Store) -> int:
    """The first step that may be measured where a live stream begins whose past nobody asked for or can have, else 0.

    Steps that were over by then are not measured, whether they have events or not: the clock alone decides. A run of
    which all steps were over before its pipe was opened is refused.
    """
    if not isinstance(feed, EventFeed) or not (feed.begins_now or feed.has_no_past) or store.epochs():
        return 0
    first = feed.first_to_come()
    if feed.has_no_past and feed.stop is not None and first >= feed.stop:
        raise InputError(
            f"all steps, until {feed.start_of(feed.stop)}, were over before standard input was opened. An event of a "
            "pipe arrives when it is read, so none would count, and nothing was published or charged. "
            f"{WRITE_TO_A_FILE}"
        )
    return first


def past_of_pipe(feed: Feed, next_step: int) -> str | None:
    """A sentence about steps for which nothing that a pipe brings can count, if there are some; by the clock alone."""
    if not (isinstance(feed, EventFeed) and feed.has_no_past and next_step < (first := feed.first_to_come())):
        return None
    return (
        f"steps before step {first} ({feed.start_of(first)}) were over before standard input was opened. An event of a "
        f"pipe arrives when it is read, so what it has of them comes too late. {WRITE_TO_A_FILE}"
    )


def passed_over(feed: Feed, next_step: int, measured_from: int) -> str | None:
    """A sentence about steps that are over and not measured, if there are some, and none that is still to come."""
    if not (isinstance(feed, EventFeed) and next_step < measured_from <= feed.first_to_come()):
        return None
    return (
        f"steps before step {measured_from} ({feed.start_of(measured_from)}) are not measured and cost no budget: they "
        "were over when measuring began. Nothing has to be done"
    )


def unseen_from(feed: Feed, store: Store, setting: StoreSetting) -> int:
    """The first step that may be measured where a new epoch begins behind a pan-private one, else 0.

    Somebody may have seen cells of steps that were open and never charged: all that have begun by now.
    """
    epochs = store.epochs()
    last = epochs[-1].setting if epochs else setting
    goes_on = is_same(last, setting)
    if goes_on or not last.mechanism["parameters"].get("pan_private") or not isinstance(feed, EventFeed):
        return 0
    return feed.step_now() + setting.apart(last)


def total_budget(mechanism: Mechanism, questions: Questions | None) -> int:
    """The epsilon of releases and answers together, in nano-epsilon."""
    return mechanism.nano_epsilon + (questions.budget if questions else 0)


def warn_of_longer_windows(state: StoreState, setting: StoreSetting) -> None:
    """Say what a restored store was taken to have lost, where nobody has said it."""
    behind = setting.reach - setting.window  # steps that a cap carries on behind a window
    log.warning(
        "the store is taken for a backup: nothing is measured before step %d. If a window since the backup had "
        "more than %d steps, stop now and start again with --after-restore and --longest-window",
        state.measured_from,
        state.measured_from - state.next_step + 1 - behind,
    )
