"""What mkdocs asks when it builds the site (`hooks` in mkdocs.yml): the pages that are written nowhere by hand.

Besides the generated reference these are the documents in the root of the project, whose links are turned towards the
site. Imports the generators beside it; mkdocs itself only when it builds.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from generate_api import api_pages
from generate_reference import reference_pages

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).parents[1]
ICON = ROOT / "src" / "eventide" / "service" / "static" / "icon.svg"
DOCUMENTS = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changes.md",
    "SECURITY.md": "security.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
}


def pages() -> dict[str, str]:
    """The text of every such page, by its place in the site."""
    return api_pages() | reference_pages() | {place: document(name) for name, place in DOCUMENTS.items()}


def document(name: str) -> str:
    """A document of the root, with links as they are from the folder `docs`."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("](docs/", "](")
    for other, place in DOCUMENTS.items():
        text = text.replace(f"]({other}", f"]({place}")
    return text


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages, and the picture that the dashboard has too."""
    from mkdocs.structure.files import File

    for place, text in pages().items():
        files.append(File.generated(config, place, content=text))
    files.append(File.generated(config, "assets/icon.svg", abs_src_path=str(ICON)))
    return files
