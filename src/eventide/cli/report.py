"""`eventide report`: draw the results of a study on one page, or compare two.

The page loads nothing from anywhere, and shows true counts of generated streams and of those named as public alone.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.cli.progress import naming
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.bench.report.comparisons import Rank


@click.command("report")
@click.argument("results", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option("--out", required=True, type=click.Path(path_type=Path), metavar="PATH", help="The .html page to write.")
@click.option("--metric", metavar="NAME", help="The error to judge by.  [default: the first of the study]")
@click.option(
    "--without", metavar="NAME", help="Show the heat maps without and with this mechanism.  [default: tide, if there]"
)
@click.option(
    "--public",
    multiple=True,
    metavar="NAME",
    help="A stream whose true counts may be shown next to its releases, besides generated ones. May be repeated.",
)
@click.option(
    "--reference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Figures of the benchmark's public code (CSV), to tell where and why ours differ.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of the streams named by --public.  [default: EVENTIDE_DATA]",
)
@click.option("--figures", type=click.Path(path_type=Path), metavar="DIR", help="Write each figure as an image too.")
@click.option(
    "--format",
    "kinds",
    multiple=True,
    type=click.Choice(("pdf", "svg", "png")),
    help="The kind of these images; may be repeated.  [default: all three]",
)
@click.option(
    "--table",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the mean errors as a table as well: .csv, or .tex for a paper.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    results: Path,
    other: Path | None,
    out: Path,
    metric: str | None,
    without: str | None,
    public: tuple[str, ...],
    reference: Path | None,
    data: Path | None,
    figures: Path | None,
    kinds: tuple[str, ...],
    table: Path | None,
    as_json: bool,
) -> None:
    """Write a page about RESULTS, a file that `eventide bench` wrote; with OTHER, compare the two.

    The page begins with a verdict in plain words and loads nothing from anywhere. It shows true counts of generated
    streams and of those named by --public alone. Results are computed from true counts: neither they nor the page are
    private releases.

    \b
    Example: eventide report results.parquet --out report.html
    Example: eventide report results.parquet --out report.html --table errors.tex
    Example: eventide report results.parquet --out report.html --figures figures --format pdf
    """
    from eventide.bench import build_report, read_results
    from eventide.bench.report.figures import IMAGE_KINDS, write_images
    from eventide.bench.report.paper_table import table_writer
    from eventide.bench.report.scores import read_scores
    from eventide.cli.html_files import check_page, write_page
    from eventide.display.images import require_matplotlib

    check_page(out, results, other, reference)
    if figures is not None:
        require_matplotlib()
    elif kinds:
        raise InputError("--format is the kind of images; say where they go, with --figures DIR")
    tabulate = None if table is None else table_writer(table)
    with naming("reading") as tell:
        read = read_results(results)
        report = build_report(
            read,
            None if other is None else read_results(other),
            metric=metric,
            without=without,
            public=public,
            reference=reference,
            data=data,
            tell=tell,
        )
        write_page(out, report.page)
        if table is not None and tabulate is not None:
            write_page(table, tabulate(read_scores(read, metric)), "--table")
        images = []
        if figures is not None:
            tell("writing images")
            images = write_images(report.figures, figures, kinds or IMAGE_KINDS)
    document = {
        "out": str(out),
        "figures": [str(path) for path in images],
        "table": table and str(table),
        "verdict": report.verdict,
        "ranking": [_document(rank) for rank in report.ranking],
    }
    click.echo(json.dumps(document) if as_json else "\n".join([*report.verdict, "", f"The report is {out}."]))


def _document(rank: Rank) -> dict[str, Any]:
    """A rank without NaN, which JSON does not know."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in rank._asdict().items()
    }
