"""Mechanisms by name, resolved on first use."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from eventide.errors import EventideError, InputError, unknown
from eventide.parameters import REQUIRED, parameter_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

    from eventide.mechanisms.base import Mechanism
    from eventide.mechanisms.every_parameter import EveryParameter

MECHANISMS = {
    "uniform": ("eventide.mechanisms.uniform", "Uniform"),
    "sample": ("eventide.mechanisms.sample", "Sample"),
    "hybrid": ("eventide.mechanisms.hybrid", "Hybrid"),
    "bd": ("eventide.mechanisms.budget_distribution", "BudgetDistribution"),
    "ba": ("eventide.mechanisms.budget_absorption", "BudgetAbsorption"),
    "fast": ("eventide.mechanisms.fast", "FAST"),
    "dsat": ("eventide.mechanisms.dsat", "DSAT"),
    "rescuedp": ("eventide.mechanisms.rescuedp", "RescueDP"),
    "adapub": ("eventide.mechanisms.adapub", "AdaPub"),
    "pegasus": ("eventide.mechanisms.pegasus", "PeGaSus"),
    "spas": ("eventide.mechanisms.spas", "SPAS"),
    "tide": ("eventide.mechanisms.tide", "Tide"),
    "rg": ("eventide.mechanisms.retroactive_grouping", "RetroactiveGrouping"),
    "rg-baseline": ("eventide.mechanisms.window_baselines", "TimeUnitBaseline"),
    "rg-window-baseline": ("eventide.mechanisms.window_baselines", "WindowBaseline"),
}
OWN_CLASS = "module:Class of your own"
OWN_MODULES = set[str]()  # that somebody named as module:Class, and that are no part of eventide
COMPOSED = {"several": ("eventide.mechanisms.several", "Several")}  # made of others, for what a stream publishes


def mechanism_names() -> list[str]:
    """The names a mechanism can be asked for by."""
    return list(MECHANISMS)


def no_mechanism(name: str, *more: str) -> str:
    """There is no mechanism of this name; perhaps that of a class was given, or something similar, or one of `more`.

    >>> no_mechanism("BudgetAbsorption")
    "there is no mechanism 'BudgetAbsorption'; did you mean 'ba'?"
    """
    for registered, (_, cls) in MECHANISMS.items():
        if name == cls:
            return f"there is no mechanism {name!r}; did you mean {registered!r}?"
    return unknown("mechanism", name, [*MECHANISMS, *more])


def mechanism_class(name: str) -> type[Mechanism]:
    """The class registered under `name`."""
    if name not in MECHANISMS | COMPOSED:
        raise InputError(no_mechanism(name))
    module, cls = (MECHANISMS | COMPOSED)[name]
    found: type[Mechanism] = getattr(importlib.import_module(module), cls)
    return found


def find_class(name: str) -> Any:
    """The class of a registry name, or of module:Class, which is code that the user asks to run."""
    module, colon, attribute = name.partition(":")
    if not colon:
        if name not in MECHANISMS | COMPOSED:
            raise InputError(no_mechanism(name, OWN_CLASS))
        return mechanism_class(name)
    if "/" in module or module.endswith(".py"):
        right = f"{Path(module).stem}:{attribute}"
        raise InputError(f"{name} has a path before the colon; give {right} in the folder of that file")
    if not module.startswith("eventide."):
        OWN_MODULES.add(module)
    try:
        return getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as problem:
        if problem.name is None or not f"{module}.".startswith(f"{problem.name}."):
            raise InputError(f"{module} cannot be imported: {problem}; install what it needs, or correct it") from None
        raise InputError(f"cannot find {name}: {problem}; give module:Class of something importable here") from None
    except (ImportError, AttributeError) as problem:
        raise InputError(f"cannot find {name}: {problem}; give module:Class of something importable here") from None
    except EventideError as problem:  # of a class in it, which may be another one
        raise InputError(f"cannot import {module}: {problem}") from None
    except SyntaxError as problem:
        place = f"{Path(problem.filename or module).name}, line {problem.lineno}"
        raise InputError(f"{module} cannot be imported: {type(problem).__name__} in {place}; correct it") from None
    except Exception as problem:
        place = own_place(problem) or module
        raise InputError(
            f"{module} cannot be imported: {type(problem).__name__} in {place}: {problem}; correct it"
        ) from None


def own_place(problem: BaseException) -> str | None:
    """Where in a module that somebody named as module:Class an error was raised, if it was."""
    place, at = None, problem.__traceback__
    while at is not None:
        if (module := at.tb_frame.f_globals.get("__name__")) in OWN_MODULES:
            place = f"{module}, line {at.tb_lineno}"
        at = at.tb_next
    return place


def find_mechanism(name: str) -> type[Mechanism]:
    """The class of a registry name or of module:Class, which must be written in the frame."""
    from eventide.mechanisms.base import Mechanism

    found = find_class(name)
    if not (isinstance(found, type) and issubclass(found, Mechanism)):
        raise InputError(f"{name} is no subclass of eventide.Mechanism; write it in that frame")
    return found


def build_mechanism(name: str, parameters: Mapping[str, Any]) -> Mechanism:
    """A new mechanism of a registry name or of module:Class; parameters that its class does not take are refused."""
    cls = find_mechanism(name)
    known = parameter_defaults(cls)
    if unknown := parameters.keys() - known.keys():
        others = [other for other in MECHANISMS if min(unknown) in parameter_defaults(mechanism_class(other))]
        hint = f", which is for {', '.join(others)}" if others else ""
        raise InputError(f"mechanism {name!r} takes no {min(unknown)!r}{hint}; it takes {', '.join(known)}")
    if missing := [needed for needed, default in known.items() if default is REQUIRED and needed not in parameters]:
        raise InputError(f"mechanism {name!r} needs {' and '.join(missing)}")
    return cls(**parameters)


def mechanism(name: str, **parameters: Unpack[EveryParameter]) -> Mechanism:
    """A new mechanism by its registry name.

    Parameters
    ----------
    name
        One of `mechanism_names()`.
    **parameters
        Those of its class; epsilon and bins at least.

    >>> mechanism("ba", epsilon=1.0, window=120, bins=10)
    BudgetAbsorption(epsilon=1, window=120, bins=10)
    """
    mechanism_class(name)  # nothing is imported by this name
    return build_mechanism(name, parameters)


def name_of(cls: type[Mechanism]) -> str | None:
    """The registry name of a class, if it is registered."""
    return next(
        (name for name, home in (MECHANISMS | COMPOSED).items() if home == (cls.__module__, cls.__name__)), None
    )
