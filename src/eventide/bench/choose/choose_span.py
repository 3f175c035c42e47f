"""How to publish the histogram of the last steps of a stream like this one: every way is tried on a history.

Nothing is published and nothing is charged, which is why the history must be one that may be looked at. The same
arguments give the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from eventide.bench.choose.choose import can_be_published, runs_of, taken_history
from eventide.bench.choose.history import History
from eventide.bench.choose.span_choice import SpanChoice, SpanTrial
from eventide.bench.choose.trials import NINE_OF_TEN, SHORT, Candidate, Publication
from eventide.bench.run.histograms import LARGEST, PLAN, HistogramErrors, HistogramRun
from eventide.bench.run.runner import STEP_COST
from eventide.bench.run.workers import in_processes
from eventide.errors import InputError
from eventide.mechanisms.registry import find_mechanism
from eventide.mechanisms.window_baselines import WindowMechanism
from eventide.privacy.amounts import exact, nano
from eventide.privacy.ledger import positive_integer

ANSWERS_PER_SPAN = 5  # of a plan that is not asked at every step, at least


def choose_span(
    history: History | str | Path | Any,
    *,
    span: int,
    epsilon: float,
    window: int,
    mechanisms: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    sensitivity: int = 1,
    repetitions: int | None = None,
    seed: int = 1,
    tell: Callable[[int, int], None] = lambda done, total: None,
    processes: int = 1,
) -> SpanChoice:
    """Try ways to publish the histogram of the last `span` steps on a history, and recommend one.

    Parameters
    ----------
    history, epsilon, window, parameters, sensitivity, seed, tell, processes
        As of `choose`.
    span
        How many last steps the histogram is about.
    mechanisms
        Registry names or module:Class, besides rg-baseline; by default rg, with short groups and with long ones, a plan
        of window queries, and tide, whose releases are added up.
    repetitions
        Runs of each: by default 50, and down to 5 the more bins there are.

    >>> from eventide.bench import describe
    >>> calm = describe(level=400, steps=100)
    >>> choose_span(calm, span=10, epsilon=0.1, window=1, mechanisms=["rg"], repetitions=5).best.label
    'rg'
    """
    span, window, epsilon = positive_integer(span, "span"), positive_integer(window, "window"), float(exact(epsilon))
    nano(epsilon)
    sensitivity = positive_integer(sensitivity, "sensitivity")
    field = candidates(mechanisms, span, parameters)
    history = taken_history(history, max(window, span))
    counts = history.counts
    given = Publication(counts, epsilon, window)
    named = mechanisms or ()
    field = [each for each in field if each.name == PLAN or can_be_published(each, given, sensitivity, named)]
    repetitions = runs_of(counts) if repetitions is None else positive_integer(repetitions, "repetitions")
    runs = [HistogramRun(*each, counts, span, epsilon, window, repetitions, seed, sensitivity) for each in field]
    cost = len(field) * len(counts) * (repetitions * counts.shape[1] + STEP_COST)
    processes = processes if cost > SHORT else 1
    found: dict[int, HistogramErrors] = {}
    for number, errors in in_processes(HistogramRun.errors, enumerate(runs), processes):
        found[number] = errors
        tell(len(found), len(runs))
    trials = [_trial(each, found[number]) for number, each in enumerate(field)]
    largest = np.argsort(-counts.sum(axis=0), kind="stable")[:LARGEST]
    return SpanChoice(
        history=history,
        span=span,
        epsilon=epsilon,
        window=window,
        sensitivity=sensitivity,
        repetitions=repetitions,
        seed=seed,
        level=float(span * counts.mean()),
        level_of_largest=float(span * counts[:, largest].mean()),
        trials=tuple(sorted(trials, key=lambda trial: trial.error)),
    )


def candidates(
    mechanisms: Sequence[str] | None, span: int, parameters: Mapping[str, Any] | None = None
) -> list[Candidate]:
    """Those to try; a plan at every step is what rg-baseline gives, and so are sums of uniform: they are left out.

    >>> [candidate.label for candidate in candidates(None, 15)]
    ['rg-baseline', 'rg', 'rg max_group=16', 'plan step=3', 'tide']
    """
    if parameters and not mechanisms:
        raise InputError("parameters belong to mechanisms that are named; name one")
    if mechanisms is not None:
        named = [Candidate(name, dict(parameters or {})) for name in mechanisms]
        return [Candidate("rg-baseline", {}), *(each for each in named if each != Candidate("rg-baseline", {}))]
    found = [Candidate("rg-baseline", {}), Candidate("rg", {}), Candidate("rg", {"max_group": 16})]
    step = max(step for step in range(1, max(1, span // ANSWERS_PER_SPAN) + 1) if span % step == 0)
    found += [Candidate(PLAN, {"step": step})] if step > 1 else []
    return [*found, Candidate("tide", {})]


def _trial(candidate: Candidate, errors: HistogramErrors) -> SpanTrial:
    low, high = np.quantile(errors.absolute, NINE_OF_TEN)
    return SpanTrial(
        mechanism=candidate.name,
        parameters=candidate.parameters,
        how=_how(candidate.name),
        error=float(errors.absolute.mean()),
        low=float(low),
        high=float(high),
        relative=float(errors.relative.mean()),
        of_largest=float(errors.of_largest.mean()),
    )


def _how(name: str) -> str:
    if name == PLAN:
        return "planned"
    return "published" if issubclass(find_mechanism(name), WindowMechanism) else "summed"
