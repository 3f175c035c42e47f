"""`eventide config`: check a service's configuration, and make tokens for it.

A token is shown once; the file of tokens keeps its digest.
"""

from __future__ import annotations

import json
from pathlib import Path

import click

from eventide.cli import EXIT_CODES
from eventide.errors import InputError, StoreError

NOT_CHECKED = (
    "Not checked: whether a store is a copy of one that is in use, whether a PostgreSQL store has a writer, and "
    "whether the port is free."
)


@click.group("config")
def command() -> None:
    """Check the configuration of a service, or make a token for it.

    \b
    Example: eventide config check eventide.toml
    """


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--new-epoch", is_flag=True, help="Check a start with --new-epoch, which accepts changed settings.")
@click.option("--errors", is_flag=True, help="Also say which error to expect of each stream; may take a moment.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def check(ctx: click.Context, file: Path, new_epoch: bool, errors: bool, as_json: bool) -> None:
    """Name every mistake in FILE with its line, and say how to correct it.

    If there is none, say what a start on this machine would do now: everything it would refuse (a folder that is
    missing, a store in use or made with other settings, a file of tokens that others may read, a certificate that
    does not match its key, an account that is not there, a package that is not installed), which streams begin a new
    epoch, and until when a stream measures nothing. Nothing is changed. The exit code is 2 if there is a mistake or a
    refusal, and 5 if only stores are in the way.

    \b
    Example: eventide config check eventide.toml
    """
    from eventide.cli.settings import import_from_here
    from eventide.service.config.config_file import examine
    from eventide.service.config.start_check import obstacles, remarks
    from eventide.service.populations.population import outlook

    import_from_here()
    config, mistakes = examine(file)
    said, problems = ([], []) if config is None else outlook(config, new_epoch=new_epoch, errors=errors)
    if config is not None:
        said, problems = [*said, *remarks(config)], [*_packages_missing(), *obstacles(config), *problems]
    refused = [str(problem) for problem in problems]
    if as_json:
        found = {"mistakes": mistakes, "outlook": [*said, *refused], "refused": refused}
        click.echo(json.dumps({"file": str(file), **found}))
    else:
        right = "has no mistakes, but a start would be refused:" if refused else "is right."
        notes = ["Notes:", *said] if said and refused else said
        click.echo("\n".join(mistakes or [f"{file} {right}", *refused, *notes, NOT_CHECKED]))
    if mistakes or refused:
        only_stores = problems and all(isinstance(problem, StoreError) for problem in problems)
        ctx.exit(EXIT_CODES[StoreError if only_stores else InputError])


def _packages_missing() -> list[InputError]:
    from eventide.cli.serve import require_service

    try:
        require_service()
    except InputError as problem:
        return [problem]
    return []


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
