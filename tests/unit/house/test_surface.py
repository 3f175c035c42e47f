"""The public names: the stub that editors read is the module that runs, and docstrings name every parameter."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import eventide as ev
from eventide.audit import two_worlds
from eventide.filters.base import Filter
from eventide.mechanisms.base import CommonParameters

STUB = Path(ev.__file__).with_suffix(".pyi")
PARAMETERS = re.compile(r"^Parameters\n-{10}\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
MODULES = (ev, ev.audit, two_worlds, ev.bench, ev.filters, ev.noise, ev.windows)


def public_things():
    """Every public function and class of every public module, once, by its path."""
    found = {}
    for module in MODULES:
        own = [name for name, thing in vars(module).items() if getattr(thing, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            thing = getattr(module, name)
            if not name.startswith("_") and (inspect.isclass(thing) or inspect.isroutine(thing)):
                found.setdefault(thing, f"{module.__name__}.{name}")
    return {path: thing for thing, path in found.items()}


PUBLIC = public_things()


def taken(thing):
    """The parameters of a call of `thing`; none where it is an error or a protocol, which have no own constructor."""
    if inspect.isclass(thing) and (thing.__init__ in (object.__init__, Exception.__init__) or _is_protocol(thing)):
        return {}
    return inspect.signature(thing).parameters


def _is_protocol(cls):
    return getattr(cls, "_is_protocol", False)


def unnamed(thing):
    """The parameters of `thing` that its docstring does not name; `**common` stands for those of every mechanism."""
    section = PARAMETERS.search(inspect.getdoc(thing) or "")
    lines = section[1].splitlines() if section else []
    named = {name.strip() for line in lines if not line.startswith(" ") for name in line.split(",")}
    if "**common" in named:
        named |= CommonParameters.__annotations__.keys()
    return [name for name in taken(thing) if not {name, f"**{name}"} & named]


def stubbed():
    """Where the stub imports each name from."""
    imports = [node for node in ast.parse(STUB.read_text("utf-8")).body if isinstance(node, ast.ImportFrom)]
    return {alias.asname: (node.module, alias.name) for node in imports for alias in node.names}


def test_the_stub_has_the_names_of_the_module_and_means_the_same_things():
    names = stubbed()
    assert set(names) == set(ev.__all__)
    for name, (home, original) in names.items():
        module = importlib.import_module(home)
        found = (
            getattr(module, original) if hasattr(module, original) else importlib.import_module(f"{home}.{original}")
        )
        assert found is getattr(ev, name), name


@pytest.mark.parametrize("path", PUBLIC)
def test_a_docstring_names_every_parameter(path):
    assert unnamed(PUBLIC[path]) == []


def test_a_parameter_that_is_not_named_is_found():
    def one(counts: int, bins: int) -> None:
        """Do it.

        Parameters
        ----------
        counts
            What bins hold.
        """

    assert unnamed(one) == ["bins"]
    assert unnamed(lambda counts: None) == ["counts"]
    assert len(PUBLIC) > 60


@pytest.mark.parametrize("path", PUBLIC)
def test_no_public_call_takes_just_any_keywords(path):
    left_open = [each for each in taken(PUBLIC[path]).values() if each.kind is each.VAR_KEYWORD]
    assert [each.name for each in left_open if each.annotation in (Any, "Any", each.empty)] == []


def test_sources_of_noise_and_of_events_have_names_of_their_own():
    assert not hasattr(ev, "Source")
    assert issubclass(ev.noise.Seeded, ev.noise.Source)
    assert not issubclass(ev.noise.Source, Filter)
    assert "EventSource" in ev.__all__
