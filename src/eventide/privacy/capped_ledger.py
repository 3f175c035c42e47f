"""The ledger of counts of which one person changes little: every step has a budget of its own, without end.

Take the rows of one person inside one window of w steps, and change them. If the counts then change by at most C in L1,
over all steps and bins together (`window_sensitivity`), every step may be charged epsilon m / C, where m is the
sensitivity that noise is scaled by: however many steps are measured, that person loses at most epsilon.

Proof. Let x_t be how much the counts of step t change: the x_t sum to at most C. What is charged e to step t has noise
for a change of m, so the change of x_t costs e x_t / m there:

* counts, sums of groups and distances move by at most x_t, under noise of scale m / e;
* thinned counts lose at most e / m for each event, and x_t events change;
* sums over steps, slots of a plan and deviations inside a group move by at most the sum of the x_t of their steps, each
  of which was charged e;
* a threshold run moves by the largest x_t of its steps, which is at most their sum, and is a span that touches them.

So the whole loss is at most the sum over t of (points of t + spans that touch t) x_t / m, whatever was decided on the
way. Where the bracket is at most epsilon m / C at every step, the loss is at most epsilon. Nothing else is used: not
that the steps that change stand together, nor that one of them changes by at most m.
"""

from __future__ import annotations

from fractions import Fraction

from eventide.arrays import Ints
from eventide.errors import InputError
from eventide.privacy.amounts import NANO, SMALLEST, Amount, nano, share
from eventide.privacy.ledger import WindowLedger, positive_integer


class CappedLedger(WindowLedger):
    """A budget of epsilon m / C for every step, rounded down. See the module for why that is epsilon for a person.

    `left` and `worst_window` are in what one person can lose: a charge times C / m. `charged` and the entries are what
    the steps were charged.

    >>> ledger = CappedLedger(epsilon=1, window=168, sensitivity=1, window_sensitivity=8)
    >>> for _ in range(1000):
    ...     ledger.charge(100_000_000)
    ...     ledger.advance()
    >>> ledger.left(), ledger.worst_window()
    (1.0, 0.8)
    """

    __slots__ = ("_promised", "protected_window", "sensitivity", "window_sensitivity")

    def __init__(
        self, epsilon: Amount, window: int, sensitivity: int, window_sensitivity: int, replicas: int = 1
    ) -> None:
        self.protected_window, self.sensitivity = positive_integer(window, "window"), sensitivity
        self.window_sensitivity = positive_integer(window_sensitivity, "window_sensitivity")
        self._promised = nano(epsilon)
        a_step = step_budget(self._promised, sensitivity, window_sensitivity)
        super().__init__(Fraction(a_step, NANO), 1, replicas)

    @property
    def promised(self) -> int:
        """What one person may lose in all, in nano-epsilon."""
        return self._promised

    def shared(self, budget: int) -> int:
        """What of a budget of every window each step has."""
        return step_budget(budget, self.sensitivity, self.window_sensitivity)

    def loss(self, charge: Ints) -> Ints:
        """What one person loses if no step is charged more, rounded up."""
        return -share(-charge, self.window_sensitivity, self.sensitivity)

    def room(self, charge: Ints) -> Ints:
        """What one person would lose by a further charge to every step, rounded down."""
        return share(charge, self.window_sensitivity, self.sensitivity)

    def _settings(self) -> str:
        bounds = f"sensitivity={self.sensitivity}, window_sensitivity={self.window_sensitivity}"
        return f"window={self.protected_window}, {bounds}"


def step_budget(epsilon: int, sensitivity: int, window_sensitivity: int) -> int:
    """epsilon m / C in nano-epsilon, rounded down; a bound that is wrong or leaves nothing is refused.

    >>> step_budget(10**9, sensitivity=2, window_sensitivity=24)
    83333333
    """
    if window_sensitivity < sensitivity:
        raise InputError(
            f"window_sensitivity is {window_sensitivity} and sensitivity {sensitivity}: what one person changes in a "
            "whole window cannot be less than what they add to a single step; choose it at least as large"
        )
    budget = epsilon * sensitivity // window_sensitivity
    if budget < SMALLEST:
        raise InputError(
            f"epsilon {epsilon / NANO:g} leaves less than 0.000001 for each step when one person changes the counts by "
            f"{window_sensitivity:,}; choose a larger epsilon or a smaller window_sensitivity"
        )
    return budget
