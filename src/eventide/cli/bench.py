"""`eventide bench`: run a study, from where it was left, and write one file of results.

A study runs on data one may look at, with seeded noise; its results are not private.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.cli.progress import counting, resumable
from eventide.cli.settings import import_from_here, parse_settings, settings_option
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.bench import Study


@click.command("bench")
@click.argument("study")
@click.option("--out", type=click.Path(path_type=Path), metavar="PATH", help="The .parquet file to write.  [required]")
@click.option(
    "--data",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder of the named real streams.  [default: EVENTIDE_DATA]",
)
@click.option(
    "--with",
    "--mechanism",
    "added",
    multiple=True,
    metavar="NAME_OR_CLASS",
    help="A mechanism more, by name or module:Class; may be repeated.",
)
@settings_option
@click.option("--processes", type=int, metavar="N", help="How many run side by side.  [default: one a core]")
@click.option(
    "--print", "only_print", is_flag=True, help="Print the study's TOML instead, to start one of your own from."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    study: str,
    out: Path | None,
    data: Path | None,
    added: tuple[str, ...],
    settings: tuple[str, ...],
    processes: int | None,
    only_print: bool,
    as_json: bool,
) -> None:
    """Run STUDY, a TOML file or the name of a built-in one, and write its results.

    Built in: quick (two minutes), paper-artificial and paper-real (the w-event benchmark), tide (our own mechanism
    against the others), kellaris (the experiments of the paper that introduced w-event privacy), retroactive
    (histograms of sliding windows), sliding (planners of window queries). A study that was interrupted goes on where it
    stopped when the same command is given again. --with adds a mechanism, by name or as module:Class, and --set gives
    its parameters; with several --with, each gets all of them. Results are figures about mechanisms, computed from true
    counts: they are not private.

    \b
    Example: eventide bench quick --out results.parquet
    Example: eventide bench quick --with hybrid --set k=10 --out results.parquet
    Example: eventide bench quick --print > mine.toml
    """
    from eventide.bench import check_requirements, load_study, read_results, run_study
    from eventide.bench.run.results import partial_of, standings
    from eventide.bench.study.study_file import study_text

    if only_print:
        click.echo(study_text(study), nl=False)
        return
    if out is None:
        raise InputError("say where the results go, with --out results.parquet")
    begun = out.exists() or partial_of(out).exists()  # by a version that took any ending
    if out.suffix.lower() != ".parquet" and not begun:
        raise InputError(f"--out {out} must end in .parquet; eventide report --table writes the errors as .csv or .tex")
    if processes is not None and processes < 1:
        raise InputError("--processes is at least 1")
    import_from_here()
    parameters = parse_settings(settings)
    if parameters and not added:
        raise InputError("--set is for a mechanism that --with adds; those of the study have their parameters there")
    loaded = load_study(study, data, dict.fromkeys(added, parameters))
    for sentence in loaded.skipped:
        click.echo(sentence, err=True)
    for sentence in loaded.short_streams():
        click.echo(sentence, err=True)
    begin = time.monotonic()
    there_already = out.exists()
    with resumable(), counting("Running", unit=None) as tell:
        run_study(loaded, out, processes or os.cpu_count() or 1, tell)
    document = {
        "study": loaded.name,
        "out": str(out),
        "there_already": there_already,
        "cells": len(loaded.cells),
        "runs": len(loaded.cells) * loaded.repetitions,
        "seconds": round(time.monotonic() - begin, 1),
        "skipped": loaded.skipped,
        "requirements": [requirement._asdict() for requirement in check_requirements(loaded)],
        "standings": [standing._asdict() for standing in standings(read_results(out))],
    }
    click.echo(json.dumps(document) if as_json else _told(loaded, document))


def _told(study: Study, document: dict[str, Any]) -> str:
    where = "these results were there already: " if document["there_already"] else "results in "
    lines = [f"{study.name}: {document['cells']:,} cells, {document['runs']:,} runs; {where}{document['out']}", ""]
    lines += ["The benchmark's requirements:"]
    for requirement in document["requirements"]:
        lines.append(
            f"  {'met    ' if requirement['met'] else 'NOT MET'} {requirement['code']:5} {requirement['sentence']}"
        )
    if document["standings"]:
        width = max(len(standing["mechanism"]) for standing in document["standings"])
        lines += ["", "Error against the best mechanism of each stream and setting:"]
        for standing in document["standings"]:
            lines.append(
                f"  {standing['mechanism']:{width}}  {standing['median_delta']:8.3g} times in the median, "
                f"best in {standing['best']} of {standing['contests']}"
            )
    return "\n".join(lines)
