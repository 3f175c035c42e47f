"""The page about mechanisms is what the docstrings say, and the docstrings say everything."""

import pytest
from documents import ROOT, generator

import eventide as ev
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class
from eventide.parameters import parameter_defaults

PAGES = generator("generate_mechanisms")


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_docstring_is_complete(name):
    cls = mechanism_class(name)
    assert set(PAGES.SECTIONS) <= set(PAGES.sections(cls)), cls
    assert ">>> " in cls.__doc__


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_parameter_stands_on_the_page_with_its_default_and_a_sentence(name):
    cls = mechanism_class(name)
    told = PAGES.parameters(Mechanism) | PAGES.own_parameters(cls)
    assert told.keys() == parameter_defaults(cls).keys()
    assert [each for each, (_, about) in told.items() if not about.endswith(".")] == []
    part = PAGES.page().partition(f"## {cls.__name__}\n")[2].partition("\n## ")[0]
    for each in PAGES.own_parameters(cls):
        assert f"| `{each}` | `{parameter_defaults(cls)[each]!r}` | {told[each][1]} |" in part


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "reference" / "mechanisms.md").read_text() == PAGES.page()
