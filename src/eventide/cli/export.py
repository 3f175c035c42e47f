"""`eventide export`: the releases that a store holds, totals of groups of bins, or answers to window queries.

Only reads, so a publisher may go on meanwhile.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from eventide.cli.addresses import warn_of_secrets
from eventide.cli.progress import counting
from eventide.errors import InputError

if TYPE_CHECKING:
    from eventide.live.stores.base import Store

ERROR_NOTE = (
    "The errors are standard errors, and bins are taken as independent. Where the mechanism gives intervals, errors "
    "follow from these. Elsewhere they are about the noise alone: the square root of the sum of 2 scale^2 over the "
    "bins of a group, with the scale of each bin's last measurement. What changed since then is not in them."
)


@click.command("export")
@click.argument("store")
@click.option(
    "--out", metavar="PATH", help="A .csv, .jsonl or .parquet file, or a table as of publish; - is standard output."
)
@click.option(
    "--check",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Write nothing: compare an output of publish, .jsonl or .csv, with the store, step by step.",
)
@click.option("--layout", type=click.Choice(["wide", "long"]), help="Of a table: a column or a row for each bin.")
@click.option(
    "--totals",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write totals of groups of bins instead: a TOML file of lines name = [bins], a CSV of group,bin, or a file of "
    "levels.",
)
@click.option(
    "--levels",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write bins and the groups of this file of levels, as sums of what was released of their bins.",
)
@click.option("--intervals", is_flag=True, help="Add low and high to a wide table: the columns BIN_low and BIN_high.")
@click.option("--answers", is_flag=True, help="Write the answers to window queries instead.")
def command(
    store: str,
    out: str | None,
    check: Path | None,
    layout: str | None,
    totals: Path | None,
    levels: Path | None,
    intervals: bool,
    answers: bool,
) -> None:
    """Write the releases of STORE to a file, or compare a file with them.

    The file appears when it is complete. One that exists is replaced only if it has the same columns.

    \b
    Example: eventide export city.db --out releases.parquet
             eventide export city.db --out releases.sqlite
             eventide export city.db --out districts.csv --totals districts.toml
             eventide export city.db --out levels.csv --levels districts.csv
             eventide export city.db --out answers.csv --answers
             eventide export city.db --check private.jsonl
    """
    from eventide.live.sinks.open_sink import ENDINGS, is_table
    from eventide.live.stores.open_store import open_store
    from eventide.releases.files import refuse_path

    warn_of_secrets(store)
    if (out is None) == (check is None):
        raise InputError("give either --out PATH to write the releases, or --check FILE to compare a file with them")
    if check is not None:
        _check(store, check)
        return
    assert out is not None
    if answers + (totals is not None) + (levels is not None) > 1:
        raise InputError("--answers, --totals and --levels write different things; choose one of them")
    if levels is not None and is_table(out):
        raise InputError(f"--out {out} has the levels that were published; choose a .csv, .jsonl or .parquet file")
    if intervals and (answers or totals is not None or not out.lower().endswith((".csv", ".parquet"))):
        raise InputError(
            "--intervals is for releases as .csv or .parquet; JSON lines have low and high where they are known"
        )
    with closing(open_store(store, read_only=True)) as opened:
        if answers:
            written = f"{_write_answers(opened, out, layout, Path(store))} answers"
        elif totals is None and is_table(out):
            written = _steps(_fill(opened, out, layout, store))
        else:
            if totals is None and levels is None and out != "-":
                refuse_path(Path(out), [Path(store)], ENDINGS)
            written = _steps(_write(opened, out, layout, totals, levels, intervals, Path(store)))
    if totals is not None:
        click.echo(ERROR_NOTE, err=True)
    click.echo(f"{written} written{'' if out == '-' else f' to {out}'}", err=True)


def _steps(number: int) -> str:
    return f"{number} {'step' if number == 1 else 'steps'}"


def _check(store: str, path: Path) -> None:
    from eventide.live.publisher.comparing import compare
    from eventide.live.stores.open_store import open_store

    with closing(open_store(store, read_only=True)) as opened:
        found, kept_from = compare(opened, path), opened.kept_from()
        restored = [epoch.first_step for epoch in opened.epochs() if epoch.restored]
    if found.differs_at is not None:
        differs = f"{path} differs from the store at step {found.differs_at}"
        if restored:
            raise InputError(
                f"{differs}. The store was restored from a backup before step {restored[-1]}: keep the file, it may "
                "hold releases of before that the store has lost"
            )
        raise InputError(
            f"{differs}: it is not what was published; write it anew with `eventide export {store} --out PATH`"
        )
    older = f"; steps before {kept_from} are not kept in the store, and were not compared" if kept_from else ""
    if found.lost:
        older += (
            f"; steps {found.lost[0]} to {found.lost[-1]} were lost when the store was restored from a backup, and "
            "were not compared: keep the file"
        )
    click.echo(f"{found.alike} steps of {path} are as they were published{older}", err=True)


def _write_answers(store: Store, out: str, layout: str | None, source: Path) -> int:
    from eventide.live.stores.stored_releases import answered_names, stored_answers
    from eventide.releases.answer_formats import ANSWER_FORMATS, rows_of
    from eventide.releases.files import open_releases

    names = answered_names(store)
    if not names:
        raise InputError("this store holds no answers: it was made without window queries")
    number = 0
    with open_releases(out, names, layout, source, ANSWER_FORMATS, replaces_any=False) as file:
        with counting("exporting", store.next_step(), quiet=out == "-") as tell:
            for step, answers in stored_answers(store, names):
                file.write(rows_of(answers))
                number += len(answers)
                tell(step)
        file.commit()
    return number


def _fill(store: Store, out: str, layout: str | None, source: str) -> int:
    """Bring to a table what it lacks of the releases that have the bins and groups of the last one."""
    from eventide.live.publisher.delivery import Delivery
    from eventide.live.sinks.open_sink import open_sink
    from eventide.live.stores.stored_releases import all_statistics, levels_of
    from eventide.releases.lines import read_line

    if not (epochs := store.epochs()):
        raise InputError("this store holds no releases yet; publish first")
    setting = epochs[-1].setting
    first = next(store.releases(epochs[-1].first_step), None)
    starts, levels = first is not None and read_line(first[1]).start is not None, levels_of(setting)
    groups = None if levels is None else levels.groups
    how: dict[str, Any] = {"layout": layout, "starts": starts, "groups": groups, "statistics": all_statistics(store)}
    with closing(open_sink(out, setting.bins, **how, sources=[source])) as sink:
        sink.open()
        delivery = Delivery(store, sink, store.next_step(), only_reads=True)
        before = delivery.last
        delivery.finish()
        return delivery.last - before


def _write(
    store: Store,
    out: str,
    layout: str | None,
    groups_file: Path | None,
    levels_file: Path | None,
    intervals: bool,
    source: Path,
) -> int:
    from eventide.events.levels import Levels
    from eventide.live.stores.stored_releases import all_bins, all_groups, all_statistics, stored_releases
    from eventide.releases.files import open_releases
    from eventide.releases.formats import formats
    from eventide.releases.totals import places_of, read_groups, total_formats, totals, with_sums

    bins, levels = all_bins(store), all_groups(store)
    if groups_file is not None or levels_file is not None:
        _refuse_what_does_not_add_up(store)
    given = None if levels_file is None else Levels.of(levels_file, bins)
    if given is not None:
        levels = given.groups
    first = next(stored_releases(store, bins), None)
    starts = first is not None and first.start is not None
    told: dict[str, Any] = {
        "intervals": intervals or None,
        "groups": levels or None,
        "statistics": all_statistics(store),
    }
    names, kinds = bins, formats(starts=starts, **told)
    if groups_file is not None:
        groups = read_groups(groups_file, bins)
        places, names, kinds = places_of(groups, bins), tuple(groups), total_formats(starts=starts)
    steps = 0
    with open_releases(out, names, layout, source, kinds, replaces_any=False) as file:
        with counting("exporting", store.next_step(), quiet=out == "-") as tell:
            for steps, release in enumerate(stored_releases(store, bins, None if given else levels), start=1):
                if given is not None:
                    file.write(with_sums(release, given))
                else:
                    file.write(release if groups_file is None else totals(release, places))
                tell(steps)
        file.commit()
    return steps


def _refuse_what_does_not_add_up(store: Store) -> None:
    """Refuse totals of bins in several of which one person may count as a different one."""
    from eventide.events.statistic_names import statistic_of

    for epoch in store.epochs():
        statistic = statistic_of(epoch.setting.steps)
        if not statistic.adds_up(epoch.setting.steps.get("max_per_step", 1)):
            raise InputError(
                f"{statistic.name} in several bins do not add up; publish what you want to know as bins of its own"
            )
