"""A population whose streams draw from an account: that says what each may measure, whatever its steps and windows.

Beside the stores it is written down that there is an account. Streams of the same people that were served without one
charged what the account does not know, so they are refused in either order.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing

from eventide.errors import StoreError
from eventide.live.accounts.open_account import open_account
from eventide.live.accounts.sqlite_account import AccountMissing
from eventide.live.accounts.store_place import terms_of
from eventide.live.stores.base import StoreMissing
from eventide.live.stores.beside_stores import place_of
from eventide.live.stores.open_store import open_store
from eventide.service.config.settings import Config, StreamConfig
from eventide.service.populations.record import NAME, PopulationRecord, read_record, write_record


class PopulationWithAccount:
    """The streams of a configuration that are about the people of an account."""

    is_unknown = False

    def __init__(self, name: str, config: Config) -> None:
        self.name, self._clients = name, config.server.clients
        self.streams = [stream for stream in config.streams if stream.population == name]
        self.first_steps = {stream.name: 0 for stream in self.streams}
        self._places = sorted({place_of(stream.store) for stream in self.streams})
        try:
            with open_account(config.accounts[name], read_only=True, clients=self._clients) as account:
                self._account, place, self._window = account.name, account.database.place, account.window
                self._held = {one.publication: one.weight for one in account.tenures() if not one.ended}
        except AccountMissing as problem:
            raise AccountMissing(problem.path, name) from None
        record = read_record(self._places, {name}, self._clients)
        if record is not None and record.account != self._account:
            raise StoreError(
                f"streams of {name} were served without this account, so it does not know what they charged. Run "
                f"`eventide account restored {place} --until TIME` with the end of their last step. Then remove "
                f"{NAME.format(name)} beside their stores, and give each stream a new store"
            )

    def in_turn(self) -> list[StreamConfig]:
        """The streams in the order in which they join: those first that need less than they hold, to make room."""
        return sorted(self.streams, key=self._more)

    def _more(self, stream: StreamConfig) -> int:
        """What a stream needs beyond what it holds."""
        cap = stream.cap_in_steps()
        terms = terms_of(stream.budget, stream.window, stream.timeline(), cap.block if cap else 1)
        try:
            with closing(open_store(stream.store, read_only=True, clients=self._clients)) as store:
                held = self._held.get(store.name, 0)
        except StoreMissing:
            held = 0
        return terms.weight(self._window) - held

    def settle(self, begun: Mapping[str, int]) -> None:
        """Write down that there is an account."""
        write_record(self._places, self.name, PopulationRecord([], {}, self._account), self._clients)
