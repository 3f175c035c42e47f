"""What happened to the publications of an account, from which moment of event time on, and why: told from its entries.

Charges and settlements are no news and are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from eventide.live.accounts.moments import iso
from eventide.live.accounts.tenures import Tenure
from eventide.live.accounts.windows import Terms

LOST = "entries of the account were lost"
ENDED = {
    "operator": "ended by the operator",
    "account restored": "ended, since the account was restored from a backup",
}


class Change(NamedTuple):
    """From a moment on, something is other than before."""

    publication: str  # "" where it is about the account
    moment: int
    what: str


def change(tenures: Mapping[int, Tenure], event: Mapping[str, Any]) -> Change | None:
    """What an entry changes for those who look at an account, None where nothing; `tenures` are those before it."""
    if event["kind"] == "begin":
        return _begun(tenures.values(), event)
    tenure = tenures[event["tenure"]]
    reached = tenure.since if tenure.charged_until is None else tenure.charged_until
    match event["kind"], event.get("why"):
        case "pause", _:
            return Change(tenure.publication, reached, "paused; it keeps its part")
        case "resume", _:
            return Change(tenure.publication, reached, "may go on")
        case "end", ("other terms" | "store restored"):
            return None  # what begins in its place says so
        case "end", why if tenure.publication:
            return Change(tenure.publication, reached, ENDED.get(str(why), "ended"))
        case "settle", _ if not tenure.publication:
            return Change("", event["until"], f"{LOST}: the window before counts as fully spent")
    return None


def _begun(before: Iterable[Tenure], event: Mapping[str, Any]) -> Change | None:
    if not event["publication"]:
        return None
    same = [one.terms for one in before if one.publication == event["publication"] and one.terms]
    terms, since = Terms(*event["terms"]), event["since"]
    what = f"begins with {terms.sentence()}"
    if "restored_at" in event:
        what = f"goes on after its store was restored from a backup, with {terms.sentence()}"
    elif same and same[-1] != terms:
        what = f"{same[-1].sentence()} becomes {terms.sentence()}"
    elif same:
        what = f"joins again with {terms.sentence()}"
    if (wanted := event.get("wanted", since)) < since:
        what += f"; asked for from {iso(wanted)} on, but a window that meets an earlier step could be over epsilon"
    return Change(event["publication"], since, what)
