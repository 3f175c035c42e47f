"""What a meter was asked and what it answered, attempt by attempt; and a second world that is given the same answers.

An attempt is the work on one step. One that crashed before its commit is followed by another; nobody may see anything
of it, so the second world is answered differently there.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from eventide.arrays import Array, Ints

FAR = 10**6  # what an answer that nobody may see is moved by in the second world


class Question(NamedTuple):
    """What a meter is asked: all that decides the answer but the true counts."""

    kind: str
    shape: tuple[int, ...]
    about: dict[str, Array]  # amount, groups, reference, threshold: whatever the kind has

    def difference(self, other: Question) -> str | None:
        """In what another question differs, in words; None if in nothing."""
        if self.kind != other.kind:
            return f"{self.kind!r} was asked for in world A, {other.kind!r} in world B"
        if self.shape != other.shape:
            return f"the shape of {self.kind!r} is {self.shape} in world A, {other.shape} in world B"
        for name in self.about.keys() | other.about.keys():
            ours, theirs = self.about.get(name), other.about.get(name)
            if ours is None or theirs is None or not _same(ours, theirs):
                return f"{self.kind!r} was asked for with another {name}: {_shown(ours)} in A, {_shown(theirs)} in B"
        return None


class Attempt:
    """The work on one step of one stream: what was sealed, and what was asked with its answers."""

    def __init__(self, stream: str, step: int, number: int) -> None:
        self.stream, self.step, self.number = stream, step, number
        self.committed = False
        self.sealed: list[tuple[int, Ints]] = []  # steps, of which there may be many in one go, and their counts
        self.asked: list[tuple[Question, Array]] = []

    def __str__(self) -> str:
        return f"step {self.step}{self.stream and f' of {self.stream}'}" + (
            f", attempt {self.number + 1}" if self.number else ""
        )


class AnswerRecord:
    """All attempts of a world, made by measuring."""

    def __init__(self) -> None:
        self._attempts: dict[tuple[str, int], list[Attempt]] = defaultdict(list)
        self._lock = threading.Lock()
        self.differences: list[str] = []

    def __iter__(self) -> Iterator[Attempt]:
        return iter([attempt for attempts in self._attempts.values() for attempt in attempts])

    def begin(self, stream: str, step: int) -> Attempt:
        """A new attempt at a step."""
        with self._lock:
            attempts = self._attempts[stream, step]
            attempts.append(Attempt(stream, step, len(attempts)))
            return attempts[-1]

    def find(self, attempt: Attempt) -> Attempt | None:
        """The attempt here that is in the same place as one of another world."""
        attempts = self._attempts.get((attempt.stream, attempt.step), [])
        return attempts[attempt.number] if attempt.number < len(attempts) else None

    def answer(self, attempt: Attempt, question: Question, measure: Callable[[], Array]) -> Array:
        """The answer to a question, which is measured."""
        answer = measure()
        attempt.asked.append((question, answer.copy()))
        return answer

    def uncommitted(self) -> bool:
        """Whether something was drawn that nobody may see."""
        return any(attempt.asked and not attempt.committed for attempt in self)


class ReplayedRecord(AnswerRecord):
    """The attempts of a second world, answered from the record of the first.

    What was not committed there is measured anew here, and moved by `far`. The first differences are kept; from there
    on answers are measured, so that the second world comes to its end.
    """

    def __init__(self, first: AnswerRecord, far: int = FAR) -> None:
        super().__init__()
        self._first, self._far = first, far

    def answer(self, attempt: Attempt, question: Question, measure: Callable[[], Array]) -> Array:
        """The answer that the first world got to the same question."""
        known = self._first.find(attempt)
        place = len(attempt.asked)
        if known is not None and not known.committed:
            answer = _moved(measure(), question.about["amount"], self._far)
        elif known is None or place >= len(known.asked):
            self.differences.append(f"{attempt}: {question.kind!r} was asked for in world B only")
            answer = measure()
        elif difference := known.asked[place][0].difference(question):
            self.differences.append(f"{attempt}: {difference}")
            answer = measure()
        else:
            answer = known.asked[place][1]
        attempt.asked.append((question, answer.copy()))
        return answer.copy()

    def compare(self, window: range, most: int, most_in_all: int | None = None) -> list[str]:
        """What differs in sealed counts, then in questions; whether the worlds made the same attempts comes last."""
        apart = [sentence for attempt in self for sentence in self._apart(attempt, window, most)]
        if most_in_all is not None:
            apart += self._apart_in_all(most_in_all)
        fewer, missing = [], []
        for known in self._first:
            attempt = self.find(known)
            if attempt is None:
                missing.append(f"{known} was worked on in world A only")
            elif known.committed != attempt.committed:
                missing.append(f"{known} was committed in world {'A' if known.committed else 'B'} only")
            elif known.committed and len(attempt.asked) < len(known.asked):
                kind = known.asked[len(attempt.asked)][0].kind
                fewer.append(f"{known}: {kind!r} was asked for in world A only")
        missing += [f"{attempt} was worked on in world B only" for attempt in self if self._first.find(attempt) is None]
        return apart + self.differences + fewer + missing

    def changed(self) -> list[int]:
        """The steps whose sealed counts are not the same in both worlds."""
        return sorted({step for attempt in self for step, distance in self._distances(attempt) if distance})

    def _apart(self, attempt: Attempt, window: range, most: int) -> Iterator[str]:
        for step, distance in self._distances(attempt):
            where = str(attempt).replace(f"step {attempt.step}", f"step {step}", 1)
            if distance and step not in window:
                yield f"{where}: sealed counts are {distance} apart, outside the window {_steps(window)}"
            elif distance > most:
                yield f"{where}: sealed counts are {distance} apart, where one person adds {most} at the most"

    def _apart_in_all(self, most: int) -> Iterator[str]:
        """Streams whose sealed counts of all steps together are too far apart; of several attempts the worst counts."""
        totals: dict[str, Counter[int]] = defaultdict(Counter)
        for attempt in self:
            for step, distance in self._distances(attempt):
                totals[attempt.stream][step] = max(totals[attempt.stream][step], distance)
        for stream, steps in totals.items():
            if (total := steps.total()) > most:
                where = f"the sealed counts of all steps{stream and f' of {stream}'} together"
                yield f"{where} are {total} apart, where one person changes {most} at the most"

    def _distances(self, attempt: Attempt) -> Iterator[tuple[int, int]]:
        """The L1 distance between what was sealed in both worlds, vector by vector."""
        known = self._first.find(attempt)
        for (step, ours), (_, theirs) in zip(attempt.sealed, known.sealed if known else [], strict=False):
            yield step, int(np.abs(ours - theirs).sum()) if ours.shape == theirs.shape else 0


def _moved(answer: Array, amount: Array, far: int) -> Array:
    """Another answer to the same question: yes for no and no for yes, or a number far away."""
    if answer.dtype == np.bool_:
        return ~answer
    return answer if not answer.size else np.where(np.broadcast_to(amount, answer.shape) > 0, answer + far, answer)


def _same(one: Array, other: Array) -> bool:
    one, other = np.asarray(one), np.asarray(other)
    return np.array_equal(one, other, equal_nan=one.dtype.kind == other.dtype.kind == "f")


def _shown(array: Array | None) -> str:
    return "none" if array is None else np.array2string(np.asarray(array).ravel(), threshold=6)


def _steps(window: range) -> str:
    return f"of step {window[0]}" if len(window) == 1 else f"of steps {window[0]} to {window[-1]}"
