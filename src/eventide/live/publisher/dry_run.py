"""All that a publisher would look at, and nothing that it would do: what is refused, and where it would go on."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, NamedTuple, Unpack

from eventide.events.durations import UNITS
from eventide.events.files.members import Paths
from eventide.events.statistics import EVENTS, Statistic
from eventide.live.accounts.account import Account
from eventide.live.feeds.base import Feed
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.publisher import setup
from eventide.live.publisher.delivery import Delivery
from eventide.live.publisher.prediction import answers_told, checked, errors_of_looks, sentences
from eventide.live.publisher.window_queries import Questions
from eventide.live.sinks.base import Sink
from eventide.live.sources.base import EventSource
from eventide.live.stores.base import Epoch, Store, StoreSetting
from eventide.live.stores.epochs import epoch_for, refuse_noise
from eventide.live.stream_spec import FeedOptions
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.expected_error import Prediction, predict
from eventide.privacy.amounts import NANO
from eventide.privacy.guarantees import Guarantee


class Outlook(NamedTuple):
    """What a publisher would do if it began now. As text it says which errors to expect, which may take a moment."""

    next_step: int
    epoch: Epoch  # the one to go on with, or to begin
    before: StoreSetting | None  # of the last epoch, where another one would begin
    guarantee: Guarantee
    mechanism: Mechanism
    statistic: Statistic
    questions: Questions | None

    def expected_error(self) -> Prediction:
        """The errors to expect of the releases: by a formula, or from made-up streams that a copy publishes."""
        length = self.epoch.setting.steps.get("length")
        a_day = UNITS["d"] // length if length and length < UNITS["d"] else None
        return predict(self.mechanism, self.statistic, a_day)

    def known(self) -> dict[str, Any]:
        """What a measurement and an answer will be off by, and what a window holds at the most; ready for JSON."""
        unit = float(self.statistic.unit) if self.statistic.direct else 1.0
        answers = None if self.questions is None else self.questions.start(self.mechanism)
        spent = setup.total_budget(self.mechanism, self.questions) / NANO
        return errors_of_looks(self.mechanism, unit, answers) | {"worst_window_spent_at_most": spent}

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        mechanism, known = self.mechanism, self.known()
        report = known | {
            "bins": mechanism.size,
            "epsilon": known["worst_window_spent_at_most"],
            "window": mechanism.window,
            "window_sensitivity": mechanism.window_sensitivity,
        }
        limited = bool(self.epoch.setting.steps.get("users"))
        foreseen = sentences(self.expected_error(), limited=limited)
        place = f"It would {'go on' if self.next_step else 'begin'} with step {self.next_step}."
        return "\n".join([checked(report), place, *foreseen, *answers_told(report), str(self.guarantee)])


def check(
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
    after_restore: bool = False,
    not_before: int = 0,
    account: Account | str | Path | None = None,
    clients: str | Path | None = None,
    **options: Unpack[FeedOptions],
) -> Outlook:
    """Refuse what a publisher of these would refuse, and say where it would go on: a dry run.

    The mechanism, the queries, the sinks and the epochs of the store are looked at; nothing is written, made or
    charged. The parameters are those of `Publisher`; a feed that is given stays open.
    """
    feed = setup.feed_of(source, mechanism, options, clients)
    with (
        nullcontext() if feed is source else closing(feed),
        setup.reading(store, clients) as stored,
        nullcontext() if account is None else setup.place_in(account, clients) as place,
    ):
        setup.check_fit(mechanism, feed.promise())
        if isinstance(feed, EventFeed):
            feed.check_columns()
        if feed.promise().one_by_one:
            setup.check_cells(questions, account)
        drawn_from = place.account if place else None
        placed, setting = setup.as_stored(
            mechanism,
            feed,
            people or population,
            questions,
            stored,
            new_epoch=new_epoch,
            account=drawn_from.name if drawn_from else None,
        )
        mechanism = placed.mechanism
        setup.check_columns(stored, setting, changed=new_columns or new_epoch)
        if questions is not None:
            questions.start(mechanism)
        opened = setup.sinks_of(sinks, mechanism, feed, stored, clients)
        for sink in opened:  # before the store, which a writer at work would bring behind them
            sink.check()
        next_step, epochs = stored.next_step(), stored.epochs()
        not_before = max(not_before, setup.first_counted(feed, stored), setup.unseen_from(feed, stored, setting))
        if place is not None:
            place.stand(stored, setting)
            not_before = max(not_before, place.first_measured(after_restore=after_restore))
        if stored.durable:
            refuse_noise(setting, for_tests=stored.for_tests)
        epoch = epoch_for(stored, setting, new_epoch=new_epoch, not_before=0 if after_restore else not_before)
        for sink in opened:
            Delivery(stored, sink, next_step, may_be_ahead=after_restore)
        before = epochs[-1].setting if epochs and epoch.number == len(epochs) else None
        guarantee = setup.guarantee_of(mechanism, feed, questions, kept=stored.durable, account=drawn_from)
        statistic = feed.statistic if isinstance(feed, EventFeed) else EVENTS
        return Outlook(next_step, epoch, before, guarantee, mechanism, statistic, questions)
