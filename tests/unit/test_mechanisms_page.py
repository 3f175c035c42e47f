"""The page about mechanisms is what the docstrings say, and the docstrings say everything."""

import importlib.util
from pathlib import Path

import pytest

import eventide as ev
from eventide.mechanisms.registry import mechanism_class

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def generator():
    spec = importlib.util.spec_from_file_location("generate_mechanisms", DOCS / "generate_mechanisms.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_docstring_is_complete(generator, name):
    cls = mechanism_class(name)
    assert set(generator.SECTIONS) <= set(generator.sections(cls)), cls
    assert ">>> " in cls.__doc__


def test_the_page_is_up_to_date(generator):
    assert (DOCS / "mechanisms.md").read_text() == generator.page()
