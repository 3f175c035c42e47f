"""What an account holds, told and verified from its entries alone.

Verified is: every entry is sealed as it was written, and none is missing before the last; every weight is what its
terms make it; nothing began where entries were lost; no window ever held more than epsilon, nor could one if all parts
are used; no step was charged after it was settled, and none was settled twice. The seals have no key: they find damage,
not forgery.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from eventide.live.accounts.account import Account, behind, sealed
from eventide.live.accounts.history import Change, change
from eventide.live.accounts.moments import iso
from eventide.live.accounts.tenures import Tenure, after
from eventide.live.accounts.windows import Load, load
from eventide.privacy.amounts import NANO


class AccountReport(NamedTuple):
    """An account at one moment."""

    population: str
    epsilon: int  # nano
    window: int  # microseconds
    tenures: Sequence[Tenure]
    loads: Sequence[Load]  # of what was charged
    entries: int
    seal: str  # of the last entry
    problems: Sequence[str]
    history: Sequence[Change] = ()
    names: Mapping[str, str] = MappingProxyType({})  # what people call publications

    @property
    def worst(self) -> int:
        """What the fullest window held."""
        return max((weight for _, weight in self.loads), default=0)

    @property
    def free(self) -> int:
        """What no publication holds; part of it may be in use by what has ended until it comes back."""
        return self.epsilon - sum(tenure.weight for tenure in self.tenures if not tenure.ended)

    def called(self, publication: str) -> str:
        """What people call a publication, with the name by which the account knows it."""
        name = self.names.get(publication)
        return f"{name} ({publication})" if name else publication or "the account"

    def comes_back(self, tenure: Tenure) -> int | None:
        """From which moment on steps do not meet what an ended tenure was charged, None while it goes on."""
        return behind(tenure, self.window) if tenure.ended and tenure.charged_until is not None else None

    def document(self) -> dict[str, Any]:
        """The report for programs."""
        return {
            "population": self.population,
            "epsilon": self.epsilon / NANO,
            "window_seconds": self.window / 1_000_000,
            "free": self.free / NANO,
            "publications": [self._described(tenure) for tenure in self.tenures],
            "history": [
                {"publication": one.publication or None, "from": iso(one.moment), "what": one.what}
                for one in self.history
            ],
            "windows": [{"begin": iso(begin), "held": weight / NANO} for begin, weight in self.loads],
            "worst": self.worst / NANO,
            "entries": self.entries,
            "seal": self.seal,
            "problems": list(self.problems),
            "verified": not self.problems,
        }

    def _described(self, tenure: Tenure) -> dict[str, Any]:
        terms = tenure.terms
        return {
            "publication": tenure.publication or None,
            "called": self.names.get(tenure.publication),
            "part": terms and terms.part / NANO,
            "holds": (tenure.weight if tenure.publication else self.epsilon) / NANO,
            "window_steps": terms and terms.window,
            "step_seconds": terms and terms.length / 1_000_000,
            "since": iso(tenure.since),
            "charged_from": _shown(tenure.charged_from),
            "charged_until": _shown(tenure.charged_until),
            "settled_until": _shown(tenure.settled_until),
            "paused": tenure.paused and not tenure.ended,
            "ended": tenure.ended,
            "comes_back": _shown(self.comes_back(tenure)),
        }


def account_report(account: Account) -> AccountReport:
    """Read every entry of an account; one that is not what was written is refused."""
    with account.database.reading():
        entries = account.database.all("SELECT number, event, seal FROM entry ORDER BY number")
        stored = account.tenures()
    seal = b""
    for expected, (number, text, found) in enumerate(entries):
        seal = sealed(account.name, seal, number, text)
        if number != expected or seal != bytes(found):
            raise account.damaged()
    texts = [text for _, text, _ in entries]
    report = report_of(account.population, account.epsilon, account.window, texts, seal.hex())
    if list(report.tenures) != stored:
        raise account.damaged()
    return report


def report_of(population: str, epsilon: int, window: int, entries: Sequence[str], seal: str) -> AccountReport:
    """What entries come to, one after the other, and every rule that they break."""
    tenures: dict[int, Tenure] = {}
    problems, history, names = [], [], {}
    for text in entries:
        event = json.loads(text)
        problems += _broken_rules(tenures, event)
        if (changed := change(tenures, event)) is not None:
            history.append(changed)
        if event.get("called"):
            names[event["publication"]] = event["called"]
        tenures[event["tenure"]] = after(tenures.get(event["tenure"]), event)
    told = list(tenures.values())
    problems += _wrong_weights(told, window) + _too_early(told, window)
    charged = load((hold for one in told for hold in one.charged()), window)
    problems += _over(charged, epsilon, "held")
    held = load((hold for one in told for hold in one.held()), window)
    problems += _over(held, epsilon, "may come to hold")
    return AccountReport(population, epsilon, window, told, charged, len(entries), seal, problems, history, names)


def _broken_rules(tenures: dict[int, Tenure], event: dict[str, Any]) -> list[str]:
    if event["kind"] not in ("charge", "settle"):
        return []
    tenure, until = tenures[event["tenure"]], event["until"]
    settled = [
        one.settled_until
        for one in tenures.values()
        if one.publication == tenure.publication and one.settled_until is not None
    ]
    broken = []
    if tenure.publication and any(until <= moment for moment in settled):
        broken.append(f"a step until {iso(until)} was charged or settled again after it was published")
    if tenure.ended and event["kind"] == "charge":
        broken.append(f"a step until {iso(until)} was charged though its publication had ended")
    if event["kind"] == "charge" and event["since"] < tenure.since:
        broken.append(f"a step until {iso(until)} was charged though its publication was to begin later")
    if event["kind"] == "settle" and tenure.charged_until != until:
        broken.append(f"a step until {iso(until)} was published without a charge")
    return broken


def _wrong_weights(tenures: Sequence[Tenure], window: int) -> list[str]:
    return [
        f"publication {one.publication} holds {one.weight / NANO:g} where its terms need more"
        for one in tenures
        if one.terms and one.weight < one.terms.weight(window)
    ]


def _too_early(tenures: Sequence[Tenure], window: int) -> list[str]:
    return [
        f"publication {one.publication} began at {iso(one.since)}, within the window before that was lost"
        for lost in tenures
        if not lost.publication
        for one in tenures[lost.number + 1 :]
        if one.publication and one.since < behind(lost, window)
    ]


def _over(loads: Sequence[Load], epsilon: int, verb: str) -> list[str]:
    return [
        f"the window that begins at {iso(begin)} {verb} {weight / NANO:g}, more than epsilon {epsilon / NANO:g}"
        for begin, weight in loads
        if weight > epsilon
    ]


def over_time(loads: Sequence[Load], columns: int) -> list[int]:
    """The most that windows held in each of so many equal stretches of time, for a picture.

    >>> over_time([Load(0, 3), Load(10, 7), Load(12, 0), Load(20, 0)], 4)
    [3, 3, 7, 0]
    """
    if len(loads) < 2:
        return []
    first, last = loads[0].begin, loads[-1].begin
    borders = [first + (last - first) * column // columns for column in range(columns + 1)]
    ends = [*(one.begin for one in loads[1:]), last + 1]
    return [
        max(
            (one.weight for one, end in zip(loads, ends, strict=True) if one.begin < upper and end > lower),
            default=0,
        )
        for lower, upper in pairwise(borders)
    ]


def _shown(moment: int | None) -> str | None:
    return None if moment is None else iso(moment)
