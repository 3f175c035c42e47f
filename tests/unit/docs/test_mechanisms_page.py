"""The page about mechanisms is what the docstrings say, and the docstrings say everything."""

import pytest
from documents import ROOT, generator

import eventide as ev
from eventide.mechanisms.registry import mechanism_class

PAGES = generator("generate_mechanisms")


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_docstring_is_complete(name):
    cls = mechanism_class(name)
    assert set(PAGES.SECTIONS) <= set(PAGES.sections(cls)), cls
    assert ">>> " in cls.__doc__


def test_the_page_is_up_to_date():
    assert (ROOT / "docs" / "reference" / "mechanisms.md").read_text() == PAGES.page()
