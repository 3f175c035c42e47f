"""Addresses on the command line: a secret in one is seen by everybody on the machine, so whoever wrote it is told."""

from __future__ import annotations

import click


def warn_of_secrets(*addresses: str | None) -> None:
    """Say which addresses hold a secret, and where it belongs."""
    if not any("://" in address for address in addresses if address):
        return
    from eventide.live.addresses import warning_of_secret

    for address in filter(None, addresses):
        if warning := warning_of_secret(address):
            click.echo(f"Warning: {warning}", err=True)
