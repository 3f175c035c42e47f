"""The documents keep their word: code blocks run, commands work, links lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from documents import NOT_RUN, ROOT, Reader, blocks, generator, hidden_commands, site_pages

SITE = generator("generate_site")
DOCUMENTS = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
}
RUN = ("python", "sh", "sql")
LINK = re.compile(r"\]\(([^)\s]+)\)")

# Pages that need servers or minutes, and what runs them instead of the plain test.
ELSEWHERE = {
    "docs/how-to/nats.md": "test_docs_servers.py",
    "docs/how-to/kafka.md": "test_docs_servers.py",
    "docs/how-to/serve.md": "test_docs_servers.py",
    "docs/how-to/postgres.md": "test_docs_servers.py",
    "docs/how-to/operate.md": "test_operate_page.py",
    "docs/how-to/operate-publish.md": "test_operate_page.py",
    "docs/how-to/spark.md": "test_docs_spark.py",
    "docs/how-to/windows.md": "test_windows_page.py",
    "docs/how-to/audit.md": "test_docs_slow.py",
    "docs/how-to/frames.md": "test_docs_slow.py",
    "docs/how-to/tables.md": "test_docs_slow.py",
    "docs/how-to/build-on-eventide.md": "test_docs_slow.py",
    "docs/how-to/credentials.md": "test_docs_slow.py",
    "docs/how-to/own-mechanism.md": "test_docs_slow.py",
    "docs/how-to/publish-events.md": "test_docs_slow.py",
    "docs/how-to/levels.md": "test_docs_slow.py",
    "docs/how-to/seized.md": "test_docs_slow.py",
    "docs/how-to/statistics.md": "test_docs_slow.py",
    "docs/how-to/store.md": "test_docs_slow.py",
    "docs/reference/file-formats.md": "test_docs_slow.py",
    "docs/how-to/caps.md": "test_docs_slow.py",
    "docs/how-to/choose.md": "test_docs_slow.py",
    "docs/how-to/studies.md": "test_docs_slow.py",
    "docs/tutorial/fares.md": "test_docs_slow.py",
    "docs/how-to/window-histograms.md": "test_docs_slow.py",
    "docs/tutorial/flights.md": "test_docs_slow.py",
}


def runnable(document):
    return any(block.language in RUN for block in blocks(DOCUMENTS[document]))


@pytest.mark.parametrize("document", [name for name in DOCUMENTS if runnable(name) and name not in ELSEWHERE])
def test_every_block_runs(document, tmp_path, capsys):
    done, found = Reader(tmp_path).follow(DOCUMENTS[document]), blocks(DOCUMENTS[document])
    assert done == len(found) - sum(block.code.startswith(tuple(NOT_RUN)) for block in found)


@pytest.mark.parametrize("document", DOCUMENTS)
def test_no_command_hides_in_a_block_that_is_not_run(document):
    assert hidden_commands(DOCUMENTS[document]) == []


def test_what_is_not_run_here_is_there_and_is_run_elsewhere():
    code = [block.code for text in DOCUMENTS.values() for block in blocks(text)]
    assert [start for start in NOT_RUN if not any(block.startswith(start) for block in code)] == []
    for document, test in ELSEWHERE.items():
        (file,) = (ROOT / "tests").rglob(test)
        assert Path(document).name in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        ("```sh\neventide publish nowhere.csv --epsilon 1 --window 3\n```", "ends with 2"),
        ("```sh\nfalse | true\nls nowhere\n```", "nowhere"),
        ("```sh\npip install 'eventide[nonsense]'\n```", "nonsense"),
        ('```python\nassert 1 == 2, "sums"\n```', "sums"),
        (
            '```csv title="a.csv"\nt,a\n0,-1\n```\n```sh\neventide choose a.csv --epsilon 1\n```',
            "ends with 2",
        ),
        ("```toml\nx = \n```", "Invalid value"),
    ],
)
def test_a_page_that_does_not_work_is_found(page, wrong, tmp_path, capsys):
    with pytest.raises((AssertionError, ValueError), match=wrong):
        Reader(tmp_path).follow(page)


def test_pages_install_from_a_copy_of_the_project_as_the_readme_does():
    assert [page for page, text in DOCUMENTS.items() if re.search(r"^pip install 'eventide", text, re.MULTILINE)] == []


def test_a_hidden_command_is_found():
    assert hidden_commands("```text\n.venv/bin/eventide demo\n```\n```\nhour 0 1 2\n```") == [".venv/bin/eventide d"]


def test_the_readmes_library_example_shows_a_guarantee_and_a_kept_budget(capsys):
    namespace = {}
    exec(next(block.code for block in blocks(DOCUMENTS["README.md"]) if block.language == "python"), namespace)
    printed = capsys.readouterr().out
    assert "epsilon 1" in printed
    assert "NOT PRIVATE" not in printed
    assert 0 < namespace["mechanism"].ledger.worst_window() <= 1


def test_every_page_is_in_the_navigation():
    listed = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")]
    assert [str(page) for page in pages if str(page) not in listed] == []


WORDS_OF_OURS = ("look", "door", "meter", "charge", "epoch", "slot", "sealed", "block", "fresh", "ledger", "spare bin")


@pytest.mark.parametrize("word", WORDS_OF_OURS)
def test_words_of_ours_are_in_the_glossary(word):
    assert re.search(rf"\*(the only )?{word}\*", DOCUMENTS["docs/reference/glossary.md"]), word


def dead_links(text, folder):
    local = [link.split("#")[0] for link in LINK.findall(text) if not link.startswith(("https://", "#"))]
    return [link for link in local if not (folder / link).exists()]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_links_resolve(document):
    assert dead_links(DOCUMENTS[document], (ROOT / document).parent) == []


def test_every_generated_page_has_a_source_that_the_tree_can_link_to():
    assert {*SITE.SOURCES.values()} == {*site_pages()}
    assert [source for source in SITE.SOURCES if not (ROOT / source).exists()] == []


def test_links_of_the_tree_are_turned_to_pages_of_the_site():
    page = "[a](../../src/eventide/errors.py#codes) [b](serve.md) [c](../../CHANGELOG.md) [d](https://example.org)"
    turned = "[a](../reference/errors.md#codes) [b](serve.md) [c](../changes.md) [d](https://example.org)"
    assert SITE.turned(page, "docs/how-to", "how-to") == turned
    assert SITE.turned("[a](docs/how-to/serve.md)", "", "") == "[a](how-to/serve.md)"


def test_a_dead_link_is_found():
    assert dead_links("[here](README.md) and [there](docs/nowhere.md#part)", ROOT) == ["docs/nowhere.md"]
