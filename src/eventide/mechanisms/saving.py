"""Save a mechanism at any step and go on from there: a ZIP of one JSON document and .npy members, never pickle.

The document names the mechanism and its parameters; arrays of the state are members of their own. Loading never imports
what a file names: the class comes from the registry, or from the caller.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from eventide.errors import EventideError, StateError
from eventide.filters.base import Filter
from eventide.filters.registry import by_name
from eventide.filters.registry import name_of as filter_name
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.parameters import parameters
from eventide.mechanisms.registry import mechanism_class, name_of
from eventide.privacy.amounts import NANO
from eventide.privacy.archive import pack, unpack
from eventide.privacy.noise import named, recorded_name

FORMAT, VERSION = "eventide mechanism", 1


def save(mechanism: Mechanism) -> bytes:
    """The bytes of a ZIP archive that `load` reads."""
    document = {
        "format": FORMAT,
        "version": VERSION,
        "mechanism": name_of(type(mechanism)) or type(mechanism).__name__,
        "epsilon": mechanism.nano_epsilon,
        "noise": recorded_name(mechanism.source),
        "parameters": _described(parameters(mechanism, _left_out(mechanism))),
        "state": mechanism.snapshot(),
    }
    return pack(document)


def load(data: bytes, mechanism: type[Mechanism] | None = None, filter: Filter | None = None) -> Mechanism:
    """The mechanism that `save` put away. A class or filter that is not eventide's own must be given."""
    document = unpack(data)
    try:
        if document["format"] != FORMAT or document["version"] != VERSION:
            raise StateError(f"this is a saved state of version {document['version']}; only {VERSION} can be read")
        cls = mechanism or mechanism_class(document["mechanism"])
        described = document["parameters"] | ({} if filter is None else {"filter": filter})
        given = {name: _built(value) for name, value in described.items()}
        epsilon = Fraction(document["epsilon"], NANO)
        loaded = cls(epsilon=epsilon, noise=named(document["noise"]), **given)
        loaded.restore(document["state"])
        return loaded
    except EventideError:
        raise
    except (KeyError, ValueError, TypeError, AttributeError) as problem:
        raise StateError(f"the saved state cannot be read ({type(problem).__name__}); it is damaged") from None


def _left_out(mechanism: Mechanism) -> set[str]:
    """Parameters that are not described: they stand elsewhere, or did not exist when older states were saved."""
    since_then = {"window_sensitivity"} if mechanism.window_sensitivity is None else set()
    return {"epsilon", "noise", "seed"} | since_then


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
