"""Writes `docs/reference/mechanisms.md` from the docstrings of the registered mechanisms, so that neither can go stale.

python docs/generate_mechanisms.py > docs/reference/mechanisms.md
"""

from __future__ import annotations

import inspect

from generate_api import PARAMETER

import eventide as ev
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class
from eventide.parameters import REQUIRED, parameter_defaults

SECTIONS = ("Idea", "Guarantee", "Epsilon", "Cost", "Use", "Departures", "Reference")

HEAD = """# The mechanisms

Generated from the docstrings by `docs/generate_mechanisms.py`. Every mechanism publishes a vector of counts at every
step and passes the same [contract](../how-to/own-mechanism.md#check-it) and the [audit](../how-to/audit.md); they
differ in when they look, with how much of the budget, and in what they release in between. Where a guarantee says
"people who move between bins", a person may be counted in one bin now and in another later, which several published
forms do not cover. Parameters are given as keywords, or with `--set NAME=VALUE` on the command line.
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


def explained(cls: type) -> dict[str, str]:
    """What the docstrings of a class and its bases say of each parameter; the nearest one that says it counts."""
    found: dict[str, str] = {}
    for owner in cls.__mro__:
        _, _, section = inspect.cleandoc(owner.__doc__ or "").partition("Parameters\n----------\n")
        for names, about in PARAMETER.findall(section.partition("\n\n")[0]):
            for name in names.split(", "):
                if about.split()[:2] != ["As", "in"]:
                    found.setdefault(name, " ".join(about.split()))
    return found


def parameters(cls: type) -> dict[str, tuple[str, str]]:
    """Every parameter of a class with its default and what it is for."""
    about = explained(cls)
    return {
        name: ("" if default in (REQUIRED, ()) else f"`{default!r}`", about[name])
        for name, default in parameter_defaults(cls).items()
    }


def own_parameters(cls: type) -> dict[str, tuple[str, str]]:
    """Those that not every mechanism has, or that have a default of their own."""
    common = parameters(Mechanism)
    return {name: told for name, told in parameters(cls).items() if told != common.get(name)}


def table(told: dict[str, tuple[str, str]]) -> list[str]:
    """Parameters as rows of a table."""
    rows = [f"| `{name}` | {default or 'required'} | {about} |" for name, (default, about) in told.items()]
    return ["| parameter | default | meaning |", "|---|---|---|", *rows]


def page() -> str:
    """The whole page."""
    names = ev.mechanism_names()
    told = {name: sections(mechanism_class(name)) for name in names}
    lines = [HEAD, "| mechanism | name | in a sentence | when to use it |", "|---|---|---|---|"]
    for name in names:
        title = mechanism_class(name).__name__
        lines.append(f"| [{title}](#{title.lower()}) | `{name}` | {told[name]['Summary']} | {told[name]['Use']} |")
    lines += ["", "## Parameters of every mechanism", "", *table(parameters(Mechanism))]
    for name in names:
        lines += ["", f"## {mechanism_class(name).__name__}", "", told[name]["Summary"]]
        for section in SECTIONS:
            lines += ["", f"**{section}.** {told[name][section]}"]
        if own := own_parameters(mechanism_class(name)):
            lines += [
                "",
                "**Parameters**, besides [those of every mechanism](#parameters-of-every-mechanism).",
                "",
                *table(own),
            ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(page(), end="")
