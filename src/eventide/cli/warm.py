"""`eventide warm`: everything that is compiled, compiled ahead into a folder, for images of containers.

Reads no data and publishes nothing.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections import Counter
from pathlib import Path

import click

from eventide.cli.progress import counting
from eventide.errors import InputError


@click.command("warm")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(folder: Path, as_json: bool) -> None:
    """Fill the folder DIR with compiled code, so that eventide starts without compiling. Takes a minute or two.

    For images of containers, and for users who cannot write to the package or to a home: fill DIR once, then set
    NUMBA_CACHE_DIR to it wherever eventide runs. There DIR may be read-only. It serves the same installation (the same
    versions in the same place) on the same kind of CPU; any other compiles again. DIR holds programs: let nobody write
    there who may not install software.

    \b
    Example: eventide warm compiled
    """
    folder = _writable(folder)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)  # before anything loads numba, here and in the processes
    from eventide.bench.run.workers import in_processes
    from eventide.cli.warm_work import WORK, compiled

    done: Counter[str] = Counter()
    with counting("compiling", len(WORK)) as tell:
        for _, counted in in_processes(compiled, enumerate(WORK), max(2, os.cpu_count() or 1)):
            done.update(counted, works=1)
            tell(done["works"])
    setting = f"NUMBA_CACHE_DIR={folder}"
    if as_json:
        document = {"folder": str(folder), "compiled": done["compiled"], "found": done["found"], "set": setting}
        click.echo(json.dumps(document))
    else:
        click.echo(f"{folder}: {done['compiled']} functions compiled, {done['found']} found compiled already.")
        click.echo(f"Set this where eventide runs:  {setting}")


def _writable(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as problem:
        raise InputError(f"cannot write {folder}: {problem.strerror}; choose another place") from None
    return folder.resolve()
