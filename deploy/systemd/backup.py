"""Copy the stores and accounts of a folder into another while they are in use: backup.py FROM TO.

Those in SQLite files are found whatever their names are. Each copy replaces the one of before when it is whole. What
else a start needs is copied too: the notes of populations, and the tokens. Not copied are the .lock files, which would
say of a copy that nothing was published after it. Copies are as confidential as the stores, and readable by their owner
alone.

A file that cannot be copied is named, its copy of before stays, and the others are copied; the exit code is then 1. It
is 1 as well where nothing was found, so that a wrong folder is noticed.
"""

import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path


def is_database(path: Path) -> bool:
    """Whether a file is a store or an account: by its name, or by the mark that eventide leaves in its header."""
    if path.suffix in (".store", ".account"):
        return True
    if not os.access(path, os.R_OK):
        return False
    with path.open("rb") as file:
        return file.read(72)[68:71] == b"evt"


def copy_database(path: Path, part: Path) -> None:
    """Copy a database as it is at one moment, whoever writes to it."""
    with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(part)) as copy:
        live.backup(copy)


if len(sys.argv) != 3:
    sys.exit("Usage: backup.py FROM TO")
source, target = map(Path, sys.argv[1:])
for folder in (source, target):
    if not folder.is_dir():
        sys.exit(f"{folder} is not a folder")
if source.samefile(target):
    sys.exit(f"{target} is the folder of the stores; copies would take their places")
os.umask(0o077)
copied, failed = 0, False
for path in sorted(path for path in source.iterdir() if path.is_file() and not path.name.startswith(".")):
    part = target / f".{path.name}.part"
    try:
        part.unlink(missing_ok=True)
        if is_database(path):
            copy_database(path, part)
        elif path.suffix in (".population", ".tokens"):
            shutil.copyfile(path, part)
        else:
            continue
        part.replace(target / path.name)
        copied += 1
    except (OSError, sqlite3.Error) as problem:
        failed = True
        print(f"{path} was not copied: {problem}", file=sys.stderr)
    finally:
        part.unlink(missing_ok=True)
print(f"Files that were copied to {target}: {copied}.")
if not copied:
    print(f"There is nothing of eventide in {source}.", file=sys.stderr)
sys.exit(1 if failed or not copied else 0)
