"""`eventide account`: make the budget that all publications about the same people share, and look at it.

`show` only reads, so publishers may go on meanwhile.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli import GUARANTEE_VIOLATED
from eventide.cli.addresses import warn_of_secrets

if TYPE_CHECKING:
    from eventide.live.accounts.account_report import AccountReport
    from eventide.live.accounts.tenures import Tenure

WIDTH, HEIGHT = 72, 6  # of the plot, in characters


@click.group("account")
def command() -> None:
    """Make or show the budget that all publications about the same people share.

    \b
    Example: eventide account create people.account --population patients --epsilon 1 --window 7d
    """


@command.command("create")
@click.argument("address")
@click.option("--population", required=True, help="Whose events these are.")
@click.option("--epsilon", required=True, help="What one person loses at most, by everything, inside any window.")
@click.option("--window", required=True, help="The length of a window of event time, such as 7d.")
def create(address: str, population: str, epsilon: str, window: str) -> None:
    """Make an account at ADDRESS, the path of a file or postgresql://host/database#name.

    \b
    Example: eventide account create people.account --population patients --epsilon 1 --window 7d
    """
    from eventide.live.accounts.account import create_account

    warn_of_secrets(address)
    create_account(address, population, epsilon, window)
    click.echo(f"Inside any {window}, everything published about one of {population} costs at most epsilon {epsilon}.")


@command.command("show")
@click.argument("address")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(ctx: click.Context, address: str, as_json: bool) -> None:
    """Show who holds what of the account at ADDRESS, what windows held and what comes back when, and verify it.

    Everything is added up from the stored entries alone. Exit code 4 means that a window was over epsilon or a step was
    published twice, 5 that the account is damaged.

    \b
    Example: eventide account show people.account
    """
    from eventide.live.accounts.account import open_account
    from eventide.live.accounts.account_report import account_report

    warn_of_secrets(address)
    with open_account(address, read_only=True) as account:
        found = account_report(account)
    if as_json:
        click.echo(json.dumps(found.document()))
    else:
        _print(found)
    if found.problems:
        ctx.exit(GUARANTEE_VIOLATED)


@command.command("end")
@click.argument("address")
@click.argument("publication")
def end(address: str, publication: str) -> None:
    """End PUBLICATION at the account at ADDRESS: its part is free again a window after its last step.

    PUBLICATION is its store, or the name that `eventide account show` gives.

    \b
    Example: eventide account end people.account hourly.db
    """
    from eventide.live.accounts.account import iso, open_account
    from eventide.live.stores.open_store import open_store

    if "://" in publication or Path(publication).exists():
        with closing(open_store(publication, read_only=True)) as store:
            publication = store.name
    with open_account(address) as account:
        ended = account.end(publication)
        if ended.charged_until is None:
            click.echo("Ended. Nothing was charged, so its part is free now.")
        else:
            click.echo(
                f"Ended. Its part is free for steps that begin at {iso(ended.charged_until + account.window - 1)}."
            )


@command.command("restored")
@click.argument("address")
@click.option("--until", required=True, help="The end of the last step that any publication may have published.")
def restored(address: str, until: str) -> None:
    """Say that the account at ADDRESS is a backup: the last window before --until counts as fully spent.

    All publications end. They join again with --new-epoch, and repeat their last release until that window is over.

    \b
    Example: eventide account restored people.account --until 2026-03-01T00:00Z
    """
    from eventide.events.timeline import parse_time
    from eventide.events.zones import Zone
    from eventide.live.accounts.account import open_account

    with open_account(address) as account:
        account.restored(parse_time(until, Zone("UTC")))
    click.echo("All publications have ended, and the last window counts as fully spent.")


def _print(found: AccountReport) -> None:
    from eventide.cli.ledger import bar_lines
    from eventide.events.durations import in_words
    from eventide.live.accounts.account import iso
    from eventide.live.accounts.account_report import over_time
    from eventide.privacy.amounts import NANO

    window, epsilon = in_words(found.window // 1_000), found.epsilon / NANO
    click.echo(
        f"Inside any {window} of event time, everything published about one of {found.population} costs at most "
        f"epsilon {epsilon:g}. Steps count as a whole."
    )
    if values := over_time(found.loads, WIDTH):
        click.echo(f"\nheld by the windows of {window}, by the moment at which they begin")
        for row, line in enumerate(bar_lines(values, found.epsilon, WIDTH, HEIGHT)):
            click.echo(f"{f'{epsilon:g}' if row == 0 else '':>9} │{line}")
        click.echo(f"{0:>9} └ {iso(found.loads[0].begin)} to {iso(found.loads[-1].begin)}")
    click.echo("\npublications:")
    for tenure in found.tenures:
        held = tenure.weight if tenure.publication else found.epsilon
        click.echo(f"  {held / NANO:10.6g}  {_standing(found, tenure)}")
    click.echo(f"  {found.free / NANO:10.6g}  held by nobody\n")
    if found.problems:
        click.echo("\n".join(["NOT KEPT:", *(f"  {problem}" for problem in found.problems)]))
    else:
        click.echo(
            f"Verified from {found.entries} stored entries: no window was over epsilon; the fullest held "
            f"{found.worst / NANO:g}. Seal {found.seal or 'none'}."
        )


def _standing(found: AccountReport, tenure: Tenure) -> str:
    from eventide.live.accounts.account import iso
    from eventide.privacy.amounts import NANO

    name = tenure.publication or "lost entries, taken as fully spent"
    terms = tenure.terms
    part = f", part {terms.part / NANO:g} in {terms.window} steps" if terms else ""
    charged = "nothing charged" if tenure.charged_until is None else f"charged until {iso(tenure.charged_until)}"
    back = found.comes_back(tenure)
    ending = "" if not tenure.ended else ", ended"
    free = "" if back is None else f"; free for steps that begin at {iso(back)}"
    return f"{name}{part}: from {iso(tenure.since)}, {charged}{ending}{free}"
