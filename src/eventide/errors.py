"""What can go wrong, as four kinds a caller may tell apart; and sentences that several places need.

A message says what is wrong and what to do, and never shows a true count.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_LISTED = 20  # names in a message


class EventideError(Exception):
    """Whatever eventide raises on purpose."""


class InputError(EventideError):
    """Something handed in is not what was asked for; nothing was charged and nothing is lost."""


class BudgetExceeded(EventideError):
    """The ledger refused a charge: some window of steps would go over epsilon. Nothing was charged.

    Parameters
    ----------
    asked
        The charge, in epsilon.
    left
        What the window had left, in epsilon.
    window
        How many steps the window has.
    """

    def __init__(self, asked: float, left: float, window: int) -> None:
        super().__init__(
            f"asked for {asked:g} of epsilon with {left:g} left in the window of {window} steps; "
            "wait until earlier charges leave the window, or ask for less"
        )
        self.asked = asked
        self.left = left
        self.window = window

    def __reduce__(self) -> tuple[type[BudgetExceeded], tuple[float, float, int]]:
        """Keep the three numbers when the error crosses a process boundary."""
        return (type(self), (self.asked, self.left, self.window))


class StateError(EventideError):
    """A thing was used out of turn (a dead step, a foreign one), or a saved state cannot be read."""


class StoreError(EventideError):
    """A store, or a file that releases go to, is busy, damaged, full or of another version; no charge is lost.

    Also where a port is in use: like a store in use, that may pass by itself.
    """


def missing_extra(what: str, extra: str) -> InputError:
    """A package is not installed that comes with an extra of eventide.

    >>> print(missing_extra("Kafka needs it", "kafka"))
    Kafka needs it; install it with: pip install 'eventide[kafka]', in a copy of the source: pip install '.[kafka]'
    """
    how = f"pip install 'eventide[{extra}]', in a copy of the source: pip install '.[{extra}]'"
    return InputError(f"{what}; install it with: {how}")


def unknown(what: str, given: str, known: Iterable[str], owner: str = "") -> str:
    """There is no such thing (of its owner); perhaps a similar one was meant.

    >>> unknown("mechanism", "tiden", ["tide", "ba"])
    "there is no mechanism 'tiden'; did you mean 'tide'?"
    >>> unknown("parameter", "K", ["k"], "hybrid")
    "there is no parameter 'K' of hybrid; did you mean 'k'?"
    """
    import difflib  # only who mistypes waits for it

    known = list(known)
    by_small_letters = {name.lower(): name for name in known}
    close = difflib.get_close_matches(given, known, n=1) or [
        by_small_letters[name] for name in difflib.get_close_matches(given.lower(), by_small_letters, n=1)
    ]
    more = f" and {len(known) - MOST_LISTED:,} others" if len(known) > MOST_LISTED else ""
    listed = ", ".join(known[:MOST_LISTED]) + more
    advice = f"did you mean {close[0]!r}?" if close else f"choose one of {listed}"
    return f"there is no {what} {given!r}{f' of {owner}' if owner else ''}; {advice}"
