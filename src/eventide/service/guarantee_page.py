"""The page for people who must sign it, about a configuration or about a stream that runs.

Besides what stores and accounts say of themselves it says what only a service knows: how events get in, how late they
may come, who may read what, and where releases go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from eventide.events.durations import in_words, milliseconds
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import open_account
from eventide.live.addresses import is_address, without_secrets
from eventide.live.guarantee.limits import ALWAYS
from eventide.live.guarantee.of_account import account_part
from eventide.live.guarantee.of_store import store_part
from eventide.live.guarantee.over_epochs import Promised, over_all
from eventide.live.guarantee.page import Part, guarantee_page
from eventide.live.guarantee.promise import OF_ALL_STREAMS, OF_ONE_ALONE, Share, plain_promise, promised_to
from eventide.live.stores.base import StoreMissing
from eventide.live.stores.open_store import open_store
from eventide.service.config.settings import Access, Config, StreamConfig
from eventide.service.http.tokens import ROLES, Token, Tokens
from eventide.service.live_stream import LiveStream
from eventide.service.service import Service

MAY = {"ingest": "send events", "read": "read releases", "operate": "see raw figures"}


def parts_of_config(config: Config) -> list[Part]:
    """A part for each account and each stream, everything verified."""
    parts = []
    for place in config.accounts.values():
        with open_account(place, read_only=True, clients=config.server.clients) as account:
            parts.append(account_part(account_report(account)))
    tokens = Tokens(config.access.tokens).all()
    for stream in config.streams:
        readers = "; ".join(_rights(config.access, tokens, stream, _names))
        delivered = ", ".join(map(_shown, stream.out)) or "nowhere: they are read from the service"
        told = {"Who may read what?": readers, "Where are releases delivered?": delivered}
        parts.append(_of_stream(config, stream, _stored(stream, config.server.clients), told))
    return parts


def page_of_stream(service: Service, stream: LiveStream, may_see: Callable[[str], bool]) -> str:
    """The page about one stream, for whoever may read it: others are not named, nor are the holders of tokens."""
    config, settings, tokens = service.config, stream.settings, service.doorkeeper.tokens.all()
    told = {"Who may read what?": "; ".join(_rights(config.access, tokens, settings, _holders))}
    part = _of_stream(config, settings, stream.to_sign(), told)
    part = part._replace(notes=[f"For experts: {service.promised(stream, may_see)}"])
    return guarantee_page(promised_to(settings.population), [part])


def _stored(stream: StreamConfig, clients: str | None) -> Part | None:
    """What the store of a stream says, None where nothing was published."""
    try:
        with closing(open_store(stream.store, read_only=True, clients=clients)) as store:
            store.verify()
            return store_part(store, stream.store) if store.epochs() else None
    except StoreMissing:
        return None


def _of_stream(config: Config, stream: StreamConfig, stored: Part | None, told: dict[str, str]) -> Part:
    """What the store says, with what the configuration knows better."""
    total = config.populations.get(stream.population, stream.epsilon)
    told |= {
        "From which events?": _events(stream),
        "What is kept raw, and for how long?": _raw(stream),
        "How long are releases kept?": f"for {stream.keep:,} steps; charges for ever" if stream.keep else "for ever",
    }
    released = "everything that is published"
    if stream.population in config.accounts:
        released = OF_ONE_ALONE
    elif total > stream.epsilon:
        released = OF_ALL_STREAMS
        told["With what is the budget shared?"] = Share(float(stream.epsilon), float(total)).told
    past = () if stored is None else stored.past  # promised with other settings, perhaps
    whole = over_all([*past, Promised(0, float(total), stream.window)])
    length = milliseconds(stream.step)
    span = f"{in_words(whole.window * length)} ({whole.window} consecutive steps of {in_words(length)})"
    title = f"The stream {stream.name}"
    promise = plain_promise(
        stream.population,
        span,
        whole.epsilon,
        released,
        events=not stream.user and not _is_trusted(stream),
    )
    if stored is None:
        return Part(title, promise, [], None, [*told.items()], ALWAYS, "Nothing was published yet.")
    answers = [*(dict(stored.answers) | told).items()]
    return stored._replace(title=title, promise=stored.instead or promise, answers=answers)


def _is_trusted(stream: StreamConfig) -> bool:
    """Whether the bound of what a person adds is taken on trust, since nobody is remembered."""
    return stream.one_by_one and stream.max_per_step > 1


def _events(stream: StreamConfig) -> str:
    person = f"the person in {stream.user!r}" if stream.user else "each event taken for a person of its own"
    if _is_trusted(stream):
        person = f"at most {stream.max_per_step} of one person in a step, which is taken on trust"
    return (
        f"events sent over HTTP since {stream.start}, with their time in {stream.time!r} and {person}, cut into steps "
        f"of {in_words(milliseconds(stream.step))}"
    )


def _raw(stream: StreamConfig) -> str:
    if stream.one_by_one:
        return "nothing: each event goes into noisy cells as it comes, and nowhere else"
    late = f" and {stream.late} more have passed, for events that come late" if stream.late else ""
    cap = "\nkeyed hashes of the people of whom something counted: until the block of the cap is over"
    return f"events of a step, in the store: until the step is over{late}{cap if stream.cap else ''}"


def _names(held: list[Token]) -> str:
    """For the operator: whose tokens they are."""
    return ", ".join(token.name for token in held) or "nobody"


def _holders(held: list[Token]) -> str:
    """For readers: that a token is needed."""
    return "holders of a token for it" if held else "nobody"


def _rights(
    access: Access, tokens: list[Token], stream: StreamConfig, told: Callable[[list[Token]], str]
) -> Iterator[str]:
    for role in ROLES:
        held = [token for token in tokens if token.may(role) and token.sees(stream.name)]
        everybody = role == "read" and access.open_reading
        yield f"{MAY[role]}: {'everybody who reaches the service' if everybody else told(held)}"
    yield "read the store: who may read its file or its database"
    yield "requests to read are written down" if access.log else "requests are not written down"


def _shown(place: str | Path) -> str:
    return without_secrets(str(place)) if is_address(place) else Path(place).name
