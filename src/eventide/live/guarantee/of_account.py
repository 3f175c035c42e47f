"""What the page says of an account."""

from __future__ import annotations

from eventide.events.durations import in_words
from eventide.live.accounts.account_report import AccountReport
from eventide.live.accounts.moments import iso
from eventide.live.guarantee.limits import ALWAYS, OF_ACCOUNTS
from eventide.live.guarantee.page import Budget, Part
from eventide.live.guarantee.promise import plain_promise
from eventide.privacy.amounts import NANO


def account_part(found: AccountReport) -> Part:
    """Everything about an account, from its entries."""
    window, epsilon = in_words(found.window // 1_000), found.epsilon / NANO
    going_on = [one for one in found.tenures if not one.ended]
    parts = [f"{one.publication} holds {one.weight / NANO:g}{' (paused)' if one.paused else ''}" for one in going_on]
    budget = None
    if found.loads:
        ends = (iso(found.loads[0].begin), iso(found.loads[-1].begin))
        what = f"Held by the windows of {window}, by the moment at which they begin"
        held = [one.weight / NANO for one in found.loads]
        budget = Budget([one.begin for one in found.loads], held, epsilon, ends, what)
    return Part(
        f"Everything about {found.population}",
        plain_promise(found.population, window, epsilon, "everything that all these publications release"),
        [],
        budget,
        [
            ("What is published?", "; ".join(parts) or "nothing at present"),
            ("About whom?", f"the population {found.population!r}"),
            ("What is left?", f"{found.free / NANO:g} of epsilon {epsilon:g} is held by nobody"),
            ("What changed, and when?", "; ".join(_changes(found)) or "nothing"),
        ],
        [*OF_ACCOUNTS, *ALWAYS],
        f"Every entry was read and added up: no window held more than {found.worst / NANO:g}. {found.entries} entries, "
        f"each sealed with the one before; digest of the last: {found.seal or 'none'}.",
        found.problems,
    )


def _changes(found: AccountReport) -> list[str]:
    return [f"{iso(one.moment)}: {one.publication or 'the account'} {one.what}" for one in found.history]
