"""`eventide init`: a commented configuration to start from.

Never writes over a file that is there.
"""

from __future__ import annotations

import datetime
from pathlib import Path

import click

from eventide.errors import InputError


@click.command("init")
@click.argument("path", type=click.Path(path_type=Path), default="eventide.toml")
def command(path: Path) -> None:
    """Write a commented configuration of a service to PATH, eventide.toml if left out; never over a file that is there.

    \b
    Example: eventide init && eventide config check eventide.toml
    """
    from eventide.service.config.template import template

    today = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT00:00:00Z")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(template(today))
    except FileExistsError:
        raise InputError(f"{path} is there already; give another name") from None
    except OSError as problem:
        raise InputError(f"cannot write {path}: {problem.strerror}; choose another place") from None
    click.echo(f"Wrote {path}. Next: edit it, then run")
    for verb in ("config check", "config token ingest", "config token read", "config token operate", "serve"):
        click.echo(f"  eventide {verb} {path}")
