"""What is attacked: anything that can be run many times on a stream.

A subject hands out what an attacker sees of its runs and nothing else. Whatever somebody's class raises becomes an
`InputError`. Imports numpy, `arrays` and `errors`, so that it knows no mechanism.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError


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


class Subject(Protocol):
    """Something under audit."""

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """The transcripts of `runs` independent runs on `stream`."""
        ...


class MechanismSubject:
    """A mechanism, given as a function that builds one: `make(replicas=..., noise=...)` or `make(seed=...)`.

    Classes of the kernel run all copies side by side. A class that knows no replicas is built anew for every run; it
    need not be a mechanism of ours, only have `release(counts)` that returns the values or an object holding them.
    """

    def __init__(self, make: Callable[..., Any], noise: Callable[[int], Any]) -> None:
        self.make = make
        self.noise = noise
        takes = inspect.signature(make).parameters
        self.side_by_side = "replicas" in takes or any(p.kind is p.VAR_KEYWORD for p in takes.values())

    def observe(self, stream: Ints, runs: int, seed: int) -> Transcript:
        """Run them, and stack what they released."""
        if self.side_by_side:
            return self._together(stream, runs, seed)
        alone = [self._alone(stream, seed + index) for index in range(runs)]
        return Transcript(np.stack(alone))

    def _together(self, stream: Ints, runs: int, seed: int) -> Transcript:
        mechanism = self.make(replicas=runs, noise=self.noise(seed))
        releases = [mechanism.release(counts) for counts in stream]
        values, fresh, scale = (
            np.stack([getattr(release, field) for release in releases], axis=1)
            for field in ("values", "fresh_bins", "scale")
        )
        windows = [release.window_values for release in releases if release.window_values is not None]
        extra = np.concatenate(windows, axis=1) if windows else None
        return Transcript(values, fresh, scale, extra)

    def _alone(self, stream: Ints, seed: int) -> Array:
        try:
            mechanism = self.make(seed=seed)
            released = [mechanism.release(counts) for counts in stream]
            return np.stack([np.asarray(getattr(release, "values", release), dtype=np.float64) for release in released])
        except Exception as problem:  # whatever somebody's class does: it is theirs to repair
            raise InputError(f"the class under audit failed: {type(problem).__name__}: {problem}") from problem
