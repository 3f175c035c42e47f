"""Tenures of an account, and the events that make them: the account is what its entries say, one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from eventide.live.accounts.windows import Holding, Terms

NOBODY, PAUSED = 0, -1  # no tokens of processes


class Tenure(NamedTuple):
    """A publication under unchanged terms."""

    number: int
    publication: str  # "" where entries of the account were lost, so that anybody may have charged it
    terms: Terms | None
    weight: int  # nano
    since: int  # no charge begins before
    ended: bool = False
    token: int = NOBODY  # of the process that may charge; an older one may not any more
    charged_from: int | None = None
    charged_until: int | None = None
    settled_until: int | None = None

    @property
    def settled(self) -> bool:
        """Whether no charge is open."""
        return self.charged_until == self.settled_until

    @property
    def paused(self) -> bool:
        """Whether nobody may charge for it until it is resumed."""
        return self.token == PAUSED

    def charged(self) -> list[Holding]:
        """Where it was charged, if anywhere."""
        if self.charged_from is None:
            return []
        return [Holding(self.charged_from, self.charged_until, self.weight)]

    def held(self) -> list[Holding]:
        """Where it holds its weight: without end until it has ended."""
        return self.charged() if self.ended else [Holding(self.since, None, self.weight)]

    def row(self) -> tuple[Any, ...]:
        """The tenure as a row of its table."""
        return (*self._replace(terms=json.dumps(self.terms), ended=int(self.ended)),)  # type: ignore[arg-type]


def tenure_of(row: Iterable[Any]) -> Tenure:
    """The tenure that `row` wrote."""
    tenure = Tenure(*row)
    terms = json.loads(tenure.terms)  # type: ignore[arg-type]
    return tenure._replace(terms=terms and Terms(*terms), ended=bool(tenure.ended))


def after(tenure: Tenure | None, event: dict[str, Any]) -> Tenure:
    """A tenure after an event: what writers store, and what a check from the entries alone comes to as well."""
    if tenure is None:
        terms = event["terms"] and Terms(*event["terms"])
        return Tenure(event["tenure"], event["publication"], terms, event["weight"], event["since"])
    match event["kind"]:
        case "open":
            return tenure._replace(token=event["token"])
        case "charge":
            since = event["since"] if tenure.charged_from is None else min(event["since"], tenure.charged_from)
            return tenure._replace(charged_from=since, charged_until=event["until"])
        case "settle":
            return tenure._replace(settled_until=event["until"])
        case "pause":
            return tenure._replace(token=PAUSED)
        case "resume":
            return tenure._replace(token=NOBODY)
        case "end":
            return tenure._replace(ended=True)
    raise ValueError(event["kind"])
