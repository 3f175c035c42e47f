"""Save a mechanism at any step and go on from there: a ZIP of one JSON document and .npy members, never pickle.

The document names the mechanism and its parameters; arrays of the state are members of their own. Loading never
imports what a file names: the class comes from the registry, or from the caller. Imports the frame and `filters`.
"""

from __future__ import annotations

import inspect
import io
import json
import zipfile
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from eventide.errors import EventideError, StateError
from eventide.filters.base import Filter
from eventide.filters.registry import by_name
from eventide.filters.registry import name_of as filter_name
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class, name_of
from eventide.privacy.amounts import NANO
from eventide.privacy.noise import OpenDP, Secure, Seeded, Source, Unit, Zero

FORMAT, VERSION = "eventide mechanism", 1
_DOCUMENT = "state.json"
_SOURCES: dict[str, Callable[[], Source]] = {
    "secure": Secure,
    "opendp": OpenDP,
    "seeded": lambda: Seeded(0),  # its state is restored with the rest
    "zero": Zero,
    "unit": Unit,
}


def save(mechanism: Mechanism) -> bytes:
    """The bytes of a ZIP archive that `load` reads."""
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "mechanism": name_of(type(mechanism)) or type(mechanism).__name__,
        "epsilon": mechanism.total,
        "noise": mechanism.source.name,
        "parameters": _described(parameters(mechanism)),
        "state": _without_arrays(mechanism.snapshot(), arrays),
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo(_DOCUMENT), json.dumps(document))
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name), member.getvalue())
    return buffer.getvalue()


def load(data: bytes, mechanism: type[Mechanism] | None = None, filter: Filter | None = None) -> Mechanism:
    """The mechanism that `save` put away. A class or filter that is not eventide's own must be given."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            document = json.loads(archive.read(_DOCUMENT))
            if document["format"] != FORMAT or document["version"] != VERSION:
                raise StateError(f"this is a saved state of version {document['version']}; only {VERSION} can be read")
            cls = mechanism or mechanism_class(document["mechanism"])
            described = document["parameters"] | ({} if filter is None else {"filter": filter})
            given = {name: _built(value) for name, value in described.items()}
            epsilon = Fraction(document["epsilon"], NANO)
            loaded = cls(epsilon=epsilon, noise=_SOURCES[document["noise"]](), **given)
            loaded.restore(_with_arrays(document["state"], archive))
            return loaded
    except EventideError:
        raise
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError, EOFError, AttributeError) as problem:
        raise StateError(f"the saved state cannot be read ({type(problem).__name__}); it is damaged") from None


def parameters(thing: Mechanism | Filter) -> dict[str, Any]:
    """The constructor's parameters as they are now, read from attributes of the same name."""
    names = [
        name
        for cls in type(thing).__mro__
        if "__init__" in vars(cls)
        for name, kind in inspect.signature(vars(cls)["__init__"]).parameters.items()
        if kind.kind in (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY) and name != "self"
    ]
    elsewhere = {"epsilon", "noise", "seed"} if isinstance(thing, Mechanism) else set()
    return {name: getattr(thing, name) for name in dict.fromkeys(names) if name not in elsewhere}


def _described(given: dict[str, Any]) -> dict[str, Any]:
    plain = dict(given)
    for name, value in given.items():
        if isinstance(value, Filter):
            registered = filter_name(value)
            plain[name] = {"filter": registered or type(value).__name__, "parameters": _described(parameters(value))}
    return plain


def _built(value: Any) -> Any:
    if isinstance(value, dict) and "filter" in value:
        return by_name(value["filter"], **{name: _built(inner) for name, inner in value["parameters"].items()})
    return value


def _without_arrays(value: Any, arrays: dict[str, np.ndarray[Any, Any]]) -> Any:
    if isinstance(value, dict):
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        name = f"{len(arrays)}.npy"
        arrays[name] = value
        return {"array": name}
    return value


def _with_arrays(value: Any, archive: zipfile.ZipFile) -> Any:
    if not isinstance(value, dict):
        return value
    if set(value) == {"array"}:
        return np.load(io.BytesIO(archive.read(value["array"])), allow_pickle=False)
    return {key: _with_arrays(item, archive) for key, item in value.items()}
