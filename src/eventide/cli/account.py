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
    from eventide.live.accounts.open_account import create_account
    from eventide.privacy.amounts import NANO, nano
    from eventide.privacy.guarantees import about_large

    warn_of_secrets(address)
    create_account(address, population, epsilon, window)
    for sentence in about_large(nano(epsilon) / NANO):
        click.echo(sentence, err=True)
    click.echo(f"Inside any {window}, everything published about one of {population} costs at most epsilon {epsilon}.")


@command.command("show")
@click.argument("address")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--out", metavar="FILE.html", type=click.Path(path_type=Path), help="Also draw it, on a page.")
@click.pass_context
def show(ctx: click.Context, address: str, as_json: bool, out: Path | None) -> None:
    """Show who holds how much of the account at ADDRESS, and when budget comes back; verify that no window was over.

    Everything is added up from the stored entries alone. Exit code 4 means that a window was over epsilon or a step was
    published twice, 5 that the account is damaged.

    \b
    Example: eventide account show people.account --out people.html
    """
    from eventide.cli.html_files import check_page, write_page
    from eventide.live.accounts.account_report import account_report
    from eventide.live.accounts.open_account import open_account

    warn_of_secrets(address)
    if out is not None:
        check_page(out, address)
    with open_account(address, read_only=True) as account:
        found = account_report(account)
    if out is not None:
        write_page(out, _page(found))
    _tell(ctx, found, as_json)


