"""The reference of the library, one page a module, from signatures and docstrings; nothing is written by hand.

A name is public if `__all__` of a module lists it, and each has its docstring or the build fails. Things that public
names give back (a ledger, a run) stand beside them. Imports eventide and the standard library.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Any

# Where the names of a module page come from: the module, and what its names hand out or are made of.
MODULES = {
    "eventide": ["eventide.live.feeds.operators_only.OperatorsOnly"],
    "eventide.noise": [],
    "eventide.filters": [],
    "eventide.windows": ["eventide.audit.plans.audit_plan", "eventide.audit.running_totals.audit_running_total"],
    "eventide.bench": [],
    "eventide.audit": [
        "eventide.audit.events.audit_events",
        "eventide.audit.events.event_pairs",
        "eventide.audit.events.capped_event_pairs",
        "eventide.audit.events.EventPair",
        "eventide.audit.events.Event",
        "eventide.audit.exact.most_telling_transcript",
    ],
    "eventide.audit.two_worlds": [],
    "eventide.engines.spark": ["eventide.engines.spark_nats.read_nats"],
}
ANNOTATION = re.compile(r"(?<=: |> )(?:ForwardRef\('([^']+)'\)|'([^']+)')")  # as inspect writes it
ADDRESS = re.compile(r"<function .* at 0x[0-9a-f]+>")  # a default that has no better name
BETWEEN_PARAMETERS = re.compile(r", (?=/|\*|\w+(?:: | ?=|,|\)$))")
HEADED = re.compile(r"^(Idea|Guarantee|Epsilon|Cost|Use|Departures|Reference): ", re.MULTILINE)
SECTION = re.compile(r"(Parameters|Attributes)\n-{10}\n")
PARAMETER = re.compile(r"^(\S.*)\n((?:[ ]+.*\n?)+)", re.MULTILINE)  # names, above the lines about them


def module_of(name: str) -> Any:
    """A module by its public name, which need not be the name of its file."""
    package, _, last = name.rpartition(".")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return getattr(importlib.import_module(package), last)


def public_names(module: Any) -> list[str]:
    """What a module offers: its `__all__`, or every function and class of its own without an underscore."""
    listed = getattr(module, "__all__", None)
    own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__]
    names = own if listed is None else listed
    things = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return sorted(
        (name for name, thing in things.items() if inspect.isclass(thing) or inspect.isroutine(thing)), key=str.lower
    )


def api_page(name: str) -> str:
    """The page of one module."""
    module = module_of(name)
    things = {f"{name}.{each}": getattr(module, each) for each in public_names(module)}
    things |= {path: getattr(module_of(path.rpartition(".")[0]), path.rpartition(".")[2]) for path in MODULES[name]}
    parts = [f"# {name}", described(module, name)]
    for path, thing in things.items():
        parts += [f"## {path.rpartition('.')[2]}", signature(path, thing), described(thing, path)]
        if inspect.isclass(thing) and not set(thing.__mro__[1:]) & set(things.values()):
            parts += [part for name_and_member in members(thing) for part in entry(*name_and_member)]
    return "\n\n".join(parts) + "\n"


def entry(name: str, member: Any) -> Iterator[str]:
    """One method or property of a class."""
    attribute = isinstance(member, property | cached_property)
    yield f"### .{name}" if attribute else f"### .{name}()"
    if not attribute:
        yield signature(name, getattr(member, "__func__", member))
    yield described(member, name)


def members(cls: type) -> list[tuple[str, Any]]:
    """The public methods and properties of a class, those of its bases last; each once."""
    kinds = (type(members), property, cached_property, classmethod, staticmethod)
    found: dict[str, Any] = {}
    for owner in (owner for owner in cls.__mro__ if owner.__module__.startswith("eventide.")):
        for name, member in vars(owner).items():
            if not name.startswith("_") and isinstance(member, kinds) and member.__doc__:
                found.setdefault(name, member)
    return list(found.items())


def signature(path: str, thing: Any) -> str:
    """How it is called, as a block of code; a parameter a line where they are many."""
    try:
        asked = inspect.signature(thing)
    except ValueError:  # an exception, whose constructor is Python's own
        return f"```python\n{path}\n```"
    if getattr(thing, "_is_protocol", False):  # is never called
        return f"```python\n{path}\n```"
    bound = [each for name, each in asked.parameters.items() if name not in ("self", "cls")]
    gives = inspect.Signature.empty if inspect.isclass(thing) else asked.return_annotation
    call = ANNOTATION.sub(r"\1\2", f"{path}{asked.replace(parameters=bound, return_annotation=gives)}")
    call = ADDRESS.sub("...", call)
    if len(call) > 100:
        call = BETWEEN_PARAMETERS.sub(",\n    ", call.replace("(", "(\n    ", 1))
        call = ",\n)".join(call.rsplit(")", 1))
    return f"```python\n{call}\n```"


def described(thing: Any, name: str) -> str:
    """A docstring as Markdown: headed paragraphs in bold, examples as blocks of code."""
    text = inspect.getdoc(thing)
    if not text:
        raise ValueError(f"{name} has no docstring")
    paragraphs = HEADED.sub(lambda head: f"**{head[1]}.** ", text).split("\n\n")
    return "\n\n".join(paragraph(part) for part in paragraphs)


def paragraph(part: str) -> str:
    """A paragraph of a docstring as Markdown: an example, a list of parameters, or what it is."""
    if part.startswith(">>> "):
        return example(part)
    section = SECTION.match(part)
    return listed(section[1], part[section.end() :]) if section else part


def listed(title: str, names_and_texts: str) -> str:
    """A section of parameters as Markdown, a list under a heading; several names can share one explanation."""
    found = [(names.split(", "), " ".join(about.split())) for names, about in PARAMETER.findall(names_and_texts)]
    lines = [f"* {', '.join(f'`{name}`' for name in names)}: {about}" for names, about in found]
    return "\n".join([f"**{title}.**", "", *lines])


def example(lines: str) -> str:
    """A doctest as a block of code."""
    return f"```pycon\n{lines}\n```"


def api_pages() -> dict[str, str]:
    """All pages by their place in the site."""
    return {f"reference/api/{name.removeprefix('eventide.')}.md": api_page(name) for name in MODULES}
