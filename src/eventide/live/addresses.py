"""Addresses of brokers, databases and receivers: where a secret may stand in one, and the same address without it."""

from __future__ import annotations

import re
from pathlib import Path

_PARTS = re.compile(r"([^:/?#]*://)(?:([^/?#]*)@)?([^?#]*)(?:\?([^#]*))?(.*)", re.DOTALL)
_SECRET_OPTIONS = ("password", "sslpassword")


def is_address(place: str | Path) -> bool:
    """Whether a place is an address rather than a path."""
    return "://" in str(place)


def without_secrets(address: str) -> str:
    """An address as it may be shown or written down; a path stays as it is.

    Of NATS the user goes as well, since one without a password is a token.

    >>> without_secrets("postgresql://eventide:secret@db/city?password=secret&sslmode=require#visits")
    'postgresql://eventide@db/city?sslmode=require#visits'
    >>> without_secrets("nats://secret@127.0.0.1/VISITS")
    'nats://127.0.0.1/VISITS'
    """
    found = _PARTS.fullmatch(address)
    if found is None:
        return address
    scheme, user, host, options, name = found.groups(default="")
    user = "" if scheme == "nats://" else user.partition(":")[0]
    kept = [option for option in options.split("&") if option.partition("=")[0] not in _SECRET_OPTIONS]
    return scheme + user + "@" * bool(user) + host + "?" * any(kept) + "&".join(kept) + name


def warning_of_secret(address: str) -> str | None:
    """What to tell somebody who wrote a secret into an address on the command line; None where there is none."""
    if without_secrets(address) == address:
        return None
    return (
        f"the {address.partition('://')[0]}:// address holds a password, which everybody on this machine can see in "
        "the list of processes; move it to a file of client settings, and name that file with EVENTIDE_CLIENTS"
    )
