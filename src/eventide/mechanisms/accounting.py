"""Who is protected: people who move between bins, or only those who stay in one.

Anything but the two known words is refused.
"""

from __future__ import annotations

from eventide.mechanisms.parameters import check_choice


def per_bin(accounting: str) -> bool:
    """Whether each bin has an account of its own, as `accounting` says.

    >>> per_bin("moving"), per_bin("fixed-bin")
    (False, True)
    """
    check_choice(accounting, "accounting", "moving", "fixed-bin")
    return accounting == "fixed-bin"
