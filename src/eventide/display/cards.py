"""Small pieces of HTML that a notebook shows where it would print an object.

All texts are escaped here. Colours are those around a card, so that it reads on light and on dark; whatever is long is
cut, so that a card is small however many bins there are.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence

from eventide.display.drawings import COLOURS, TextTable, shortened

MOST_ROWS = 8
MOST_NAMES = 5

_CARD = f"max-width: 52em; padding: 0.1em 0 0.1em 0.9em; border-left: 3px solid {COLOURS[0]}"
_NO_FORMULAS = "tex2jax_ignore mathjax_ignore"  # a notebook would take $...$ in a name for one
_LEFT = "padding: 0.1em 1.2em 0.1em 0; text-align: left; vertical-align: top"
_FAINT = f"{_LEFT}; opacity: 0.7"
_RIGHT = "padding: 0.1em 1.2em 0.1em 0; text-align: right; font-variant-numeric: tabular-nums"


def card(title: str, facts: Mapping[str, str], table: TextTable | None = None, notes: Sequence[str] = ()) -> str:
    """A title, facts by name, perhaps a table (the first column names its rows), and sentences."""
    parts = [f"<strong>{html.escape(title)}</strong>"]
    if facts:
        parts.append(f"<table>{''.join(_row('td', fact, [_FAINT, _LEFT]) for fact in facts.items())}</table>")
    if table is not None:
        styles = [_LEFT, *[_RIGHT] * (len(table.headings) - 1)]
        body = "".join(_row("td", row, styles) for row in table.rows)
        parts.append(f"<table><thead>{_row('th', table.headings, styles)}</thead><tbody>{body}</tbody></table>")
    parts += [f'<p style="margin: 0.3em 0">{html.escape(note)}</p>' for note in notes]
    return f'<div class="{_NO_FORMULAS}" style="{_CARD}">{"".join(parts)}</div>'


def few(names: Sequence[str]) -> str:
    """The first names, and how many more there are.

    >>> few(["north", "south"]), few(["a", "b", "c", "d", "e", "f", "g"])
    ('north, south', 'a, b, c, d, e and 2 more')
    """
    said = ", ".join(map(shortened, names[:MOST_NAMES]))
    return said if len(names) <= MOST_NAMES else f"{said} and {len(names) - MOST_NAMES:,} more"


def _row(kind: str, cells: Sequence[str], styles: Sequence[str]) -> str:
    shown = zip(cells, styles, strict=True)
    return "<tr>" + "".join(f'<{kind} style="{style}">{html.escape(cell)}</{kind}>' for cell, style in shown) + "</tr>"
