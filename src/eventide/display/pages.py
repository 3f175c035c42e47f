"""Self-contained pages: a template of a package, filled, with the head, the style and the scripts that all pages share.

A page loads nothing from anywhere, and says so to the browser.
"""

from __future__ import annotations

import base64
import functools
import html
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from typing import Any


def filled(package: str, template: str, parts: Mapping[str, str]) -> str:
    """The template of a package with every `{{slot}}` replaced by its part, which must be HTML already.

    Known to all templates are `{{head}}`, from the first line to the common style; `{{plotly}}`, the scripts that
    unpack what draws, which is there once the promise `plotlyReady` is kept; and `{{charts}}`, which reads the JSON in
    the element `data` and draws in the page's colours.
    """
    known: dict[str, Callable[[], str]] = {
        "head": lambda: _read("eventide.display", "page_head.html"),
        "charts": lambda: _read("eventide.display", "page_charts.js"),
        "plotly": _plotly,
    }

    def fill(slot: re.Match[str]) -> str:
        return parts[slot[1]] if slot[1] in parts else known[slot[1]]()

    return re.sub(r"\{\{(\w+)\}\}", fill, _read(package, template))


def printed_page(title: str, body: str) -> str:
    """A page to be printed, with a title and a body that is HTML already; it has no script."""
    return filled("eventide.display", "printed_page.html", {"title": html.escape(title), "body": body})


def packed(text: str) -> str:
    """A text at two fifths of its size or less, for the script `unpacked`: compressed, in 85 letters without `<`."""
    return base64.b85encode(zlib.compress(text.encode(), 9)).decode().replace("<", ",")


@functools.cache
def _plotly() -> str:
    """Plotly's script, which is most of a page, packed, and what unpacks and runs it."""
    from plotly.offline import get_plotlyjs  # here, since whoever draws nothing has no use for it

    unpack = _read("eventide.display", "page_plotly.js")
    return f'<script type="text/plain" id="plotly">{packed(get_plotlyjs())}</script>\n<script>\n{unpack}</script>'


def paragraphs(sentences: Iterable[str]) -> str:
    """A paragraph for each, escaped."""
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


def embedded(data: Any) -> str:
    """Data as JSON that may stand inside a script of a page, whatever its texts hold."""
    return json.dumps(data).replace("<", "\\u003c")


def _read(package: str, name: str) -> str:
    return (files(package) / name).read_text(encoding="utf-8")
