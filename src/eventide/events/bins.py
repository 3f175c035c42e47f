"""The names of the bins: what the option `--bins` means, and what makes a list of names a good one.

Bins are public: they come from a number, from a list somebody wrote, or from the header of a wide file, never from
events.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path

from eventide.errors import InputError

MOST_NUMBERED = 10_000_000  # more is surely a slip, and would not fit into memory
MOST_SPARE = 10_000
SPARE = "spare"  # also the group of spare bins that are in no other
_RANGE = re.compile(r"(\d{1,9})\.\.(\d{1,9})")
_SPARE = re.compile(r"\(spare \d+\)")


def parse_bins(text: str) -> tuple[str, ...]:
    """Read `--bins`: a number N for the names "0" to "N-1", a range, or a file with one name a line.

    The file may also be a CSV of one column. A first line that reads `bin` is a heading.

    >>> parse_bins("3")
    ('0', '1', '2')
    >>> parse_bins("8..11")
    ('8', '9', '10', '11')
    """
    if text.isdecimal():
        return _numbered(range(int(text[:20])), text)
    if bounds := _RANGE.fullmatch(text):
        return _numbered(range(int(bounds[1]), int(bounds[2]) + 1), text)
    path = Path(text)
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise InputError(f"{text} is not in UTF-8; save the file in UTF-8") from None
    except OSError:
        raise InputError(
            f"{text} is no number of bins, no range such as 1..24, and no file that can be opened; check the path. "
            "Names stand in a file, one a line, or in Python in a list"
        ) from None
    names = _only_column(path, lines) if path.suffix.lower() == ".csv" else lines
    if names and names[0].strip().lower() == "bin":
        names = names[1:]
    return checked_names(names, path.name, "name")


def checked_names(names: Sequence[str], place: str, kind: str, *, shown: bool = True) -> tuple[str, ...]:
    """Strip the names of outer blanks; refuse an empty one, one given twice, or none at all, found in `place`.

    A name is not shown where it may be somebody's event, since a column was taken for a list of names.
    """
    stripped = tuple(name.strip() for name in names)
    if not stripped:
        raise InputError(f"{place} holds no {kind}; give at least one")
    seen = set()
    for position, name in enumerate(stripped, start=1):
        if not name:
            raise InputError(f"{place}: {kind} {position} is empty; give it a name or remove it")
        if name in seen:
            which = repr(name) if shown else f"{position} is there before, so it"
            raise InputError(f"{place}: {kind} {which} appears twice; names must differ")
        seen.add(name)
    return stripped


def with_other(names: tuple[str, ...], other: str | None) -> tuple[str, ...]:
    """The names, with that of the bin for other events among them, if there is one."""
    return names if other is None or other in names else (*names, other)


def with_spares(names: tuple[str, ...], number: int) -> tuple[str, ...]:
    """The names, with so many bins behind them that get their names later.

    >>> with_spares(("north", "south"), 2)
    ('north', 'south', '(spare 1)', '(spare 2)')
    """
    if number > MOST_SPARE:
        raise InputError(f"{number:,} spare bins are more than {MOST_SPARE:,}; give fewer")
    spares = [f"({SPARE} {place})" for place in range(1, number + 1)]
    if given := [name for name in names if is_spare(name) and name not in spares]:
        raise InputError(f"{given[0]!r} is how spare bins are named; give the bin another name")
    return (*(name for name in names if name not in spares), *spares)


def is_spare(name: str) -> bool:
    """Whether this is a bin that gets its name later."""
    return _SPARE.fullmatch(name) is not None


def _numbered(numbers: range, place: str) -> tuple[str, ...]:
    if numbers.stop - numbers.start > MOST_NUMBERED:
        raise InputError(f"{place} asks for more than {MOST_NUMBERED:,} bins; give fewer")
    return checked_names([str(number) for number in numbers], place, "bin")


def _only_column(path: Path, lines: list[str]) -> list[str]:
    rows = list(csv.reader(lines))
    for position, row in enumerate(rows, start=1):
        if len(row) > 1:
            raise InputError(f"{path.name}: row {position} has {len(row)} columns; a list of bins has one")
    return ["".join(row) for row in rows]
