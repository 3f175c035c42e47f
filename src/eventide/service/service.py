"""Everything that runs: the streams of a configuration, their doorkeeper, and the answers to questions about them.

All streams are open or none: one that cannot be opened closes the others. What is promised counts all streams of the
same people, also those that were there before: a stream measures nothing until no window can hold too much of them.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Literal

from eventide.errors import EventideError
from eventide.events.clock import Clock, SystemClock
from eventide.live.guarantee.promise import part_of_stream
from eventide.live.notices import NOTICES
from eventide.live.publisher.setup import passed_over
from eventide.live.publisher.window_queries import Questions
from eventide.live.stores.open_store import open_store
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import Guarantee
from eventide.service.config.settings import Config
from eventide.service.config.start_check import seen_by_all, strangers
from eventide.service.http import models
from eventide.service.http.access import Doorkeeper, RequestRate
from eventide.service.http.access_log import AccessLog
from eventide.service.http.problems import unknown_stream
from eventide.service.http.tokens import Tokens
from eventide.service.live_stream import USUAL, WAITS, Circumstances, LiveStream
from eventide.service.populations.population import population_of, waiting
from eventide.service.pulse import Pulse
from eventide.service.store_wait import USUAL_PAUSES, Pauses

LOG = logging.getLogger("eventide.live.service")

Truth = Callable[[int], list[tuple[int, list[int]]]]
"""True counts of the steps from one on: of synthetic streams, which are nobody's."""


