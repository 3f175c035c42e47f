"""What is promised, as fields and in words.

The words say everything that a reader must know: whose events, how many steps, what is taken on trust, and first of
all if nothing is promised. They are short sentences on one line, of which the first is the promise. It is about all
that somebody did in a step: for a part of it epsilon counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

EVERY_EVENT = "one person, taking every event for a person of its own"  # the unit where events name no person
COUNTS = "the counts"
ALONE = "here every event is taken for a person of its own: whoever has several may lose epsilon for each of them"
THIS_RUN_ONLY = "this holds for this run only: no store keeps its ledger"
LARGE_EPSILON = 10  # above it even one release may tell nearly for certain what somebody did


def about_large(epsilon: float) -> list[str]:
    """A sentence about an epsilon that is too large to protect anybody; nothing about others."""
    if epsilon <= LARGE_EPSILON:
        return []
    return [f"Epsilon {epsilon:g} hides little of anybody; values from 0.1 to 2 are usual."]


def bound_of_step(
    most: int, moved: str | None = None, worth: Fraction = Fraction(1), *, exchanged: bool = False, of: str = "a step"
) -> str:
    """How far one person moves what is measured of a step.

    >>> print(bound_of_step(2))
    one person adds at most 2 to a step, over all bins together
    >>> print(bound_of_step(480, "the sums of fare", Fraction(1, 4)))
    in a step one person adds at most 120 (480 units of 0.25) to the sums of fare, over all bins together
    """
    amount = _amount(most, worth)
    if moved is None:
        return f"one person adds at most {amount} to {of}, over all bins together"
    if not exchanged:
        return f"in {of} one person adds at most {amount} to {moved}, over all bins together"
    why = "they may leave one bin and come to another"
    return f"in {of} one person changes {moved} by at most {amount}, over all bins together: {why}"


def _amount(number: int, worth: Fraction) -> str:
    return str(number) if worth == 1 else f"{float(number * worth):.12g} ({number} units of {float(worth):.12g})"


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee; `str()` of it is one line of short sentences that may be shown to anybody.

    Parameters
    ----------
    notion
        "w-event" or "event-level".
    epsilon, window
        The budget of every window, and its number of steps.
    unit
        Whose data is protected.
    sensitivity
        The most that the unit adds to a step over all bins together.
    assumptions
        What the guarantee rests on, and what it does not cover; a sentence each, without capital and full stop.
    not_proven
        The gap of a published form whose proof has one.
    refuted
        How a published form is known to break its promise.
    not_private
        The reason why there is no guarantee at all.
    window_sensitivity
        Where there is one, the most that the counts change over all steps and bins together when the events of a window
        do.
    lasting
        How long a window lasts, where steps have a length, such as "7 days".
    exchanged
        Whether the sensitivity is by how much a step changes when a part of it does: where the unit leaves one bin and
        comes to another, that is more than what it adds.
    moved, worth
        What both sensitivities are about, and how much 1 in them is worth there.
    """

    notion: str
    epsilon: float
    window: int
    unit: str
    sensitivity: int
    assumptions: tuple[str, ...] = ()
    not_proven: str | None = None
    refuted: str | None = None
    not_private: str | None = None
    window_sensitivity: int | None = None
    lasting: str | None = None
    exchanged: bool = False
    moved: str = COUNTS
    worth: Fraction = Fraction(1)

    def __str__(self) -> str:
        promise, *more = self._sentences()
        if self.not_proven:
            promise = f"NOT PROVEN ({self.not_proven}): as its authors claim, {promise}"
        if self.refuted:
            promise = f"REFUTED ({self.refuted}): its authors claim that {promise}"
        if self.not_private:
            promise = f"NOT PRIVATE ({self.not_private}): with private noise, {promise}"
        sentences = [f"{each[0].upper()}{each[1:]}." for each in (promise, *more)]
        return " ".join([*sentences, *about_large(self.epsilon)])

    def _sentences(self) -> list[str]:
        """The promise, then what it rests on."""
        reach = "any single step" if self.window == 1 else f"any {self.window} consecutive steps"
        reach += f" ({self.lasting})" if self.lasting else ""
        alone = self.unit == EVERY_EVENT
        promise = (
            f"all events of {'one person' if alone else self.unit} inside {reach} are hidden by {self.notion} "
            f"differential privacy with epsilon {self.epsilon:g}"
        )
        moved = None if self.moved == COUNTS else self.moved
        bound = bound_of_step(self.sensitivity, moved, self.worth, exchanged=self.exchanged)
        return [promise, *([ALONE] if alone else []), bound, *self._bound_of_window(), *self.assumptions]

    def _bound_of_window(self) -> list[str]:
        if self.window_sensitivity is None:
            return []
        most = _amount(self.window_sensitivity, self.worth)
        changed = f"if the events of one person inside one window change, {self.moved} change by at most {most}"
        return [f"{changed}, over all steps and bins together"]

    def _repr_html_(self) -> str:
        from eventide.privacy.pictures import guarantee_card

        return guarantee_card(self)
