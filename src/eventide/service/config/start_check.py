"""What stands in the way of a start on this machine, besides what a configuration says: looked at, and nothing changed.

Folders that are missing or closed, a certificate or a file of tokens that cannot be used, a store that another process
writes to.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import Callable
from functools import partial
from pathlib import Path

from eventide.errors import EventideError, InputError, StoreError
from eventide.live.addresses import is_address
from eventide.live.stores.sqlite_file import refuse_remains
from eventide.live.stores.writer_lock import is_held, read_note
from eventide.service.config.settings import Config, Server
from eventide.service.http.tokens import Tokens


def obstacles(config: Config) -> list[EventideError]:
    """Everything for which a start would be refused now."""
    files = [(stream.name, Path(stream.store)) for stream in config.streams if not is_address(stream.store)]
    looks: list[tuple[str, Callable[[], None]]] = [("tokens", Tokens(config.access.tokens).check)]
    looks += [("server", partial(check_certificate, config.server))]
    looks += [(f"stream {name}", partial(_check_place, store)) for name, store in files]
    return [found for where, look in looks if (found := _refusal(where, look)) is not None]


def check_certificate(server: Server) -> None:
    """Refuse a certificate and a key that are not fit for TLS; nobody is asked for a passphrase."""
    if server.certificate is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(server.certificate, server.key, password="")
    except OSError:  # also what is wrong with their content
        raise InputError(
            f"cannot use {server.certificate} and {server.key} as certificate and key; give two files in PEM form that "
            "match, the key without a passphrase"
        ) from None


def remarks(config: Config) -> list[str]:
    """What a start would not refuse and somebody should know."""
    said, tokens, log = [], config.access.tokens, config.access.log
    if not tokens.exists():
        said.append(f"there are no tokens yet at {tokens}, so nobody may send events; make one: eventide config token")
    if log is not None and not _may_write(log.parent):
        said.append(f"the access log {log} cannot be written: its folder is missing or closed")
    folders = {Path(os.path.realpath(stream.store)).parent for stream in config.streams if not is_address(stream.store)}
    said += [
        f"others may write to the folder {folder}, so they can replace a store; run: chmod go-w {folder}"
        for folder in sorted(folders)
        if folder.is_dir() and folder.stat().st_mode & 0o022
    ]
    return [*said, *strangers(config), *seen_by_all(config)]


def strangers(config: Config) -> list[str]:
    """Populations that nobody names, and streams that are taken to be about different people though they may not be."""
    named = {stream.population for stream in config.streams}
    said = [f"no stream names the population {name!r}" for name in config.populations if name not in named]
    said += [f"no stream names the population {name!r}" for name in config.accounts if name not in named]
    alone = [stream.name for stream in config.streams if stream.population == stream.name and stream.user]
    if len(alone) > 1:
        said.append(
            f"the streams {', '.join(alone)} name no population, so each is taken to be about people of its own; if "
            "they are about the same people, give all of them one population, which bounds their epsilons together"
        )
    return said


def seen_by_all(config: Config) -> list[str]:
    """For each store in PostgreSQL whose server every role may connect to: what they see there, and what to do.

    Of a pan-private stream the server is told the same, whoever sends events.
    """
    places = [stream.store for stream in config.streams if is_address(stream.store) and not stream.one_by_one]
    if not places:
        return []
    from eventide.live.stores.postgres_onlookers import onlookers

    found = (onlookers(str(place), config.server.clients) for place in places)
    return [*dict.fromkeys(filter(None, found))]


def _refusal(where: str, look: Callable[[], None]) -> EventideError | None:
    try:
        look()
    except StoreError as problem:
        return StoreError(f"{where}: {problem}")
    except InputError as problem:
        return InputError(f"{where}: {problem}")
    return None


def _check_place(path: Path) -> None:
    """Refuse a place where no store can be made, or where another process writes to one."""
    path = Path(os.path.realpath(path))  # which its lock is beside
    if not _may_write(path.parent):
        raise StoreError(f"no store can be kept at {path}: make its folder, and let eventide write there")
    if not path.exists():
        refuse_remains(path)
    elif not os.access(path, os.R_OK | os.W_OK):
        raise StoreError(f"the store {path} cannot be read and written; correct its rights or its owner")
    elif is_held(path):
        who = read_note(path).get("pid", "unknown")
        raise StoreError(f"the store {path} is in use by process {who}; a start is refused until that one has ended")


def _may_write(folder: Path) -> bool:
    return folder.is_dir() and os.access(folder, os.R_OK | os.W_OK | os.X_OK)
