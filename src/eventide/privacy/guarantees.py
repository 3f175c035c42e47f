"""What is promised, as fields and as one sentence.

The sentence says everything that a reader must know: whose events, how many steps, what is taken on trust, and first of
all if nothing is promised. It is about all that somebody did in a step: for a part of it epsilon counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

LARGE_EPSILON = 10  # above it even one release may tell nearly for certain what somebody did


def about_large(epsilon: float) -> list[str]:
    """A sentence about an epsilon that is too large to protect anybody; nothing about others."""
    if epsilon <= LARGE_EPSILON:
        return []
    return [f"Epsilon {epsilon:g} hides little of anybody; values from 0.1 to 2 are usual."]


@dataclass(frozen=True)
class Guarantee:
    """A privacy guarantee; `str()` of it is one sentence that may be shown to anybody.

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
        What the guarantee rests on, and what it does not cover.
    not_proven
        The gap of a published form whose proof has one.
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
    """

    notion: str
    epsilon: float
    window: int
    unit: str
    sensitivity: int
    assumptions: tuple[str, ...] = ()
    not_proven: str | None = None
    not_private: str | None = None
    window_sensitivity: int | None = None
    lasting: str | None = None
    exchanged: bool = False

    def __str__(self) -> str:
        reach = "any single step" if self.window == 1 else f"any {self.window} consecutive steps"
        reach += f" ({self.lasting})" if self.lasting else ""
        bound = "change a step by at most {}" if self.exchanged else "add at most {} to a step"
        sentence = (
            f"all events of {self.unit} inside {reach} are hidden by {self.notion} differential privacy with "
            f"epsilon {self.epsilon:g}, where they {bound.format(self.sensitivity)} over all bins"
        )
        if self.window_sensitivity is not None:
            sentence += f" and change the counts by at most {self.window_sensitivity} over all steps and bins together"
        sentence = " ".join(["; ".join([sentence, *self.assumptions]) + ".", *about_large(self.epsilon)])
        if self.not_proven:
            sentence = f"NOT PROVEN ({self.not_proven}): as its authors claim, {sentence}"
        if self.not_private:
            return f"NOT PRIVATE ({self.not_private}): with private noise, {sentence}"
        return sentence[0].upper() + sentence[1:]

    def _repr_html_(self) -> str:
        from eventide.privacy.pictures import guarantee_card

        return guarantee_card(self)
