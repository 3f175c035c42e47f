"""Save a mechanism at any step and go on from there: a ZIP of one JSON document and .npy members, never pickle.

The document names the mechanism and its parameters; arrays of the state are members of their own. Loading never imports
what a file names: the class comes from the registry, or from the caller.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from eventide.errors import EventideError, InputError, StateError
from eventide.events.levels import Levels
from eventide.filters.base import Filter
from eventide.filters.registry import by_name
from eventide.filters.registry import name_of as filter_name
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.registry import mechanism_class, name_of
from eventide.parameters import parameter_defaults
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import pack, unpack
from eventide.privacy.noise import named, recorded_name

FORMAT, VERSION = "eventide mechanism", 1
# What older versions did, before there was a parameter for it, by the name of that parameter.
LATER = dict.fromkeys(("window_sensitivity", "levels", "level_split", "seasons")) | {"algorithm": 1}


def save(mechanism: Mechanism) -> bytes:
    """The bytes of a ZIP archive that `load` reads."""
    given = {name: value for name, value in mechanism.parameters().items() if name not in ("epsilon", "noise")}
    document = {
        "format": FORMAT,
        "version": VERSION,
        "mechanism": name_of(type(mechanism)) or type(mechanism).__name__,
        "epsilon": mechanism.nano_epsilon,
        "noise": recorded_name(mechanism.source),
        "parameters": _described(given),
        "state": mechanism.snapshot(),
    }
    return pack(document)


def load(data: bytes, mechanism: type[Mechanism] | None = None, filter: Filter | None = None) -> Mechanism:
    """The mechanism that `save` put away.

    Parameters
    ----------
    data
        What `save` gave.
    mechanism
        Its class, where it is not one of eventide's own.
    filter
        Its filter, where that is not one of eventide's own.
    """
    document = unpack(data)
    try:
        if document["format"] != FORMAT:
            raise StateError(f"these bytes are of another kind, {document['format']!r}; load them with what saved them")
        if document["version"] != VERSION:
            raise StateError(f"this is a saved state of version {document['version']}; only {VERSION} can be read")
        cls = mechanism or _class_named(document["mechanism"])
        described = document["parameters"] | ({} if filter is None else {"filter": filter})
        given = as_before(cls) | {name: _built(value) for name, value in described.items()}
        epsilon = Fraction(document["epsilon"], NANO)
        loaded = cls(epsilon=epsilon, noise=named(document["noise"]), **given)
        loaded.restore(document["state"])
        return loaded
    except EventideError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError) as problem:
        raise StateError(f"the saved state cannot be read ({type(problem).__name__}); it is damaged") from None


def _class_named(name: str) -> type[Mechanism]:
    try:
        return mechanism_class(name)
    except InputError:
        raise InputError(f"{name!r} is no mechanism of eventide; give its class, ev.load(data, {name})") from None


def as_before(mechanism: type[Mechanism]) -> dict[str, Any]:
    """What a mechanism did before it had parameters for it: a description leaves these out where they are so."""
    return {name: value for name, value in LATER.items() if name in parameter_defaults(mechanism)}


def _described(given: dict[str, Any]) -> dict[str, Any]:
    plain = {name: value for name, value in given.items() if name not in LATER or value not in (None, LATER[name])}
    for name, value in given.items():
        if isinstance(value, Levels):
            plain[name] = value.described()
        elif isinstance(value, Filter):
            registered = filter_name(value)
            plain[name] = {"filter": registered or type(value).__name__, "parameters": _described(value.parameters())}
    return plain


def _built(value: Any) -> Any:
    if isinstance(value, dict) and "filter" in value:
        return by_name(value["filter"], **{name: _built(inner) for name, inner in value["parameters"].items()})
    return value
