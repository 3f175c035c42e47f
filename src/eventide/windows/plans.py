"""A plan: which slots are released with which budget, and how precisely each query will be answered.

Nothing is spent by planning, and errors are computed, not simulated. Those that are told are of the noise that answers
have, discrete Laplace. Planners compare by a bound of it, 2 / epsilon^2 for a slot (`cost`): it is nearly exact while a
slot has an epsilon below 1, and with it a plan depends on epsilon only by rounding.
`plan.scheme` says how a window is answered: a `Nested` by least squares over all slots that end in time, a `Layers` or
`Cover` by adding up `scheme.chain(begin, end, step)`.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from eventide.arrays import Floats
from eventide.errors import BudgetExceeded, InputError
from eventide.privacy.amounts import NANO, Amount, nano
from eventide.privacy.guarantees import Guarantee
from eventide.windows.planners.registry import PLANNERS, design
from eventide.windows.schemes.scheme import Scheme, Slots, query_errors, workload_error
from eventide.windows.slot_promise import guarantee
from eventide.windows.workload import Query, Workload

if TYPE_CHECKING:
    from eventide.windows.answering.answers import Answers, Bins, Settings


class Plan:
    """Slots for a workload, made by the named planner.

    For every tick the budgets of the slots over it sum to at most `budget`, which is epsilon in whole nano-epsilon.
    `eventide.windows.plan` makes one.

    Parameters
    ----------
    workload
        The queries with their windows.
    epsilon
        The budget of one tick.
    planner
        The name of what makes the slots.
    scheme
        The slots, where they are known already.
    """

    def __init__(self, workload: Workload, epsilon: Amount, planner: str, scheme: Scheme | None = None) -> None:
        self.workload, self.planner, self.budget = workload, planner, nano(epsilon)
        self.scheme: Scheme = design(planner, workload, self.budget) if scheme is None else scheme
        most = self.slots.largest_sum()
        if most > self.budget:
            raise BudgetExceeded(most / NANO, self.budget / NANO, 1)

    @property
    def epsilon(self) -> float:
        """The budget of one tick."""
        return self.budget / NANO

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries in the order given."""
        return self.workload.queries

    @property
    def slots(self) -> Slots:
        """What is released over the ticks [0, scheme.length), and then again if the scheme is periodic."""
        return self.scheme.slots

    @cached_property
    def query_errors(self) -> Floats:
        """The mean variance of each query's answers, in the order given; nan for a query beyond the horizon."""
        return self.errors()

    def errors(self, window: int = 1, sensitivity: int = 1) -> Floats:
        """The same for answers that are started with these settings.

        Parameters
        ----------
        window
            How many consecutive ticks are protected together.
        sensitivity
            The most that one person adds to a tick over all bins.
        """
        return self._errors_of(self.scheme.as_drawn(window, sensitivity))

    def _errors_of(self, scheme: Scheme) -> Floats:
        return np.append(query_errors(self.workload, scheme), np.nan)[self.workload.kind]

    @property
    def workload_error(self) -> float:
        """The sum of the errors of all queries within the horizon."""
        return float(np.nansum(self.query_errors))

    @property
    def cost(self) -> float:
        """What planners compare: the workload error with 2 / epsilon^2 for each slot, a bound of `workload_error`."""
        return float(np.nansum(self._errors_of(self.scheme)))

    def compare(self) -> dict[str, float]:
        """The workload error of every planner that can plan this workload; they choose by `cost`, which is a bound."""
        errors = {}
        for planner in PLANNERS:
            try:
                scheme = self.scheme if planner == self.planner else design(planner, self.workload, self.budget)
            except InputError:
                continue
            errors[planner] = workload_error(self.workload, scheme.as_drawn(1, 1))
        return errors

    @property
    def guarantee(self) -> Guarantee:
        """What answers to this plan promise, as they are started by default."""
        return guarantee(self.epsilon, 1, 1, None)

    def at(self, tick: int) -> Plan:
        """The same plan, for a stream whose first tick is this one; windows still begin at multiples of their steps."""
        if not self.scheme.periodic:
            raise InputError("a plan that does not repeat begins at tick 0; plan without a horizon")
        workload = Workload.of(self.queries, self.workload.horizon, tick)
        return Plan(workload, Fraction(self.budget, NANO), self.planner, self.scheme)

    def start(self, bins: Bins = None, **settings: Unpack[Settings]) -> Answers:
        """Begin to answer: ticks are pushed in, answers come out.

        Parameters
        ----------
        bins, **settings
            As in `Answers`.
        """
        from eventide.windows.answering.answers import Answers

        return Answers(self, bins, **settings)

    def save(self) -> bytes:
        """The plan as bytes that `eventide.windows.load` reads."""
        from eventide.windows.saving import save_plan

        return save_plan(self)

    def plot(self, query: Query | None = None, begin: int | None = None) -> Any:
        """A matplotlib figure: the slots around one window with those its answer is made of, and all queries' errors.

        Parameters
        ----------
        query
            Whose window it is; by default one of middling length.
        begin
            The tick at which the window begins.
        """
        from eventide.windows.pictures import draw

        return draw(self, query, begin)

    def __repr__(self) -> str:
        return f"Plan(queries={len(self.queries)}, epsilon={self.epsilon:g}, planner={self.planner!r})"

    def _repr_html_(self) -> str:
        from eventide.windows.pictures import plan_card

        return plan_card(self)

    def explain(self) -> str:
        """The plan in words: levels, budgets, the standard error of every query, and other planners' errors."""
        from eventide.windows.pictures import explain

        return explain(self)
