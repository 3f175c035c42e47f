"""`eventide guarantee`: one page for people who must sign it: what is published, about whom, what is promised, and the
proof. Only reads, so a publisher may go on meanwhile.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from eventide.cli import GUARANTEE_VIOLATED
from eventide.cli.addresses import warn_of_secrets

if TYPE_CHECKING:
    from eventide.events.statistics import Statistic
    from eventide.live.accounts.account_report import AccountReport
    from eventide.live.stores.base import StoreSetting
    from eventide.live.stores.budget_report import BudgetReport

HEIGHT = 320  # pixels of the chart
LIMITS = "The known limits of eventide apply: timing, the operator and the memory of the machine are not protected."


class Page(NamedTuple):
    """What stands on the page."""

    title: str
    sentences: Sequence[str]
    rows: Sequence[tuple[str, str]]  # question and answer
    times: Sequence[Any]
    held: Sequence[float]
    epsilon: float
    problems: Sequence[str]


@click.command("guarantee")
@click.argument("place", metavar="STORE_OR_ACCOUNT")
@click.option("--out", required=True, metavar="FILE.html", type=click.Path(path_type=Path), help="The page to write.")
@click.pass_context
def command(ctx: click.Context, place: str, out: Path) -> None:
    """Write one page about STORE_OR_ACCOUNT for people who must sign it, with the promise, the budget and the proof.

    Everything is verified first. Exit code 4 means that the promise was not kept; the page then says so.

    \b
    Example: eventide guarantee city.db --out guarantee.html
    """
    from eventide.cli.html_files import keep_apart, plain_page, write_page
    from eventide.live.accounts.account import is_account, open_account
    from eventide.live.accounts.account_report import account_report
    from eventide.live.stores.budget_report import budget_report
    from eventide.live.stores.open_store import open_store

    warn_of_secrets(place)
    keep_apart(out, place)
    if is_account(place):
        with open_account(place, read_only=True) as account:
            page = _of_account(account_report(account))
    else:
        with closing(open_store(place, read_only=True)) as store:
            store.verify()
            page = _of_store(budget_report(store))
    rows = [*page.rows, ("What is not protected?", LIMITS)]
    verdict = ["NOT KEPT: " + "; ".join(page.problems)] if page.problems else []
    write_page(
        out, plain_page(page.title, [*verdict, *page.sentences], _chart(page), ("question", "answer"), rows, HEIGHT)
    )
    if page.problems:
        ctx.exit(GUARANTEE_VIOLATED)


def _of_store(found: BudgetReport) -> Page:
    from eventide.privacy.amounts import NANO

    epoch = found.epochs[-1]
    setting, verified = epoch.setting, found.verification
    held = found.in_windows().tolist()
    rows = [
        ("What is published?", _published(setting)),
        ("About whom?", f"the population {setting.people!r}"),
        ("How much of one person counts?", _counted(setting)),
        ("How many steps were published?", f"{found.next_step}; number of settings so far: {len(found.epochs)}"),
        ("For how long are releases kept?", _kept(found.kept_from)),
        ("What is kept raw?", "events of the open step, in the store, until the step is published"),
        (
            "What is the proof?",
            f"every window was added up from the stored charges; the fullest held {verified.worst / NANO:g}",
        ),
    ]
    if "account" in setting.steps:
        rows.append(
            ("With what does it share its budget?", f"with all that draws from the account {setting.steps['account']}")
        )
    return Page(
        f"What is promised to {setting.people}",
        [found.guarantee],
        rows,
        list(range(len(held))),
        held,
        setting.epsilon / NANO,
        verified.problems,
    )


def _published(setting: StoreSetting) -> str:
    from eventide.events.durations import in_words

    name, every, what = setting.mechanism.get("name", "a mechanism"), "", _statistic(setting).title
    if "length" in setting.steps:
        every = f" of every {in_words(setting.steps['length'])}"
    asked = f", and answers to {len(setting.queries['queries'])} window queries" if setting.queries else ""
    return f"noisy {what}{every} in {len(setting.bins):,} bins, by the mechanism {name}{asked}"


def _kept(first: int) -> str:
    return f"those from step {first} on are kept; charges are kept for ever" if first else "nothing was erased so far"


def _counted(setting: StoreSetting) -> str:
    at_most = f"at most {float(setting.sensitivity * _statistic(setting).unit):g} in a step"
    return at_most + (
        f", and {setting.cap['events']} in each block of {setting.cap['block']} steps" if setting.cap else ""
    )


def _statistic(setting: StoreSetting) -> Statistic:
    from eventide.events.statistics import statistic_of

    return statistic_of(setting.steps)


def _of_account(found: AccountReport) -> Page:
    from eventide.events.durations import in_words
    from eventide.live.accounts.account import iso
    from eventide.privacy.amounts import NANO

    window, going_on = in_words(found.window // 1_000), [one for one in found.tenures if not one.ended]
    parts = [f"{one.publication} holds {one.weight / NANO:g}" for one in going_on]
    return Page(
        f"What is promised to {found.population}",
        [
            f"Inside any {window}, everything published about one person together costs at most epsilon "
            f"{found.epsilon / NANO:g}. Steps count as a whole.",
        ],
        [
            ("What is published?", "; ".join(parts) or "nothing at present"),
            ("About whom?", f"the population {found.population!r}"),
            ("What is left?", f"{found.free / NANO:g} is held by nobody"),
            (
                "What is the proof?",
                f"{found.entries} entries, each sealed with the one before (last seal {found.seal or 'none'}); the "
                f"fullest window held {found.worst / NANO:g}",
            ),
        ],
        [iso(one.begin) for one in found.loads],
        [one.weight / NANO for one in found.loads],
        found.epsilon / NANO,
        found.problems,
    )


def _chart(page: Page) -> dict[str, Any]:
    held = {"x": list(page.times), "y": list(page.held), "mode": "lines", "line": {"shape": "hv"}, "name": "held"}
    limit = {"x": [*page.times[:1], *page.times[-1:]], "y": [page.epsilon] * 2, "mode": "lines", "name": "epsilon"}
    axes = {"yaxis": {"title": {"text": "held by a window"}, "rangemode": "tozero"}}
    return {"data": [held, limit] if page.times else [], "layout": axes}
