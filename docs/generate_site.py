"""What mkdocs asks when it builds the site (`hooks` in mkdocs.yml): the pages that are written nowhere by hand.

Besides the generated reference these are the documents in the root of the project. Whoever reads in the source tree
finds links to what such pages are made of, the code and those documents; the site turns them towards its pages.
Imports the generators beside it; mkdocs itself only when it builds.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING

from generate_api import api_pages
from generate_reference import reference_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ICON = ROOT / "src" / "eventide" / "service" / "static" / "icon.svg"
DOCUMENTS = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}
SOURCES = {
    **DOCUMENTS,
    "src/eventide/cli": "reference/command-line.md",
    "src/eventide/service/config/settings.py": "reference/configuration.md",
    "src/eventide/errors.py": "reference/errors.md",
    "src/eventide/__init__.pyi": "reference/api/eventide.md",
    "src/eventide/privacy/noise.py": "reference/api/noise.md",
    "src/eventide/filters": "reference/api/filters.md",
    "src/eventide/windows": "reference/api/windows.md",
    "src/eventide/bench": "reference/api/bench.md",
    "src/eventide/audit": "reference/api/audit.md",
    "src/eventide/audit/two_worlds": "reference/api/audit.two_worlds.md",
    "src/eventide/engines/spark.py": "reference/api/engines.spark.md",
}
LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def pages() -> dict[str, str]:
    """The text of every such page, by its place in the site."""
    return api_pages() | reference_pages() | {place: document(name) for name, place in DOCUMENTS.items()}


def document(name: str) -> str:
    """A document of the root, with links as they are from the folder `docs`."""
    return turned((ROOT / name).read_text(encoding="utf-8"), "", "")


def turned(text: str, folder: str, place: str) -> str:
    """The text of a page in a folder of the tree, with links that leave `docs` turned to pages as seen from a place."""

    def turn(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[1]))
        page = SOURCES.get(target) or (target.removeprefix("docs/") if target.startswith("docs/") else None)
        return link[1] if page is None else posixpath.relpath(page, place or ".")

    return LINK.sub(turn, text)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn the links of a page that is written by hand."""
    if page.file.generated_by is not None:
        return markdown
    place = posixpath.dirname(page.file.src_uri)
    return turned(markdown, posixpath.join("docs", place), place)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the picture that the dashboard has too."""
    from mkdocs.structure.files import File

    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    return files
