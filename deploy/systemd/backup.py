"""Copy all SQLite stores of a folder into another while they are in use: backup.py FROM TO.

Each copy replaces the one of before when it is whole. What else a start needs is copied too: the notes of populations,
and the tokens. Not copied are the .lock files, which would say of a copy that nothing was published after it. Copies
are as confidential as the stores, and readable by their owner alone.

A file that cannot be copied is named, its copy of before stays, and the others are copied; the exit code is then 1.
"""

import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path


def copy_store(path: Path, part: Path) -> None:
    """Copy a store as it is at one moment, whoever writes to it."""
    with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(part)) as copy:
        live.backup(copy)


source, target = map(Path, sys.argv[1:])
os.umask(0o077)
kinds = {"*.store": copy_store, "*.population": shutil.copyfile, "*.tokens": shutil.copyfile}
stores, failed = 0, False
for pattern, copy_file in kinds.items():
    for path in sorted(path for path in source.glob(pattern) if path.is_file()):
        part = target / f".{path.name}.part"
        try:
            part.unlink(missing_ok=True)
            copy_file(path, part)
            part.replace(target / path.name)
            stores += copy_file is copy_store
        except (OSError, sqlite3.Error) as problem:
            failed = True
            print(f"{path} was not copied: {problem}", file=sys.stderr)
        finally:
            part.unlink(missing_ok=True)
print(f"{stores} {'store is' if stores == 1 else 'stores are'} in {target}.")
sys.exit(1 if failed else 0)
