"""`eventide config`: check a service's configuration, and make tokens for it.

A token is shown once; the file of tokens keeps its digest.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from eventide.errors import InputError

NOT_CHECKED = "Not checked: whether a store is a copy of one that is in use, and whether the port is free."


@click.group("config")
def command() -> None:
    """Check the configuration of a service, or make a token for it.

    \b
    Example: eventide config check eventide.toml
    """


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(ctx: click.Context, file: Path, as_json: bool) -> None:
    """Name every mistake in FILE with its line and a way out.

    If there is none, say what a start would do now: what it would refuse, which streams begin a new epoch, and until
    when a stream measures nothing. Nothing is changed. The exit code is 2 if there is a mistake or a refusal.

    \b
    Example: eventide config check eventide.toml
    """
    from eventide.cli.settings import import_from_here
    from eventide.service.config.config_file import examine
    from eventide.service.populations.population import outlook

    import_from_here()
    config, mistakes = examine(file)
    said, refused = ([], []) if config is None else outlook(config)
    if as_json:
        found = {"mistakes": mistakes, "outlook": [*said, *refused], "refused": refused}
        click.echo(json.dumps({"file": str(file), **found}))
    else:
        right = "has no mistakes, but a start would be refused:" if refused else "is right."
        click.echo("\n".join(mistakes or [f"{file} {right}", *refused, *said, NOT_CHECKED]))
    if mistakes or refused:
        ctx.exit(2)


@command.command("token")
@click.argument("role", type=click.Choice(["ingest", "read", "operate"]))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--name", help="What to call it in the file of tokens.  [default: the role]")
@click.option("--stream", "streams", multiple=True, help="Only for this stream; several may be given.")
def token(role: str, file: Path, name: str | None, streams: tuple[str, ...]) -> None:
    """Make a token for the service that FILE configures and print it; only its digest is kept.

    A running service knows it at once. To take it back, delete its line from the file of tokens.

    \b
    Example: eventide config token read eventide.toml --name dashboard
    """
    from eventide.cli.settings import import_from_here
    from eventide.service.config.config_file import read_config
    from eventide.service.http.tokens import add_token

    import_from_here()
    config = read_config(file)
    path, known = config.access.tokens, [stream.name for stream in config.streams]
    if unknown := [stream for stream in streams if stream not in known]:
        raise InputError(f"there is no stream {unknown[0]!r} in {file}; choose from {', '.join(known)}")
    click.echo(add_token(path, role, name or role, streams))
    click.echo(f"Keep it safe: it is shown only now. Its digest is in {path}.", err=True)
