"""The page of ideas shows every mechanism there is."""

from pathlib import Path

import pytest

import eventide as ev

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", ev.mechanism_names())
def test_every_mechanism_has_its_picture(name):
    picture = DOCS / "images" / f"mechanism-{name}.svg"
    assert f"(../images/{picture.name})" in (DOCS / "explanation" / "mechanism-ideas.md").read_text(encoding="utf-8")
    assert f"<title>{name}:" in picture.read_text(encoding="utf-8")