class Service:
    """The streams by name. `truth` makes them synthetic; only a demonstration has it."""

    def __init__(
        self,
        config: Config,
        clock: Clock | None = None,
        *,
        truth: Truth | None = None,
        for_tests: bool = False,
        circumstances: Circumstances = USUAL,
        pauses: Pauses = USUAL_PAUSES,
    ) -> None:
        self.config = config
        self.truth = truth
        self.pulse = Pulse()
        clock = clock or SystemClock()
        tokens = Tokens(config.access.tokens)
        tokens.check()
        rate = RequestRate(config.limits.requests_per_second)
        forgetful = [stream.name for stream in config.streams if stream.one_by_one]
        self.doorkeeper = Doorkeeper(tokens, rate, AccessLog(config.access.log), config.access.open_reading, forgetful)
        self.streams: dict[str, LiveStream] = {}
        try:
            self._open(clock, for_tests, circumstances, pauses)
            for stream in self.streams.values():
                stream.publisher.store.promise(str(self.promised(stream)))
            for sentence in (*strangers(config), *seen_by_all(config)):
                LOG.warning("%s", sentence)
        except BaseException:
            self.stop()
            raise

    def _open(self, clock: Clock, for_tests: bool, circumstances: Circumstances, pauses: Pauses) -> None:
        """Open all streams, none of which measures before the others of its people leave room for it."""
        config, restored, now = self.config, circumstances.after_restore, clock.now()
        clients = config.server.clients
        for settings in config.streams:
            # so that each is there, and of this version
            open_store(settings.store, for_tests=for_tests, clients=clients).close()
        names = dict.fromkeys(settings.population for settings in config.streams)
        populations = [population_of(name, config, now, after_restore=restored) for name in names]
        first_steps = {name: step for people in populations for name, step in people.first_steps.items()}
        for settings in (stream for people in populations for stream in people.in_turn()):
            with _refused_by_name(settings.name):
                self.streams[settings.name] = LiveStream(
                    settings,
                    clock,
                    most_waiting=config.limits.waiting_batches,
                    for_tests=for_tests,
                    circumstances=circumstances,
                    not_before=first_steps[settings.name],
                    account=config.accounts.get(settings.population),
                    clients=clients,
                    pauses=pauses,
                )
        self.streams = {settings.name: self.streams[settings.name] for settings in config.streams}
        begun = {name: max(one.measured_from, one.notices.last + 1) for name, one in self.streams.items()}
        for people in populations:
            people.settle(begun)
            if people.is_unknown:
                LOG.warning(
                    "%s.population is missing: if streams about %s were taken out of the configuration before, what "
                    "they charged is not known",
                    people.name,
                    people.name,
                )
        for one in self.streams.values():
            if passed := passed_over(one.feed, one.notices.last + 1, one.measured_from):
                NOTICES.info("stream %s: %s", one.settings.name, passed)
            elif one.measured_from > one.notices.last + 1:
                LOG.warning("%s", waiting(one.settings, one.measured_from))

    def start(self) -> None:
        """Publish all streams from now on."""
        for stream in self.streams.values():
            stream.start()

    def stop(self) -> None:
        """Finish the steps in hand and let go of the stores."""
        for stream in self.streams.values():
            stream.end_soon()
        for stream in self.streams.values():
            stream.stop()

    def take_names(self, config: Config) -> None:
        """Name the bins that are new in a configuration that was read again; whatever else is new there waits."""
        for settings in config.streams:
            if stream := self.streams.get(settings.name):
                stream.take_names(settings)
        if {settings.name for settings in config.streams} != self.streams.keys():
            LOG.warning("streams that were added or removed %s", WAITS)

    @property
    def ready(self) -> bool:
        """Whether any stream publishes: one that does not must not keep requests from the others."""
        return any(stream.ready for stream in self.streams.values())

    @property
    def failed(self) -> list[LiveStream]:
        """The streams that have stopped for good."""
        return [stream for stream in self.streams.values() if stream.failed]

    def stream(self, name: str) -> LiveStream:
        """The stream of that name."""
        if name not in self.streams:
            raise unknown_stream()
        return self.streams[name]

    def describe(self, stream: LiveStream) -> models.StreamAnswer:
        """What is public about a stream."""
        settings, following, statistic = stream.settings, stream.notices.last + 1, stream.feed.statistic
        return models.StreamAnswer(
            name=settings.name,
            population=settings.population,
            mechanism=settings.mechanism,
            filter=settings.filter,
            epsilon=float(settings.epsilon),
            window=settings.window,
            step=settings.step,
            step_seconds=stream.feed.timeline.length / 1e6,
            zone=stream.feed.timeline.zone.name,
            cap=settings.cap,
            statistic=statistic.name,
            title=statistic.title,
            unit=float(statistic.unit) if statistic.direct else None,
            statistics=list(statistic.names),
            bins=len(stream.bins) - len(stream.spare),
            next_step=following,
            next_start=stream.feed.start_of(following),
            measured_from=stream.measured_from,
            lag_seconds=stream.feed.lag(),
            health=stream.health,
            synthetic=self.truth is not None,
            questions=_described(stream.publisher.questions),
            span=getattr(stream.publisher.mechanism, "span", None),
        )

    def ledger(self, stream: LiveStream) -> models.LedgerAnswer:
        """The budget of a stream's windows."""
        epsilon, start_of = stream.settings.epsilon, stream.feed.start_of
        with stream.windows() as windows:
            history = [
                models.WindowAnswer(step=step, start=start_of(step), in_window=amount / NANO)
                for step, amount in windows.held.items()
            ]
            next_return = None
            if returning := windows.next_return():
                step, amount = returning
                next_return = models.ReturnAnswer(step=step, start=start_of(step), amount=amount / NANO)
            return models.LedgerAnswer(
                epsilon=float(epsilon),
                window=stream.settings.window,
                window_sensitivity=stream.publisher.mechanism.window_sensitivity,
                spent=windows.now / NANO,
                left=float(epsilon - Fraction(windows.now, NANO)),
                worst=windows.worst / NANO,
                worst_of=windows.worst_allowed / NANO,
                verified=windows.holds,
                next_return=next_return,
                history=history,
            )

    def promised(self, stream: LiveStream, may_see: Callable[[str], bool] = lambda name: True) -> Guarantee:
        """What is promised about the people of a stream, over all streams that they appear in.

        Others are named as far as whoever asks may see them.
        """
        own, settings = stream.publisher.guarantee, stream.settings
        same = [other.name for other in self.config.streams if other.population == settings.population]
        others = [name for name in same if name != settings.name]
        if not others or settings.population in self.config.accounts:
            return own  # which speaks of the account as well
        total = float(self.config.populations[settings.population])
        part = part_of_stream(own.epsilon, _named(others, may_see))
        return dataclasses.replace(own, epsilon=total, assumptions=(*own.assumptions, part))

    def guarantee(
        self, stream: LiveStream, may_see: Callable[[str], bool] = lambda name: True
    ) -> models.GuaranteeAnswer:
        """The same as an answer."""
        promised = self.promised(stream, may_see)
        return models.GuaranteeAnswer(
            sentence=" ".join([str(promised), *stream.promised_before()]),
            own=float(stream.settings.epsilon),
            private=promised.not_private is None,
            **dataclasses.asdict(promised),
        )

    def operations(self, stream: LiveStream) -> models.OperationsAnswer:
        """Raw figures, for operators only."""
        totals = stream.feed.totals
        return models.OperationsAnswer(
            accepted=totals.accepted,
            late=totals.late,
            left_out=stream.feed.left_out,
            left_out_by_cap=None if stream.feed.cap is None else stream.feed.left_out_by_cap,
            refused=dict(totals.refused),
            waiting=stream.feed.waiting,
        )


@contextmanager
def _refused_by_name(stream: str) -> Iterator[None]:
    """Say in a refusal which stream it is about."""
    try:
        yield
    except EventideError as problem:
        problem.args = (f"stream {stream}: {problem}",)
        raise


def _named(streams: list[str], may_see: Callable[[str], bool]) -> str:
    return ", ".join(streams) if all(map(may_see, streams)) else "other streams"


def _described(questions: Questions | None) -> models.QuestionsAnswer | None:
    if questions is None:
        return None
    queries = [models.QueryAnswer(name=str(query), window=query.window, step=query.step) for query in questions.queries]
    of: Literal["bins", "total"] = "bins" if questions.of == "bins" else "total"
    return models.QuestionsAnswer(of=of, epsilon=questions.budget / NANO, queries=queries)
