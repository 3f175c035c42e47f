"""A file that is there is replaced only by what was made like it: anything else would be lost without a word."""

from __future__ import annotations

from pathlib import Path

from eventide.errors import InputError

IN_PAGES = b"<!-- The browser itself refuses to load anything that is not in this file. -->"  # of `page_head.html`
IN_IMAGES = b"eventide"  # who made it, as `images.save` writes it
IN_OLDER_IMAGES = b"https://matplotlib.org"  # what older versions left there


def refuse_foreign(path: Path, *marks: bytes) -> None:
    """Refuse to replace a file that holds something, and none of the marks of what we write."""
    if not path.is_file():
        return
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InputError(
            f"cannot read {path}, which would be replaced: {problem.strerror}; choose another file"
        ) from None
    if content and not any(mark in content for mark in marks):
        raise InputError(
            f"{path} exists, and nothing in it says that eventide wrote it; choose another file, or remove this one"
        )
