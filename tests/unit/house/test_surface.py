"""The public names: the stub that editors read is the module that runs, and docstrings name every parameter."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import re
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import eventide as ev
from eventide.audit import two_worlds
from eventide.filters.registry import FilterParameters
from eventide.mechanisms.base import CommonParameters
from eventide.mechanisms.every_parameter import EveryParameter
from eventide.mechanisms.registry import mechanism_class
from eventide.parameters import parameter_defaults

STUB = Path(ev.__file__).with_suffix(".pyi")
PARAMETERS = re.compile(r"^Parameters\n-{10}\n(.*?)(?:\n\n|\Z)", re.DOTALL | re.MULTILINE)
MODULES = (ev, ev.audit, two_worlds, ev.bench, ev.filters, ev.noise, ev.windows)


def public_things():
    """Every public function and class by its path; of records only those of `eventide` itself, others are given out."""
    found = {}
    for module in MODULES:
        for name in module.__all__:
            thing = getattr(module, name)
            record = dataclasses.is_dataclass(thing) or hasattr(thing, "_fields")
            if inspect.isroutine(thing) or (inspect.isclass(thing) and not (record and module is not ev)):
                found.setdefault(thing, f"{module.__name__}.{name}")
    return {path: thing for thing, path in found.items()}


PUBLIC = public_things()


def taken(thing):
    """The parameters of a call of `thing`; none where it is an error or a protocol without its own constructor."""
    if inspect.isclass(thing):
        ours = [cls for cls in thing.__mro__ if cls.__module__.startswith("eventide")]
        if getattr(thing, "_is_protocol", False) or not any({"__init__", "__new__"} & vars(cls).keys() for cls in ours):
            return {}
    return inspect.signature(thing).parameters


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


@pytest.mark.parametrize("path", [path for path in PUBLIC if path != "eventide.Publisher"])  # it has those of a feed
def test_no_public_call_takes_just_any_keywords(path):
    left_open = [each for each in taken(PUBLIC[path]).values() if each.kind is each.VAR_KEYWORD]
    assert [each.name for each in left_open if each.annotation in (Any, "Any", each.empty)] == []


def test_mechanisms_and_filters_by_name_take_what_their_classes_take():
    mechanisms = [parameter_defaults(mechanism_class(name)) for name in ev.mechanism_names()]
    assert set(get_type_hints(EveryParameter)) == set().union(*mechanisms)
    filters = [parameter_defaults(type(ev.filters.by_name(name))) for name in ev.filters.names()]
    assert set(get_type_hints(FilterParameters)) == set().union(*filters)


def test_sources_of_noise_and_of_events_have_names_of_their_own():
    assert not hasattr(ev, "Source")
    assert issubclass(ev.noise.Seeded, ev.noise.Source)
    assert "EventSource" in ev.__all__
