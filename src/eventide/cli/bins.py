"""`eventide bins`: the bins of a store, names for spare ones, and bins that are closed, while publishing goes on."""

from __future__ import annotations

import json
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from eventide.cli.addresses import warn_of_secrets
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.live.stores.base import Store


@click.command("bins")
@click.argument("store")
@click.option("--name", metavar="NEW", help="Give a spare bin this name.")
@click.option("--close", "ended", metavar="BIN", help="Stop counting events of this bin; its releases stay.")
@click.option(
    "--from",
    "start",
    metavar="STEP",
    help="From which step on: its number, or a time.  [default: the next step to begin]",
)
@click.option("--like", metavar="BIN", help="With --name, where there are levels: put it into the groups of this bin.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    store: str, name: str | None, ended: str | None, start: str | None, like: str | None, as_json: bool
) -> None:
    """List the bins of STORE, give a spare bin a name, or close a bin.

    Whoever publishes to the store goes on: no step is lost, no new epoch begins, nothing is charged. A name is given
    once and stays. Take names from public knowledge, such as the plan of a new ward, never from events.

    \b
    Example: eventide bins city.db
             eventide bins city.db --name harbour --from 2026-12-01
             eventide bins city.db --close mall
    """
    from eventide.live.publisher.naming import close_bin, name_bin
    from eventide.live.stores.open_store import open_store

    warn_of_secrets(store)
    if name is not None and ended is not None:
        raise InputError("--name and --close do different things; give one of them at a time")
    if name is None and (like is not None or (start is not None and ended is None)):
        raise InputError("--from and --like need --name or --close; give one of these too")
    with closing(open_store(store, read_only=True)) as opened:  # which makes no store
        if name is None and ended is None:
            click.echo(json.dumps(_listed(opened)) if as_json else _told(_listed(opened)))
            return
    with closing(open_store(store)) as opened:
        if name is not None:
            names = name_bin(opened, name, start, like)
            done = f"{name} counts from step {{}} on"
        else:
            assert ended is not None
            names = close_bin(opened, ended, start)
            done = f"{ended} is closed from step {{}} on"
        said = next(each for each in names.said if each.name == (name or ended or "").strip())
        click.echo(done.format(said.first if name is not None else said.end), err=True)
        if as_json:
            click.echo(json.dumps(_listed(opened)))


def _listed(store: Store) -> dict[str, Any]:
    """All bins, in the order of the values of a release."""
    from eventide.events.bin_names import BinNames
    from eventide.events.bins import is_spare
    from eventide.live.publisher.spare_bins import groups_of
    from eventide.live.stores.stored_releases import levels_of

    if not (epochs := store.epochs()):
        raise InputError("this store has no bins yet; publish first")
    setting = epochs[-1].setting
    names, levels = BinNames(setting.bins, setting.named or ()), levels_of(setting)
    said = {each.place: each for each in names.said}
    waiting = [setting.named is not None and is_spare(name) for name in names.names]
    bins = [
        {
            "name": name,
            "spare": waiting[place],
            "from": said[place].first if place in said else None if waiting[place] else 0,
            "closed": said[place].end if place in said else None,
        }
        | ({} if levels is None else {"groups": list(groups_of(levels, names.places[place]))})
        for place, name in enumerate(names.names)
    ]
    return {"bins": bins, "spare": sum(waiting), "next_step": store.next_step()}


def _told(listed: dict[str, Any]) -> str:
    lines = []
    for each in listed["bins"]:
        facts = ["waits for a name"] if each["spare"] else []
        facts += [f"from step {each['from']}"] if each["from"] else []
        facts += [f"closed from step {each['closed']} on"] if each["closed"] is not None else []
        facts += [f"in {', '.join(each['groups'])}"] if each.get("groups") else []
        lines.append(f"{each['name']}{': ' if facts else ''}{'; '.join(facts)}")
    spare = f"{listed['spare']} spare {'bin' if listed['spare'] == 1 else 'bins'} left"
    return "\n".join([*lines, f"{spare}; the next step is {listed['next_step']}"])
