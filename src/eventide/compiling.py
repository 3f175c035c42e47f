"""Kernels: functions that numba compiles when they are first called, and keeps compiled where it may write.

Compiled code is kept in the folder NUMBA_CACHE_DIR, beside the source or in the user's home: the first of them that can
be written. Here NUMBA_CACHE_DIR may also be a folder that can only be read, filled by `eventide warm`. Where nothing
can be kept, each start compiles in memory, and one line of the log says so. Whatever is wrong with a folder never ends
a run, and never brings back code of another version.
"""

from __future__ import annotations

import hashlib
import inspect
import logging
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit
from numba.core import caching

KERNELS: list[Any] = []  # that were imported
NOT_KEPT: list[str] = []  # names of kernels that were compiled in memory only

log = logging.getLogger(__name__)


def kernel(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function, with the options of `numba.njit`.

    It should not assign an array to a part of another, as in `a[:] = b`, but each number: numba compiles two seconds
    longer for the message that it would raise if the shapes differed.
    """

    def compiled(function: Callable[..., Any]) -> Any:
        made = njit(**options)(function)
        try:
            made._cache = _Kept(function)
        except RuntimeError:  # numba found no folder that it may write
            made._cache = _InMemory(function)
        KERNELS.append(made)
        return made

    return compiled


def counted() -> Counter[str]:
    """How many functions this process has compiled, and how many it found compiled."""
    stats = [made.stats for made in KERNELS]
    return Counter(
        compiled=sum(one.cache_misses.total() for one in stats), found=sum(one.cache_hits.total() for one in stats)
    )


class _Folder(caching.UserProvidedCacheLocator):
    """NUMBA_CACHE_DIR, also if what is there can only be read."""

    def ensure_cache_path(self) -> None:
        if not os.path.isdir(self.get_cache_path()):  # noqa: PTH112 - False also where it cannot be looked at
            super().ensure_cache_path()


class _Place(caching.CompileResultCacheImpl):
    _locator_classes = [_Folder, *caching.CompileResultCacheImpl._locator_classes]  # noqa: RUF012 - as numba has it


class _Kept(caching.FunctionCache):
    """A kernel's compiled forms on disk. What unpickling a damaged file raises may be anything."""

    _impl_class = _Place

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            self._cache_file._source_stamp = _made_of(self._py_func)
            return super().load_overload(sig, target_context)
        except Exception:
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except Exception:
            self._save_anew(sig, data)

    def _save_anew(self, sig: Any, data: Any) -> None:
        """Over an index that cannot be read: another version may have written names that are gone."""
        try:
            self.flush()
            super().save_overload(sig, data)
        except Exception:
            _not_kept(self._py_func)


class _InMemory(caching.NullCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def save_overload(self, sig: Any, cres: Any) -> None:
        _not_kept(self._function)


def _not_kept(function: Callable[..., Any]) -> None:
    if not NOT_KEPT:
        log.warning(
            "compiled code cannot be kept here, so every start compiles it again; to start sooner, set NUMBA_CACHE_DIR "
            "to a folder that can be written, or to one filled by `eventide warm DIR` (its help says where that works)"
        )
    NOT_KEPT.append(function.__qualname__)


def _made_of(function: Callable[..., Any]) -> str:
    """A digest of a kernel, all that it calls and their constants; numba by itself looks at the kernel's file only."""
    digest, seen, waiting = hashlib.sha256(), set(), [function]
    while waiting:
        one = waiting.pop()
        if one in seen:
            continue
        seen.add(one)
        digest.update(inspect.getsource(one).encode())
        for name in one.__code__.co_names:
            value: Any = one.__globals__.get(name)
            if hasattr(value, "py_func"):
                waiting.append(value.py_func)
            elif isinstance(value, int | float | tuple | np.generic | np.ndarray):
                digest.update(np.asarray(value).tobytes())
    return digest.hexdigest()
