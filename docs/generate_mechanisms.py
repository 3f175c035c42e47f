"""Writes `docs/reference/mechanisms.md` from the docstrings of the registered mechanisms, so that neither can go stale.

python docs/generate_mechanisms.py > docs/reference/mechanisms.md
"""

from __future__ import annotations

import inspect

import eventide as ev
from eventide.mechanisms.registry import mechanism_class

SECTIONS = ("Idea", "Guarantee", "Epsilon", "Cost", "Use", "Departures", "Reference")

HEAD = """# The mechanisms

Generated from the docstrings by `docs/generate_mechanisms.py`. Every mechanism publishes a vector of counts at every
step and passes the same [contract](../how-to/own-mechanism.md#check-it) and the [audit](../how-to/audit.md); they
differ in when they look, with how much of the budget, and in what they release in between. Where a guarantee says
"people who move between bins", a person may be counted in one bin now and in another later, which several published
forms do not cover.
"""


def sections(cls: type) -> dict[str, str]:
    """The paragraphs of a class docstring that begin with a known word and a colon; the first one is the summary."""
    paragraphs = [" ".join(text.split()) for text in (inspect.getdoc(cls) or "").split("\n\n")]
    found = {"Summary": paragraphs[0]}
    for paragraph in paragraphs:
        word, colon, text = paragraph.partition(": ")
        if colon and word in SECTIONS:
            found[word] = text
    return found


def page() -> str:
    """The whole page."""
    names = ev.mechanism_names()
    told = {name: sections(mechanism_class(name)) for name in names}
    lines = [HEAD, "| mechanism | name | in a sentence | when to use it |", "|---|---|---|---|"]
    for name in names:
        title = mechanism_class(name).__name__
        lines.append(f"| [{title}](#{title.lower()}) | `{name}` | {told[name]['Summary']} | {told[name]['Use']} |")
    for name in names:
        lines += ["", f"## {mechanism_class(name).__name__}", "", told[name]["Summary"]]
        for section in SECTIONS:
            lines += ["", f"**{section}.** {told[name][section]}"]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
