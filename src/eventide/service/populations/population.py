"""A population at the start of a service: its stores are read, its streams are told when they may measure, and all is
written down for the next start.

A store that is written down and neither served nor readable is refused, never forgotten. What a start would do now is
told by `outlook`, which reads the stores and changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from eventide.errors import EventideError, InputError, StoreError
from eventide.events.clock import JUMP, SystemClock
from eventide.live.accounts.account import Account
from eventide.live.accounts.open_account import open_account
from eventide.live.addresses import is_address, without_secrets
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.noisy_feed import NoisyFeed
from eventide.live.publisher.dry_run import Outlook
from eventide.live.publisher.prediction import sentences
from eventide.live.publisher.publisher import Publisher
from eventide.live.publisher.setup import places_of, reading, sinks_of
from eventide.live.stores.base import StoreMissing, StoreSetting
from eventide.live.stores.beside_stores import address_of, place_of
from eventide.live.stores.database import Unreachable
from eventide.live.stores.epochs import differences
from eventide.live.stores.open_store import open_store
from eventide.mechanisms.base import Mechanism
from eventide.privacy.amounts import nano
from eventide.privacy.guarantees import about_large
from eventide.service.config.settings import Config, StreamConfig
from eventide.service.populations.claims import Claim, Share, StreamWindows, claims_of
from eventide.service.populations.population_with_account import PopulationWithAccount
from eventide.service.populations.record import KnownStore, PopulationRecord, read_record, write_record
from eventide.service.populations.shared_budget import Limit, Member, SharedBudget


class Served(NamedTuple):
    """A stream, the name of its store (none before it is made) and whose events that was charged for last."""

    stream: StreamConfig
    member: Member
    store: str
    people: set[str]


class Population:
    """The streams of a configuration that are about the same people.

    `now` is the time on the service's clock. With `after_restore` a store that cannot be read counts as charged until
    then. `first_steps` says for each stream which step it may measure first, as far as the others are concerned.
    """

    def __init__(self, name: str, config: Config, now: int, *, after_restore: bool = False) -> None:
        self.name, self._clients = name, config.server.clients
        self.streams = [stream for stream in config.streams if stream.population == name]
        self._epsilon = nano(config.populations.get(name, sum(stream.epsilon for stream in self.streams)))
        self._places = sorted({place_of(stream.store) for stream in self.streams})
        served = [_served(stream, self._clients) for stream in self.streams]
        called_before = {people for one in served for people in one.people} - config.populations.keys()
        record = read_record(self._places, {name} | called_before, self._clients)
        if record is not None and record.account:
            raise StoreError(
                f"the streams of {name} have drawn from an account until now; name it in the configuration, as account "
                "of the population"
            )
        self.is_unknown = record is None and any(one.member.next_step for one in served)
        self._record = record or PopulationRecord([], {})
        members, stores = [one.member for one in served], {one.store for one in served}
        self._gone = {
            store: self._read_gone(store, known, members, now, after_restore) if known.goes_on else known.claims
            for store, known in self._record.stores.items()
            if store not in stores
        }
        self._limits = self._limits_before(members)
        self.first_steps = self._first_steps(members)

    def in_turn(self) -> list[StreamConfig]:
        """The streams in the order in which they are opened."""
        return self.streams

    def settle(self, begun: Mapping[str, int]) -> None:
        """Write everything down for the next start; `begun` says which step each stream will measure first.

        The stores have one writer by now, this one, and are read once more: nobody can have charged what is not seen.
        """
        served = [_served(stream, self._clients) for stream in self.streams]
        first_steps = self._first_steps([one.member for one in served])
        if any(first > begun[stream] for stream, first in first_steps.items()):
            raise StoreError(
                f"the stores of {self.name} were charged while this service was starting; start it again, with "
                "--new-epoch"
            )
        stores = {
            store: known._replace(claims=list(self._gone[store]))
            for store, known in self._record.stores.items()
            if self._gone.get(store)
        }
        for one in served:
            stores[one.store] = KnownStore(one.stream.name, address_of(one.stream.store), list(one.member.claims))
        epsilons: list[tuple[int, int | None]] = [(limit.epsilon, limit.until) for limit in self._limits]
        record = PopulationRecord([*epsilons, (self._epsilon, None)], stores)
        write_record(self._places, self.name, record, self._clients)

    def _first_steps(self, members: Sequence[Member]) -> dict[str, int]:
        together = SharedBudget(self._epsilon, self._limits, members, self._gone)
        return {member.name: together.first_free(member) for member in members}

    def _read_gone(
        self, store: str, known: KnownStore, members: Sequence[Member], now: int, after_restore: bool
    ) -> list[Claim]:
        """The claims of a store that no stream has any more; all of them have ended."""
        try:
            address = self._with_password(known.address)
            with closing(open_store(address, read_only=True, clients=self._clients)) as opened:
                if opened.name == store:
                    return claims_of(opened)
                reason = "another store is in its place"
        except EventideError as problem:
            reason = str(problem)
        if not after_restore:
            place = without_secrets(known.address)
            raise StoreError(
                f"the store of the stream {known.stream!r} at {place} was charged for the same people "
                f"({self.name}) and cannot be read: {reason}. Put it back, or go on with --after-restore, which counts "
                "it as charged until now"
            )
        until = max([now, *(member.windows.timeline.begin(member.next_step) for member in members)])
        return [
            claim._replace(last=StreamWindows(claim.timeline, claim.window).step_of(until))
            if claim.last is None
            else claim
            for claim in known.claims
        ]

    def _with_password(self, address: str) -> str:
        """An address as the configuration writes it, where it has another store of the same database."""
        database, name, schema = address.partition("#")
        for stream in self.streams:
            if address_of(stream.store).partition("#")[0] == database:
                return str(stream.store).partition("#")[0] + name + schema
        return address

    def _limits_before(self, members: Sequence[Member]) -> list[Limit]:
        """Each epsilon that there was, with the moment until which something was charged under it."""
        ends = [
            claim.timeline.end(claim.last)
            for claims in (*self._gone.values(), *(member.claims for member in members))
            for claim in claims
            if claim.last is not None
        ]
        ends += [member.windows.timeline.begin(member.next_step) for member in members if member.keeps_its_share]
        last = max(ends, default=0) - 1
        return [
            Limit(epsilon, last if until is None else until)
            for epsilon, until in self._record.epsilons
            if until is not None or epsilon != self._epsilon
        ]


def _served(stream: StreamConfig, clients: str | None) -> Served:
    cap = stream.cap_in_steps()
    windows = StreamWindows(stream.timeline(), stream.window, cap.block if cap else 1)
    try:
        with closing(open_store(stream.store, read_only=True, clients=clients)) as store:
            claims = claims_of(store, Share(stream.budget, stream.window, cap._asdict() if cap else None))
            member = Member(stream.name, stream.budget, windows, store.next_step(), claims)
            return Served(stream, member, store.name, {epoch.setting.people for epoch in store.epochs()[-1:]})
    except StoreMissing:
        return Served(stream, Member(stream.name, stream.budget, windows, 0, ()), "", set())


def waiting(stream: StreamConfig, measured_from: int) -> str:
    """A sentence that says from when on a stream measures."""
    begins = stream.timeline().iso(measured_from)
    return (
        f"stream {stream.name} measures nothing before step {measured_from} ({begins}): until then every step repeats "
        "the last release, so that no window holds more than epsilon"
    )


def _out_of_time(stream: StreamConfig, next_step: int) -> list[str]:
    """What the clock says against a start: the store has come to a later time, or step 0 is still to come."""
    timeline, now = stream.timeline(), SystemClock().now()
    begins = timeline.begin(next_step)
    if begins <= now + max(JUMP, timeline.length):
        return []
    if next_step:
        return [
            f"the store of stream {stream.name} is ahead of this machine's clock: steps are released up to "
            f"{timeline.iso(next_step)}, and events until then do not count; correct the clock, or see the runbook"
        ]
    days = (begins - now) // 86_400_000_000
    when = f"in {days:,} days" if days else "today"
    return [f"stream {stream.name} begins at {timeline.iso(0)}, {when}: events from before are refused"]


def outlook(config: Config, *, new_epoch: bool = False, errors: bool = False) -> tuple[list[str], list[EventideError]]:
    """Sentences about all streams that would not simply go on, or begin at once; and what would be refused.

    A store or an account whose server does not answer is among the first: a file may be checked where there is none.
    Changed settings are refused unless a start with `new_epoch` is meant. With `errors` each stream is told with the
    error to expect of its releases, which may take a moment.
    """
    said: list[str] = []
    refused: list[EventideError] = []
    for name in dict.fromkeys(stream.population for stream in config.streams):
        try:
            population = population_of(name, config, SystemClock().now())
            publishing = [(stream, stream.build_mechanism()) for stream in population.in_turn()]
            with _account_to_look_at(name, config) as account:
                for stream, mechanism in publishing:
                    said += [f"stream {stream.name}: {sentence}" for sentence in about_large(float(stream.epsilon))]
                    first = population.first_steps[stream.name]
                    try:
                        prospect = _prospect(stream, mechanism, first, config.server.clients, account)
                        changed, waits = _said(stream, prospect)
                    except Unreachable as problem:
                        said.append(f"the store of stream {stream.name} was not looked at: {problem}")
                        continue
                    except EventideError as problem:
                        refused.append(_named(f"stream {stream.name} would be refused", problem))
                        continue
                    if not new_epoch:
                        refused += map(InputError, changed)
                    said += [*(changed if new_epoch else ()), *waits]
                    if errors:
                        limited = bool(prospect.epoch.setting.steps.get("users"))
                        said += [f"stream {stream.name}:", *sentences(prospect.expected_error(), limited=limited)]
        except Unreachable as problem:
            said.append(f"the stores of {name} were not looked at: {problem}")
        except EventideError as problem:
            streams = [stream for stream in config.streams if stream.population == name]
            alone = [found for stream in streams if (found := _refused_alone(stream, config.server.clients))]
            if not any(str(problem) in str(found) for found in alone):
                refused.append(_named(f"population {name}", problem))
            refused += alone
    return said, refused


def _named(who: str, problem: EventideError) -> EventideError:
    """The same refusal, which says who would be refused."""
    return (StoreError if isinstance(problem, StoreError) else InputError)(f"{who}: {problem}")


def _refused_alone(stream: StreamConfig, clients: str | None) -> EventideError | None:
    """Why the store or the outputs of a stream would be refused, where nothing can be said of its whole population."""
    try:
        with reading(stream.store, clients) as stored:
            mechanism = places_of(stream.build_mechanism(), stored)
            for sink in sinks_of(_files_of(stream), mechanism, _feed_of(stream), stored, clients):
                sink.check()
    except Unreachable:
        return None
    except EventideError as problem:
        return _named(f"stream {stream.name} would be refused", problem)
    return None


def population_of(
    name: str, config: Config, now: int, *, after_restore: bool = False
) -> Population | PopulationWithAccount:
    """The population of that name, with its own budget or with an account."""
    if name in config.accounts:
        return PopulationWithAccount(name, config)
    return Population(name, config, now, after_restore=after_restore)


@contextmanager
def _account_to_look_at(name: str, config: Config) -> Iterator[Account | None]:
    """The account of a population, if it has one, in which one outlook builds on the other."""
    if name not in config.accounts:
        yield None
        return
    with open_account(config.accounts[name], clients=config.server.clients) as account, account.pretending():
        yield account


def _prospect(
    stream: StreamConfig, mechanism: Mechanism, not_before: int, clients: str | None, account: Account | None
) -> Outlook:
    """What the publisher of a stream would do."""
    return Publisher.check(
        _feed_of(stream),
        mechanism,
        stream.store,
        _files_of(stream),
        questions=stream.questions(),
        population=stream.population,
        new_epoch=True,
        not_before=not_before,
        account=account,
        clients=clients,
    )


def _said(stream: StreamConfig, found: Outlook) -> tuple[list[str], list[str]]:
    """What has changed, if a new epoch would begin; and until when nothing would be measured, or taken."""
    changed = [] if found.before is None else [_changed(stream, found.before, found.epoch.setting)]
    first = found.epoch.measured_from
    waits = [waiting(stream, first)] if first > found.next_step else []
    return changed, [*waits, *_out_of_time(stream, found.next_step)]


def _feed_of(stream: StreamConfig) -> EventFeed | NoisyFeed:
    return (NoisyFeed if stream.one_by_one else EventFeed)(None, **stream.counting())


def _files_of(stream: StreamConfig) -> list[str | Path]:
    """The outputs that can be looked at here; what stands behind an address is seen when it is opened."""
    return [place for place in stream.out if not is_address(place)]


def _changed(stream: StreamConfig, before: StoreSetting, now: StoreSetting) -> str:
    changed = "; ".join(differences(before, now, StoreSetting._fields))
    why = changed or "other streams of the same people leave it no room at first"
    return f"stream {stream.name} begins a new epoch, which `serve` does only with --new-epoch: {why}"
