"""Who is protected: people who move between bins, or only those who stay in one.

Anything but the two known words is refused. Imports `errors`.
"""

from __future__ import annotations

from eventide.errors import InputError


def per_bin(accounting: str) -> bool:
    """Whether each bin has an account of its own, as `accounting` says.

    >>> per_bin("moving"), per_bin("fixed-bin")
    (False, True)
    """
    if accounting not in ("moving", "fixed-bin"):
        raise InputError(f"accounting is 'moving' or 'fixed-bin', not {accounting!r}")
    return accounting == "fixed-bin"
