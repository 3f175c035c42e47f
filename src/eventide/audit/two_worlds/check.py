"""Run the whole system twice on neighbouring inputs, with the same noisy answers, and compare all that can be seen."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from eventide.audit.two_worlds.answers import FAR, AnswerRecord, ReplayedRecord
from eventide.audit.two_worlds.view import REFUSED, UNSEEN, PublicView, Unseen
from eventide.audit.two_worlds.world import World, lived

_Kind = TypeVar("_Kind", bound=AnswerRecord)
Run = Callable[[World], None]
"""A way to run the system: it takes the events of a world in, and shows what is seen."""


class WorldsDiffer(AssertionError):
    """Something that everybody sees, or that the meter was asked, depends on one person's events."""


class WorldsAgree(NamedTuple):
    """What was compared, and found the same."""

    steps: int  # that were worked on, each attempt by itself
    questions: int  # that the meter was asked
    changed: list[int]  # the steps whose sealed counts were not the same
    seen: dict[str, int]  # how many lines each channel has
    exempt: str = ""  # why the worlds may differ, where they do

    def __str__(self) -> str:
        if self.exempt:
            return f"One of the two worlds came to no release, which is allowed: {self.exempt}."
        where = ", ".join(map(str, self.changed)) or "none"
        seen = "\n".join(f"  {channel}: {lines:,} lines" for channel, lines in self.seen.items())
        return (
            f"The two worlds look the same: {self.steps:,} steps with {self.questions:,} questions to the meter; the "
            f"sealed counts differ at steps {where}.\nCompared:\n{seen}"
        )


def check_two_worlds(
    run: Run,
    events: Iterable[Any],
    *,
    window: range,
    most: int = 1,
    most_in_all: int | None = None,
    unseen: Iterable[Unseen] = (),
    folder: str | Path | None = None,
) -> WorldsAgree:
    """Raise `WorldsDiffer` if what one person did in a window can be seen in anything but the noisy answers.

    Parameters
    ----------
    run
        Called with a `World` for each of the two, in turn. Whatever it does with eventide in this process is listened
        to; what else can be seen, such as the answer to a request, it shows with `world.show`.
    events
        Of everybody, in any form that `run` understands, in the order in which they come. Those of one person, which
        are not in both worlds, are wrapped in `OnlyA` or `OnlyB`.
    window
        The steps that these events belong to. Sealed counts of all other steps must be the same in both worlds.
    most
        How many events of one person count in a step.
    most_in_all
        The window sensitivity, where there is one: the most that sealed counts differ over all steps together.
    unseen
        What is not compared, besides the usual (`eventide.audit.two_worlds.view.UNSEEN`), each with its reason.
    folder
        Where the worlds are to be left, for a look at them; they are removed where none is given.

    The noise comes from a seed, and all keys are known: for tests on made-up events only.

    >>> import eventide as ev
    >>> from eventide.audit.two_worlds import OnlyA
    >>> def run(world):
    ...     rows = [[sum(step == at for at in world.events)] for step in range(4)]
    ...     mechanism = ev.BudgetAbsorption(epsilon=1, window=2, bins=["visits"])
    ...     for row in rows:
    ...         world.show("release", str(mechanism.release(row).values))
    >>> ev.check_two_worlds(run, [0, 0, OnlyA(1), 2, 3], window=range(1, 2)).changed
    [1]
    """
    rows, rules = list(events), (*UNSEEN, *unseen)
    place = Path(tempfile.mkdtemp(prefix="eventide-worlds-") if folder is None else folder)
    try:
        first, seen = _world("A", run, rows, place, AnswerRecord(), seed=1)
        try:
            replay, other = _world("B", run, rows, place, ReplayedRecord(first), seed=2)
        except Exception as problem:
            raise WorldsDiffer(f"The run came to its end in world A, and failed in world B: {problem!r}") from problem
        found = [*replay.compare(window, most, most_in_all), *seen.differences(other, rules)]
        if found and _refused_at_once(first, seen) != _refused_at_once(replay, other):
            return WorldsAgree(0, 0, [], {}, exempt=REFUSED.reason)
        if first.uncommitted() and not found:  # once more: A might by chance have answered what B was given
            again, other = _world("A", run, rows, place, ReplayedRecord(first, -FAR), seed=3)
            found = [*again.compare(window, 0), *seen.differences(other, rules)]
            found = [f"with other answers to what was never committed, but the same events:\n{one}" for one in found]
    finally:
        if folder is None:
            shutil.rmtree(place, ignore_errors=True)
    if found:
        raise WorldsDiffer(_sentence(found))
    asked = [len(attempt.asked) for attempt in first]
    if not any(answer.size for attempt in first for _, answer in attempt.asked):
        why = b"; ".join(seen.lines("errors")).decode()
        raise AssertionError(f"the meter was asked nothing, so there was nothing to compare ({why or 'no error'})")
    return WorldsAgree(len(asked), sum(asked), replay.changed(), {name: len(seen.lines(name)) for name in seen})


def _world(name: str, run: Run, rows: list[Any], place: Path, record: _Kind, seed: int) -> tuple[_Kind, PublicView]:
    """Run a world at the place that all worlds have, so that messages name the same paths."""
    world = World(name, rows, place / "world")
    with lived(world, record, seed):
        run(world)
        world.close()
    kept = next(path for number in range(3) if not (path := place / f"{name}{number or ''}").exists())
    world.folder.rename(kept)
    return record, world.view


def _refused_at_once(record: AnswerRecord, view: PublicView) -> bool:
    return not any(attempt.committed for attempt in record) and view.holds(REFUSED)


def _sentence(found: list[str]) -> str:
    more = "".join(f"\n- {line.splitlines()[0]}" for line in found[1:])
    return f"The two worlds can be told apart.\n{found[0]}" + (f"\nAlso different:{more}" if more else "")
