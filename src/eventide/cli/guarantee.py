"""`eventide guarantee`: one page for people who must sign it: what is published, about whom, what is promised, and the
proof. Only reads, so a publisher may go on meanwhile.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eventide.cli import GUARANTEE_VIOLATED
from eventide.cli.addresses import warn_of_secrets

if TYPE_CHECKING:
    from eventide.live.guarantee.page import Part


@click.command("guarantee")
@click.argument("place", metavar="STORE_OR_CONFIG_OR_ACCOUNT")
@click.option("--out", required=True, metavar="FILE.html", type=click.Path(path_type=Path), help="The page to write.")
@click.pass_context
def command(ctx: click.Context, place: str, out: Path) -> None:
    """Write one page about STORE_OR_CONFIG_OR_ACCOUNT for people who must sign it.

    It says what is published, about whom and from which events, what is promised, what the budget was over time, who
    may read what, what is kept raw, what is not protected, and the proof. Everything is verified first. Exit code 4
    means that the promise was not kept; the page then says so.

    \b
    Example: eventide guarantee city.db --out guarantee.html
    """
    from eventide.cli.html_files import check_page, write_page
    from eventide.live.guarantee.page import guarantee_page

    warn_of_secrets(place)
    check_page(out, place)
    title, parts = _parts(place)
    write_page(out, guarantee_page(title, parts))
    click.echo(f"The page is in {out}; it needs no network.")
    if any(part.problems for part in parts):
        ctx.exit(GUARANTEE_VIOLATED)


def _parts(place: str) -> tuple[str, list[Part]]:
    """What the page says, and its title."""
    from eventide.live.accounts.account_report import account_report
    from eventide.live.accounts.open_account import is_account, open_account
    from eventide.live.guarantee.of_account import account_part
    from eventide.live.guarantee.of_store import store_part
    from eventide.live.guarantee.promise import promised_to
    from eventide.live.stores.open_store import open_store

    if place.endswith(".toml"):
        return _parts_of_config(Path(place))
    if is_account(place):
        with open_account(place, read_only=True) as account:
            found = account_report(account)
        return promised_to(found.population), [account_part(found)]
    with closing(open_store(place, read_only=True)) as store:
        store.verify()
        part = store_part(store, place)
        people = store.epochs()[-1].setting.people
    return promised_to(people), [part]


def _parts_of_config(path: Path) -> tuple[str, list[Part]]:
    from eventide.cli.serve import require_service
    from eventide.cli.settings import import_from_here
    from eventide.live.guarantee.promise import promised_to

    require_service()
    from eventide.service.config.config_file import read_config
    from eventide.service.guarantee_page import parts_of_config

    import_from_here()
    config = read_config(path)
    names = ", ".join(dict.fromkeys(stream.population for stream in config.streams))
    return promised_to(names), parts_of_config(config)
