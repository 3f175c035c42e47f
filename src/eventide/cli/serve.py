"""`eventide serve`: the service and its dashboard, from a configuration.

Ends with the step in hand when it is told to stop.
"""

from __future__ import annotations

import logging
from contextlib import closing
from pathlib import Path

import click

from eventide.errors import InputError, missing_extra

LOG = logging.getLogger("eventide.live.service")


@click.command("serve")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--new-epoch", is_flag=True, help="Accept that settings of a stream have changed.")
@click.option(
    "--take-over", is_flag=True, help="Take the stores over from another process that seems to write to them."
)
@click.option("--after-restore", is_flag=True, help="The stores are backups: count their last window as fully spent.")
@click.option(
    "--longest-window",
    metavar="STEPS",
    help="With --after-restore: the longest window since the backups, in steps or as a duration, if it was longer than "
    "the stores know.",
)
@click.option("--log", type=click.Choice(["json"]), help="Log every step, as JSON on standard error.")
def command(
    config: Path,
    new_epoch: bool,
    take_over: bool,
    after_restore: bool,
    longest_window: str | None,
    log: str | None,
) -> None:
    """Serve the streams of CONFIG: events in, releases and a dashboard out.

    `eventide init` writes a configuration to start from. It listens on this machine only and answers nobody without a
    token, unless the configuration says otherwise. SIGTERM finishes the step in hand and ends with exit code 0. At
    SIGHUP the configuration is read again, and bins that are new there take spare ones while everything goes on.

    \b
    Example: eventide serve eventide.toml
    """
    require_service()
    from eventide.cli.live_log import logging_to_stderr
    from eventide.cli.settings import import_from_here
    from eventide.service.config.config_file import read_config
    from eventide.service.live_stream import Circumstances
    from eventide.service.server import Doors, serve
    from eventide.service.service import Service

    if longest_window is not None and not after_restore:
        raise InputError("--longest-window is about stores that were restored; give --after-restore as well")
    import_from_here()
    circumstances = Circumstances(new_epoch, take_over, after_restore, longest_window)
    with logging_to_stderr(log):
        settings = read_config(config)
        with closing(Doors.of(settings)) as doors:
            service = Service(settings, circumstances=circumstances)
            say = _log_where if log else _say_where
            serve(service, say, lambda: read_config(config), doors)
        LOG.info("ended, as it was told to")


def _say_where(address: str) -> None:
    click.echo(f"Listening on {address}", err=True)


def _log_where(address: str) -> None:
    LOG.info("listening", extra={"fields": {"address": address}})


def require_service() -> None:
    """Refuse in a sentence where the service's own dependencies are missing."""
    import importlib.util

    needed = ("fastapi", "uvicorn", "orjson", "prometheus_client")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise missing_extra(f"the service needs {', '.join(missing)}", "service")
