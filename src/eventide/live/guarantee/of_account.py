"""What the page says of an account."""

from __future__ import annotations

from eventide.events.durations import in_words
from eventide.live.accounts.account_report import AccountReport
from eventide.live.accounts.moments import iso
from eventide.live.accounts.tenures import Tenure
from eventide.live.guarantee.limits import ALWAYS, OF_ACCOUNTS
from eventide.live.guarantee.page import Budget, Part
from eventide.live.guarantee.promise import plain_promise
from eventide.privacy.amounts import NANO


def account_part(found: AccountReport) -> Part:
    """Everything about an account, from its entries."""
    window, epsilon = in_words(found.window // 1_000), found.epsilon / NANO
    going_on = [one for one in found.tenures if not one.ended]
    parts = [_holder(found, one) for one in going_on]
    budget = None
    if found.loads:
        ends = (iso(found.loads[0].begin)[:16], iso(found.loads[-1].begin)[:16])
        what = f"Held by the windows of {window}, by the moment at which they begin"
        held = [one.weight / NANO for one in found.loads]
        budget = Budget([one.begin for one in found.loads], held, epsilon, ends, what)
    return Part(
        f"Everything about {found.population}",
        plain_promise(found.population, window, epsilon, "everything that all these publications release"),
        [],
        budget,
        [
            ("What is published?", "\n".join(parts) or "nothing at present"),
            ("About whom?", f"the population {found.population!r}"),
            ("From which events?", "those of each publication, whose store has a page of its own"),
            ("How much of one person counts?", "what each publication says of itself; together at most epsilon"),
            ("What is kept raw?", "nothing: entries hold moments and amounts of budget, and no counts"),
            ("What is left?", f"{found.free / NANO:g} of epsilon {epsilon:g} is held by nobody"),
            ("What changed, and when?", "\n".join(_changes(found)) or "nothing"),
        ],
        [*OF_ACCOUNTS, *ALWAYS],
        f"Every entry was read and added up: no window held more than {found.worst / NANO:g}. {found.entries} entries, "
        f"each sealed with the one before; digest of the last: {found.seal or 'none'}.",
        found.problems,
    )


def _changes(found: AccountReport) -> list[str]:
    return [f"{iso(one.moment)}: {found.called(one.publication)} {one.what}" for one in found.history]


def _holder(found: AccountReport, tenure: Tenure) -> str:
    paused = ", paused" if tenure.paused else ""
    terms = f", {tenure.terms.sentence()}" if tenure.terms else ""
    return f"{found.called(tenure.publication)} holds {tenure.weight / NANO:g}{terms}{paused}"
