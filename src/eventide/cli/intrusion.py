"""`eventide intrusion`: announce that somebody saw what a pan-private publisher holds, while it runs or later."""

from __future__ import annotations

from contextlib import closing

import click

from eventide.cli.addresses import warn_of_secrets


@click.command("intrusion")
@click.argument("store")
def command(store: str) -> None:
    """Announce that somebody has seen the memory of whoever publishes to STORE.

    A running publisher or service adds new noise to every cell before it counts the next event. Open steps are charged
    for what was seen. If none is running, the next one does not measure the steps that are open now. For streams with
    pan_private="announced".

    \b
    Example: eventide intrusion wards.db
    """
    from eventide.errors import InputError
    from eventide.events.clock import SystemClock
    from eventide.live.stores.open_store import open_store

    warn_of_secrets(store)
    with closing(open_store(store, read_only=True)) as found:
        epochs = found.epochs()
    mode = epochs[-1].setting.mechanism["parameters"].get("pan_private") if epochs else None
    if mode == "single":
        raise InputError(
            "pan_private=single protects against one intrusion, and that has happened now; to be protected against "
            "further ones, publish with --set pan_private=announced and --new-epoch"
        )
    if mode is None:
        raise InputError("this stream is not pan-private: whoever saw its memory or its store saw the open step")
    with closing(open_store(store)) as opened:
        opened.announce_intrusion(SystemClock().now())
    click.echo(
        "Announced. Whoever publishes to this store draws fresh noise before the next event, and charges what was seen."
    )
