"""The answers that a meter gave during one step, so that the step can be taken again without the counts behind it.

Everything recorded came out through the door: noisy numbers and decisions, never a true count. A mechanism knows
nothing else, so running its step again on these answers leads to the same state; its ledger is charged as it was, and
nothing is drawn. A step that also changed something hidden inside `privacy` (a sum that stays open, the noise of a
threshold) cannot be taken again from its answers: then they are not `whole`. A seeded source, which is for tests,
does not move while a step is replayed. Whole numbers are recorded in as few bytes as the largest of them needs.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from eventide.arrays import Array
from eventide.errors import StateError

if TYPE_CHECKING:
    from eventide.privacy.meter import Meter

_WHOLE, _PART = b"eventide tape 1, whole\n", b"eventide tape 1, part\n"


class OtherAnswers(StateError):
    """A step that is taken again asks otherwise than it did: it is another one, or its mechanism decides otherwise."""


class RecordedAnswers:
    """Records answers in the order in which they are given."""

    def __init__(self) -> None:
        self.whole = True
        self._answers: list[tuple[str, Array]] = []
        self._answering = False

    @classmethod
    def recording(cls, meter: Meter) -> AbstractContextManager[RecordedAnswers]:
        """Record what `meter` answers during a step."""
        return _attached(meter, cls())

    def answer(self, kind: str, shape: tuple[int, ...], measure: Callable[[], Array]) -> Array:
        """The answer to a measurement, which is made now."""
        self._answering = True
        try:
            answer = measure()
        finally:
            self._answering = False
        self._answers.append((kind, answer.copy()))
        return answer

    def drawn(self) -> None:
        """Noise was drawn: as part of an answer, or to be hidden."""
        if not self._answering:
            self.hide()

    def hide(self) -> None:
        """Something changed that no answer shows."""
        self.whole = False

    def data(self) -> bytes:
        """The answers as bytes: a line that says what it is, then for each answer its kind and an .npy array."""
        parts = [_WHOLE if self.whole else _PART]
        for kind, answer in self._answers:
            narrow = _narrow(answer)
            parts += (kind.encode() + b"\n", _npy_header(narrow.dtype.str, narrow.shape), narrow.tobytes())
        return b"".join(parts)


class _ReplayedAnswers(RecordedAnswers):
    """Gives the recorded answers again, in the same order and to the same questions."""

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self._answers = list(_read(data))

    def answer(self, kind: str, shape: tuple[int, ...], measure: Callable[[], Array]) -> Array:
        """The next recorded answer; nothing is measured."""
        if not self._answers:
            raise OtherAnswers(f"no recorded answer is left where {kind} are asked for; these are of another step")
        recorded, answer = self._answers.pop(0)
        if (recorded, answer.shape) != (kind, shape):
            raise OtherAnswers(
                f"{recorded} of shape {answer.shape} were recorded where {kind} of shape {shape} are asked for; "
                "the record belongs to another step or another mechanism"
            )
        return answer

    def hide(self) -> None:
        """Whatever was hidden is not in the record."""
        raise StateError("a step with something hidden cannot be replayed from its answers; it needs a snapshot")

    def finish(self) -> None:
        """Refuse if an answer is left over."""
        if self._answers:
            raise OtherAnswers(f"{len(self._answers)} recorded answers were not asked for; they belong to another step")


@contextmanager
def replay(meter: Meter, data: bytes) -> Iterator[None]:
    """Let `meter` give recorded answers, read from bytes, while a step is taken again on counts of zero."""
    answers = _ReplayedAnswers(data)
    with _attached(meter, answers):
        yield
    answers.finish()


@contextmanager
def _attached(meter: Meter, answers: RecordedAnswers) -> Iterator[RecordedAnswers]:
    if meter.recorded is not None:
        raise StateError("answers are being recorded or replayed already; a meter does one at a time")
    meter.recorded = answers
    try:
        yield answers
    finally:
        meter.recorded = None


def _narrow(answer: Array) -> Array:
    """Whole numbers in the smallest type that holds them; anything else as it is."""
    if answer.dtype != np.int64 or not answer.size:
        return answer
    largest = max(int(answer.max()), -1 - int(answer.min()))
    return answer.astype(f"<i{next(size for size in (1, 2, 4, 8) if largest < 2 ** (8 * size - 1))}")


@lru_cache
def _npy_header(kind: str, shape: tuple[int, ...]) -> bytes:
    """What stands in an .npy array before its numbers."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": kind, "fortran_order": False, "shape": shape})
    return header.getvalue()


def _read(data: bytes) -> Iterator[tuple[str, Array]]:
    buffer = io.BytesIO(data)
    head = buffer.readline()
    if head == _PART:
        raise StateError("these recorded answers are not whole: their step hid something, and needs a snapshot")
    if head != _WHOLE:
        raise StateError("these bytes are no recorded answers, or those of another version")
    while kind := buffer.readline():
        try:
            answer = np.load(buffer, allow_pickle=False)
            yield kind[:-1].decode(), answer.astype(np.int64) if answer.dtype.kind == "i" else answer
        except (ValueError, EOFError, OSError) as problem:
            raise StateError(f"recorded answers cannot be read ({type(problem).__name__}); they are damaged") from None
