"""Every word of the documents is an English word or one of ours (`docs/words.txt`)."""

from __future__ import annotations

import re

import pytest
from documents import FENCE, ROOT

spellchecker = pytest.importorskip("spellchecker", reason="needs pyspellchecker: pip install '.[test]'")

DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
OURS = (ROOT / "docs" / "words.txt").read_text(encoding="utf-8").split()
CHECKER = spellchecker.SpellChecker()
# What is no prose: blocks of code, code in a line, addresses and places of links, tags, and names with digits in them.
NO_PROSE = [FENCE, r"(?m)^    .*$", r"(?s)(`+).*?\1", r"\]\([^)]*\)", r"https?://\S+", r"<[^>]*>", r"\S*\d\S*"]
WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


def unknown_words(text):
    for pattern in NO_PROSE:
        text = re.sub(pattern, " ", text)
    words = {re.sub(r"['’]s?$|['’]s$", "", word) for word in WORD.findall(text)}
    ours = {word.lower() for word in OURS}
    return sorted(word for word in words if CHECKER.unknown([word]) and word.lower() not in ours and len(word) > 1)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_word_is_known(path):
    assert unknown_words(path.read_text(encoding="utf-8")) == []


def test_a_misspelling_is_found_and_code_is_not_read():
    text = "The recieved counts, `of somme` and ``` `codde` ``` [bins](wherre.md).\n\n```sh\neventidde\n```\n"
    assert unknown_words(text) == ["recieved"]


def test_our_list_is_sorted_and_holds_nothing_that_english_has():
    assert sorted(set(OURS), key=str.lower) == OURS
    assert [word for word in OURS if not CHECKER.unknown([word])] == []
