"""What is attacked: anything that can be run many times on a stream.

A subject hands out what an attacker sees of its runs and nothing else. Whatever somebody's class raises becomes a
`FaultyClass`, which names it as theirs.
"""

from __future__ import annotations

import inspect
import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from eventide.arrays import Array, Ints
from eventide.audit.seeds import seed_of
from eventide.errors import EventideError, InputError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.release import Release

SHARED_OUT = 2_000  # runs of a class that is built anew for each; fewer are over before they are handed out


class FaultyClass(InputError):
    """The class under audit failed; what it raised is the cause of this error."""


@dataclass(frozen=True)
class Transcript:
    """What an attacker sees of many runs on one stream.

    values: `(runs, T, d)`. fresh and scale, where the subject tells them, have the same shape. extra: further columns
    `(runs, k)`, such as a snapshot of the memory.
    """

    values: Array
    fresh: Array | None = None
    scale: Array | None = None
    extra: Array | None = None

    @classmethod
    def of(cls, releases: Sequence[Release], extra: Array | None = None) -> Transcript:
        """What the releases of runs side by side show, step by step; of several statistics, all of them."""
        seen = [_seen(release) for release in releases]
        values, fresh, scale = (np.stack(each, axis=1) for each in zip(*seen, strict=True))
        return cls(values, fresh, scale, extra)

    def part(self, which: slice) -> Transcript:
        """Some of the runs."""
        fields = (self.values, self.fresh, self.scale, self.extra)
        return Transcript(*(None if field is None else field[which] for field in fields))  # type: ignore[arg-type]

    def columns(self, begin: int) -> Array:
        """Everything that was seen from step `begin` on, one row for each run."""
        runs = len(self.values)
        parts = [self.values[:, begin:].reshape(runs, -1)]
        if self.fresh is not None:
            parts.append(np.asarray(np.any(self.fresh[:, begin:], axis=2)))
        if self.extra is not None:
            parts.append(self.extra)
        return np.concatenate(parts, axis=1).astype(np.float64)


def _seen(release: Release) -> tuple[Array, Array, Array]:
    """The values, what was measured and the scales of a release, those of further statistics behind; no data is 0."""
    others = (release.statistics or {}).values()
    fresh = [np.broadcast_to(np.reshape(each.fresh, (-1, 1)), each.values.shape) for each in others]
    return (
        np.nan_to_num(np.concatenate([release.values, *(each.values for each in others)], axis=-1)),
        np.concatenate([release.fresh_bins, *fresh], axis=-1),
        np.concatenate([release.scale, *(each.scale for each in others)], axis=-1),
    )


class Subject(Protocol):
    """Something under audit."""

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """The transcripts of `runs` independent runs on `stream`.

        The `runs` numbers from `seed` on are given to this observation and to no other of the audit.
        """
        ...


class MechanismSubject:
    """A mechanism, given as a function that builds one: `make(replicas=..., noise=...)` or `make(seed=...)`.

    Classes of the kernel run all copies side by side. A class that knows no replicas is built anew for every run, each
    with a seed of its own; it need not be a mechanism of ours, only have `release(counts)` that returns the values or
    an object holding them. Where such a class releases the same value again, it is taken not to have looked.

    Parameters
    ----------
    make
        Builds one; it has epsilon, window and bins already.
    noise
        The noise for a seed.
    """

    def __init__(self, make: Callable[..., Any], noise: Callable[[int], Any]) -> None:
        self.make = make
        self.noise = noise
        self._pool: ProcessPoolExecutor | None = None
        self._processes = 1
        with theirs("cannot build what is to be attacked", "; it is built with epsilon, window, bins and seed"):
            self.example = make(seed=0)
        self.side_by_side = isinstance(self.example, Mechanism) or "replicas" in inspect.signature(make).parameters

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """Run them, and stack what they released."""
        with theirs("the class under audit failed"):
            if self.side_by_side:
                return self._together(stream, runs, seed)
            values = self._alone(stream, runs, seed)
        fresh = np.ones(values.shape, dtype=np.bool_)
        fresh[:, 1:] = values[:, 1:] != values[:, :-1]
        return Transcript(values, fresh)

    def _together(self, stream: Ints, runs: int, seed: int) -> Transcript:
        mechanism = self.make(replicas=runs, noise=self.noise(seed))
        releases = [mechanism.release(counts) for counts in stream]
        windows = [release.window_values for release in releases if release.window_values is not None]
        return Transcript.of(releases, np.concatenate(windows, axis=1) if windows else None)

    @contextmanager
    def shared_out(self, processes: int, stream: Ints) -> Iterator[None]:
        """Meanwhile the runs of a class that is built anew for each are shared out among processes.

        Not so where they do not follow from their seeds: such a class may keep a generator of its own, which would
        begin alike in all processes, and runs that repeat each other are no evidence. `stream` is one to see that on.
        """
        if processes <= 1 or self.side_by_side or not self._follows_from_seeds(stream):
            yield
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, signal.signal, (signal.SIGINT, signal.SIG_IGN)) as self._pool:
            self._processes = processes
            try:
                yield
            finally:
                self._pool.shutdown(wait=False, cancel_futures=True)
                self._pool = None

    def _follows_from_seeds(self, stream: Ints) -> bool:
        with theirs("the class under audit failed"):
            one, again = (runs_alone(self.make, stream, 3, 0) for _ in range(2))
        return np.array_equal(one, again)

    def _alone(self, stream: Ints, runs: int, seed: int) -> Array:
        if self._pool is None or runs < SHARED_OUT:
            return runs_alone(self.make, stream, runs, seed)
        parts = pairwise(runs * number // self._processes for number in range(self._processes + 1))
        shared = [self._pool.submit(runs_alone, self.make, stream, end - begin, seed + begin) for begin, end in parts]
        return np.concatenate([part.result() for part in shared])


def runs_alone(make: Callable[..., Any], stream: Ints, runs: int, seed: int) -> Array:
    """What a class releases that is built anew for each run, `(runs, T, d)`."""
    values = np.empty((runs, *stream.shape))
    bins = stream.shape[1:]
    for index, run in enumerate(values):
        mechanism = make(seed=seed_of(seed + index))
        for step, counts in enumerate(stream.copy()):  # whatever they write into it
            released = mechanism.release(counts)
            if type(released) is not np.ndarray:
                released = np.asarray(getattr(released, "values", released))
            if released.shape != bins:
                raise ValueError(f"release(counts) must return one number for each of {bins[0]} bins")
            run[step] = released
    if not np.isfinite(values).all():
        raise ValueError("release(counts) returned something that is no finite number")
    return values


@contextmanager
def theirs(failed: str, remedy: str = "") -> Iterator[None]:
    """Whatever somebody's class raises here is theirs to repair; errors of ours say themselves what is wrong."""
    try:
        yield
    except EventideError:
        raise
    except Exception as problem:
        raise FaultyClass(f"{failed}: {type(problem).__name__}: {problem}{remedy}") from problem
