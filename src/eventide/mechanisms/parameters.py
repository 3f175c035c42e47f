"""Checks that the constructors of mechanisms share: what is none of a few choices is refused."""

from __future__ import annotations

from eventide.errors import InputError


def check_choice(value: object, name: str, *choices: object) -> None:
    """Refuse a value that is none of the choices, which are words, True, False or None.

    >>> check_choice("moving", "accounting", "moving", "fixed-bin")
    """
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise InputError(f"{name} is {value!r}; it must be {' or '.join(map(repr, choices))}")


def per_bin(accounting: str) -> bool:
    """Whether each bin has an account of its own ("fixed-bin"): then only people who stay in one bin are protected."""
    check_choice(accounting, "accounting", "moving", "fixed-bin")
    return accounting == "fixed-bin"
