"""A population whose streams draw from an account: that says what each may measure, whatever its steps and windows.

Beside the stores it is written down that there is an account. Streams of the same people that were served without one
charged what the account does not know, so they are refused in either order.
"""

from __future__ import annotations

from collections.abc import Mapping

from eventide.errors import StoreError
from eventide.live.accounts.account import open_account
from eventide.live.stores.beside_stores import place_of
from eventide.service.config.settings import Config
from eventide.service.populations.record import PopulationRecord, read_record, write_record


class PopulationWithAccount:
    """The streams of a configuration that are about the people of an account."""

    is_unknown = False

    def __init__(self, name: str, config: Config) -> None:
        self.name, self._clients = name, config.server.clients
        self.streams = [stream for stream in config.streams if stream.population == name]
        self.first_steps = {stream.name: 0 for stream in self.streams}
        self._places = sorted({place_of(stream.store) for stream in self.streams})
        with open_account(config.accounts[name], read_only=True, clients=self._clients) as account:
            self._account, place = account.name, account.database.place
        record = read_record(self._places, {name}, self._clients)
        if record is not None and record.account != self._account:
            raise StoreError(
                f"streams of {name} have been served without this account, which does not know what they charged: run "
                f"`eventide account restored {place} --until TIME` with the end of their last step, remove what "
                f"is written down about {name} beside their stores, and give each stream a new store"
            )

    def settle(self, begun: Mapping[str, int]) -> None:
        """Write down that there is an account."""
        write_record(self._places, self.name, PopulationRecord([], {}, self._account), self._clients)
