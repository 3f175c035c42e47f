"""Pages that verbs write: how a page gets into its file, and a plain one of sentences, a chart and a table.

Texts are escaped, and a page loads nothing from anywhere.
"""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eventide.display.pages import embedded, filled, paragraphs
from eventide.display.replacing import IN_PAGES, refuse_foreign
from eventide.errors import InputError


def keep_apart(out: Path, *sources: str | Path | None) -> None:
    """Refuse to write over a file that is read."""
    if out.exists() and any(source and Path(source).exists() and out.samefile(source) for source in sources):
        raise InputError(f"--out {out} is the file that is read, and would be lost; choose another place")


def check_page(out: Path, *sources: str | Path | None) -> None:
    """Refuse, before any work, a page that cannot be written or opened, or would replace what it is made from.

    Or any other file that is no page of ours.
    """
    keep_apart(out, *sources)
    if out.suffix and not {".html", ".htm"}.intersection(map(str.lower, out.suffixes)):
        raise InputError(
            f"{out} must end in .html: the page is made for a browser. For a PDF write FILE.html, open it in a browser "
            "and print it to a file"
        )
    if out.is_dir() or not os.access(out if out.exists() else out.parent, os.W_OK):
        raise InputError(f"cannot write {out}; choose a file in a folder that exists and may be written to with --out")
    refuse_foreign(out, IN_PAGES)


def write_page(path: Path, page: str, option: str = "--out") -> None:
    """Write a page that an option asked for, or say why that cannot be."""
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}; choose another place with {option}") from error


def plain_page(
    title: str,
    sentences: Sequence[str],
    chart: dict[str, Any],
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    height: int,
) -> str:
    """A page of sentences, one chart (plotly's data and layout) of so many pixels, and a table."""
    head = "".join(f"<th>{html.escape(heading)}</th>" for heading in headings)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    parts = {
        "title": html.escape(title),
        "sentences": paragraphs(sentences),
        "table": f"<tr>{head}</tr>{body}",
        "data": embedded(chart),
        "height": str(height),
    }
    return filled("eventide.cli", "plain_page.html", parts)
