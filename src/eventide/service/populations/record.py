"""What is written down about a population, beside its stores: which stores there are, what those that are gone have
charged, and what its epsilon was.

So streams that are taken out of the configuration are remembered, whatever becomes of their stores.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import NamedTuple

from eventide.errors import StoreError
from eventide.live.addresses import without_secrets
from eventide.live.stores.beside_stores import read_beside, write_beside
from eventide.live.stores.digests import digest
from eventide.service.populations.claims import Claim

NAME = "{}.population"


class KnownStore(NamedTuple):
    """A store: the stream that it was of, where it is, and its claims; of one that goes on the last claim is open."""

    stream: str
    address: str
    claims: list[Claim]

    @property
    def goes_on(self) -> bool:
        """Whether it was charged when this was written down, so that it may have been charged since."""
        return any(claim.last is None for claim in self.claims)


class PopulationRecord(NamedTuple):
    """What is known: each epsilon there was, with the moment until which it was (None: still), and stores by name.

    Where there is an account, its name, and nothing else: all that was charged is known there.
    """

    epsilons: list[tuple[int, int | None]]
    stores: dict[str, KnownStore]
    account: str = ""


def read_record(
    places: Collection[str], populations: Collection[str], clients: str | None = None
) -> PopulationRecord | None:
    """What is written down in all these places under all these names, None where nothing is."""
    epsilons: set[tuple[int, int | None]] = set()
    stores: dict[str, KnownStore] = {}
    found, account = False, ""
    for place in places:
        for name in map(NAME.format, populations):
            if (text := read_beside(place, name, clients)) is not None:
                found = True
                record = _read(text, f"{name} in {_shown(place)}")
                epsilons.update(record.epsilons)
                account = account or record.account
                for store, known in record.stores.items():  # one that may go on must be looked at
                    stores[store] = known if known.goes_on else stores.get(store, known)
    return PopulationRecord(sorted(epsilons, key=str), stores, account) if found else None


def write_record(
    places: Collection[str], population: str, record: PopulationRecord, clients: str | None = None
) -> None:
    """Write it down in all these places, where it is not there already."""
    stores = {
        name: known._asdict() | {"claims": [claim._asdict() for claim in known.claims]}
        for name, known in record.stores.items()
    }
    body = {"epsilons": record.epsilons, "stores": stores} | ({"account": record.account} if record.account else {})
    text = json.dumps(body | {"digest": _digest(body)}, indent=1)
    for place in places:
        if read_beside(place, NAME.format(population), clients) != text:
            write_beside(place, NAME.format(population), text, clients)


def _read(text: str, where: str) -> PopulationRecord:
    try:
        body = json.loads(text)
        if body.pop("digest") != _digest(body):
            raise ValueError
        epsilons = [(epsilon, until) for epsilon, until in body["epsilons"]]
        stores = {
            name: KnownStore(known["stream"], known["address"], [Claim(**claim) for claim in known["claims"]])
            for name, known in body["stores"].items()
        }
        return PopulationRecord(epsilons, stores, body.get("account", ""))
    except (ValueError, TypeError, KeyError, AttributeError):
        raise StoreError(
            f"{where} is not what the service wrote: put back a copy of it. It says what streams have charged that are "
            "no longer in the configuration. If no stream was taken out within the last window, remove the file"
        ) from None


def _digest(body: Mapping[str, object]) -> str:
    return digest(json.dumps(body, sort_keys=True)).hex()


def _shown(place: str) -> str:
    """A folder, or a database without the user and the password in its address."""
    return without_secrets(place).rpartition("@")[2]