def _tell(ctx: click.Context, found: AccountReport, as_json: bool) -> None:
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

    PUBLICATION is its store, or the name that `eventide account show` gives. Stop its publisher first: one that is
    started again with the same store joins the account again. To keep it out but leave it its part, use `pause`.

    \b
    Example: eventide account end people.account hourly.db
    """
    from eventide.live.accounts.account import behind
    from eventide.live.accounts.moments import iso
    from eventide.live.accounts.open_account import open_account

    with open_account(address) as account:
        ended = account.end(_name_of(publication))
        if ended.charged_until is None:
            click.echo("Ended. Nothing was charged, so its part is free now.")
        else:
            click.echo(f"Ended. Its part is free for steps that begin at {iso(behind(ended, account.window))}.")
        click.echo("A publisher that is started again with this store joins the account again.")


@command.command("pause")
@click.argument("address")
@click.argument("publication")
def pause(address: str, publication: str) -> None:
    """Let nobody publish for PUBLICATION until it is resumed; it keeps its part of the account at ADDRESS.

    A publisher that is at work stops before its next release. PUBLICATION is its store, or the name that `eventide
    account show` gives.

    \b
    Example: eventide account pause people.account hourly.db
    """
    from eventide.live.accounts.open_account import open_account

    with open_account(address) as account:
        account.pause(_name_of(publication))
    click.echo("Paused. It keeps its part.")


@command.command("resume")
@click.argument("address")
@click.argument("publication")
def resume(address: str, publication: str) -> None:
    """Let a PUBLICATION that was paused go on: start its publisher again.

    \b
    Example: eventide account resume people.account hourly.db
    """
    from eventide.live.accounts.open_account import open_account

    with open_account(address) as account:
        account.resume(_name_of(publication))
    click.echo("It may go on.")


def _name_of(publication: str) -> str:
    """The name of a publication that is given as such, or by its store."""
    from eventide.live.stores.open_store import open_store

    if "://" not in publication and not Path(publication).exists():
        return publication
    with closing(open_store(publication, read_only=True)) as store:
        return store.name


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
    from eventide.live.accounts.open_account import open_account

    with open_account(address) as account:
        account.restored(parse_time(until, Zone("UTC")))
    click.echo("All publications have ended, and the last window counts as fully spent.")


@command.command("export")
@click.argument("address")
@click.option("--key", required=True, metavar="FILE", type=click.Path(path_type=Path), help="A key that only you have.")
@click.option("--out", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The file to extend.")
@click.pass_context
def export(ctx: click.Context, address: str, key: Path, out: Path) -> None:
    """Write all entries of the account at ADDRESS to a file that can be verified without the database.

    A file from an earlier export is extended, after a check that the account still says what it said. Exit code 4 means
    that it does not. The key is a
    file of at least 32 characters that you alone may read.

    \b
    Example: eventide account export people.account --key audit.key --out people.audit
    """
    from eventide.cli.html_files import keep_apart
    from eventide.live.accounts.export import NotAsExported, export_account, read_key
    from eventide.live.accounts.open_account import open_account

    warn_of_secrets(address)
    keep_apart(out, address, key)
    with open_account(address, read_only=True) as account:
        try:
            written = export_account(account, out, read_key(key))
        except NotAsExported as problem:
            click.echo(f"NOT KEPT: {problem}", err=True)
            ctx.exit(GUARANTEE_VIOLATED)
    click.echo(f"{len(written.entries)} entries. Note the last code elsewhere: {written.codes[-1]}")


@command.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--key", required=True, metavar="FILE", type=click.Path(path_type=Path), help="The key of the export.")
@click.option("--noted", metavar="CODE", help="A code that was noted before: the file must have it.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def verify(ctx: click.Context, file: Path, key: Path, noted: str | None, as_json: bool) -> None:
    """Verify an export of an account in FILE, without any database, and show what it says.

    Exit code 4 means that a line was changed, that it was exported with another key, or that a window was over epsilon.

    \b
    Example: eventide account verify people.audit --key audit.key
    """
    from eventide.live.accounts.export import NotAsExported, read_export, read_key

    try:
        exported = read_export(file, read_key(key))
        if noted is not None and noted not in exported.codes:
            raise NotAsExported(f"{file} does not have the code that was noted: lines are missing, or were replaced")
    except NotAsExported as problem:
        click.echo(f"NOT KEPT: {problem}", err=True)
        ctx.exit(GUARANTEE_VIOLATED)
    _tell(ctx, exported.report(), as_json)


def _page(found: AccountReport) -> str:
    """The same as a page with a picture."""
    from eventide.live.accounts.moments import iso
    from eventide.live.guarantee.of_account import account_part
    from eventide.live.guarantee.page import guarantee_page
    from eventide.privacy.amounts import NANO

    changes = [(iso(one.moment), f"{found.called(one.publication)}: {one.what}") for one in found.history]
    holders = [(f"holds {tenure.weight / NANO:g}", _standing(found, tenure)) for tenure in found.tenures]
    part = account_part(found)
    return guarantee_page(f"The account of {found.population}", [part._replace(answers=[*holders, *changes])])


def _verdict(found: AccountReport) -> str:
    from eventide.privacy.amounts import NANO

    if found.problems:
        return "NOT KEPT: " + "; ".join(found.problems)
    return (
        f"Verified from {found.entries} stored entries: no window was over epsilon; the fullest held "
        f"{found.worst / NANO:g}. Seal {found.seal or 'none'}."
    )


def _print(found: AccountReport) -> None:
    from eventide.cli.ledger import bar_lines
    from eventide.events.durations import in_words
    from eventide.live.accounts.account_report import over_time
    from eventide.live.accounts.moments import iso
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
    if found.history:
        click.echo("changes, and from when on:")
        for one in found.history:
            click.echo(f"  {iso(one.moment)}  {found.called(one.publication)}: {one.what}")
        click.echo("")
    click.echo(_verdict(found))


def _standing(found: AccountReport, tenure: Tenure) -> str:
    from eventide.live.accounts.moments import iso

    name = found.called(tenure.publication) if tenure.publication else "lost entries, taken as fully spent"
    part = f", {tenure.terms.sentence()}" if tenure.terms else ""
    charged = "nothing charged" if tenure.charged_until is None else f"charged until {iso(tenure.charged_until)}"
    back = found.comes_back(tenure)
    ending = ", ended" if tenure.ended else ", paused" if tenure.paused else ""
    free = "" if back is None else f"; free for steps that begin at {iso(back)}"
    return f"{name}{part}: from {iso(tenure.since)}, {charged}{ending}{free}"
