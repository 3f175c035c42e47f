"""Figures of a study's results as images: those of a report as files, and one of them for a notebook.

They show the values of the report's page.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eventide.bench.report.field import read_field
from eventide.bench.report.figures import curve_figure, overview_figure
from eventide.bench.run.results import NOT_PRIVATE, Results, standings
from eventide.display.cards import MOST_ROWS, card
from eventide.display.drawings import Figure, TextTable, shortened, shown
from eventide.display.images import draw
from eventide.errors import InputError

KINDS = ("svg", "png")


def write_images(figures: Sequence[Figure], folder: Path) -> list[Path]:
    """Write each figure as SVG and PNG into a folder, which is made if it is not there."""
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for figure in figures:
            drawn = draw(figure.title, figure.charts)
            for kind in KINDS:
                path = folder / f"{figure.name}.{kind}"
                drawn.savefig(path, dpi=150, metadata={"Date": None} if kind == "svg" else None)
                written.append(path)
    except OSError as problem:
        raise InputError(f"cannot write to {folder}: {problem.strerror}; choose another --figures") from None
    return written


def results_card(results: Results) -> str:
    """What was studied, and how mechanisms fare."""
    about, found = results.about, standings(results)
    rows = [[shortened(each.mechanism), shown(each.median_delta), f"{each.best} of {each.contests}"] for each in found]
    table = TextTable(["mechanism", "times the best error", "best in"], rows[:MOST_ROWS])
    facts = {"streams": f"{len(about['streams']):,}", "mechanisms": f"{len(found):,}", "seed": str(about["seed"])}
    return card(f"Results of {shortened(about['study'])}", facts, table, [NOT_PRIVATE])


def draw_results(results: Results, stream: str | None, metric: str | None) -> Any:
    """How far from the best every mechanism is on every stream; of one stream, its errors over w and over epsilon."""
    field = read_field(results, metric)
    if stream is None:
        figure = overview_figure(field, without=None)
    else:
        found = [label for label, known in field.streams.items() if stream in (label, known.short)]
        if not found:
            choices = ", ".join(repr(known.short) for known in field.streams.values())
            raise InputError(f"these results hold no stream {stream!r}; choose one of {choices}")
        figure = curve_figure(field, found[0], 1, zeros=None)
    if not figure.charts:
        raise InputError(f"{stream} was studied under one setting alone; a curve needs several")
    return draw(figure.title, figure.charts)
