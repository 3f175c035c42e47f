"""Copy all SQLite stores of a folder into another while they are in use: backup.py FROM TO.

Each copy replaces the one of before when it is whole. What else a start needs is copied too: the notes of populations,
and the tokens. Not copied are the .lock files, which would say of a copy that nothing was published after it. Copies
are as confidential as the stores, and readable by their owner alone.
"""

import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

source, target = map(Path, sys.argv[1:])
os.umask(0o077)
stores = [path for path in source.glob("*.store") if path.is_file()]
for path in stores:
    part = target / f".{path.name}.part"
    part.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as live, closing(sqlite3.connect(part)) as copy:
        live.backup(copy)
    part.replace(target / path.name)
for path in [*source.glob("*.population"), *source.glob("*.tokens")]:
    part = target / f".{path.name}.part"
    shutil.copyfile(path, part)
    part.replace(target / path.name)
print(f"{len(stores)} stores are in {target}.")
