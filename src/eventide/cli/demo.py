"""`eventide demo`: a synthetic city, published privately in seconds, with a picture.

It needs no data and no settings, says what is guaranteed, and writes one page that loads nothing from outside.
"""

from __future__ import annotations

import json
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from eventide.cli.demo_page import Published

EPSILON = 1.0
WINDOW = 144  # a day of ten-minute steps
FIGURES = ("error_per_place", "error_of_total", "looks", "worst_window")


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path), default="city.html", show_default=True, help="The page to write."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option("--no-browser", is_flag=True, help="Do not open the page.")
@click.option("--serve", is_flag=True, help="Publish it live, with a dashboard in the browser, until interrupted.")
@click.option("--port", type=click.IntRange(0, 65_535), default=0, metavar="N", help="Of --serve.  [default: any]")
def command(out: Path, as_json: bool, no_browser: bool, serve: bool, port: int) -> None:
    """Publish a small synthetic city privately and draw it.

    Four mechanisms publish the same city. The page shows their numbers beside the true ones, which is possible only
    because nobody lives there. With --serve one of them publishes it live: ten minutes of the city pass in a second.

    \b
    Example: eventide demo --out city.html
             eventide demo --serve
    """
    if serve:
        _serve(port, no_browser)
        return
    from eventide.cli.demo_page import IDEAS, build_page, publish_city
    from eventide.cli.html_files import check_page, write_page
    from eventide.cli.progress import naming
    from eventide.streams.city import build_city

    check_page(out)
    town = build_city(steps_per_day=WINDOW)
    with naming("Tide is compiled the first time it runs, which takes half a minute ..."):
        published = [publish_city(town, name, EPSILON, WINDOW) for name in IDEAS]
    write_page(out, build_page(town, published, EPSILON, WINDOW))
    if as_json:
        click.echo(json.dumps(_document(out, published)))
        return
    _print(published)
    click.echo(f"The picture is in {out}; it needs no network.")
    if sys.stdout.isatty() and not no_browser:
        webbrowser.open(out.resolve().as_uri())


def _serve(port: int, no_browser: bool) -> None:
    from eventide.cli.serve import require_service

    require_service()
    from eventide.cli.demo_serve import serve_city

    def told(address: str) -> None:
        click.echo(f"The city is at {address}\nPress Ctrl-C to end it; nothing stays behind.", err=True)
        if not no_browser:
            webbrowser.open(address)

    serve_city(EPSILON, WINDOW, port, told)


def _document(out: Path, published: list[Published]) -> dict[str, object]:
    return {
        "synthetic": True,
        "guarantee": published[0].guarantee,
        "epsilon": EPSILON,
        "window": WINDOW,
        "page": str(out),
        "mechanisms": [
            {"mechanism": one.name} | {figure: getattr(one, figure) for figure in FIGURES} for one in published
        ],
    }


def _print(published: list[Published]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title="A synthetic city: mean absolute errors")
    table.add_column("mechanism")
    for heading in ("per place", "of the total", "new numbers", "fullest window"):
        table.add_column(heading, justify="right")
    for one in published:
        table.add_row(
            one.title,
            f"{one.error_per_place:,.1f}",
            f"{one.error_of_total:,.0f}",
            f"{one.looks} of {len(one.values)}",
            f"{one.worst_window:.3f}",
        )
    console = Console()
    console.print(published[0].guarantee, highlight=False)
    console.print(table)
