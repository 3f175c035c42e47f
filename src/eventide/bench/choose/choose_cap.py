"""Which cap for people like these: every cap counts their events, and mechanisms publish what it lets count.

In each repetition another secret decides where people's blocks begin. Nothing is published and nothing is charged,
which is why the events must be ones that may be looked at. The same arguments give the same choice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from eventide.arrays import Ints
from eventide.bench.choose.cap_choice import CapChoice, CapTrial
from eventide.bench.choose.choose import FEWEST, MOST, VALUES
from eventide.bench.choose.people import NEVER, People
from eventide.bench.choose.trials import NINE_OF_TEN, Candidate
from eventide.bench.study.study import Setting, StudiedMechanism
from eventide.errors import InputError
from eventide.events.caps import Cap
from eventide.events.durations import milliseconds
from eventide.filters.seasons import Automatic, automatic_periods
from eventide.mechanisms.registry import find_mechanism
from eventide.mechanisms.run import run
from eventide.parameters import parameter_defaults
from eventide.privacy.amounts import exact, nano
from eventide.privacy.ledger import positive_integer
from eventide.privacy.noise import Seeded

MECHANISMS = ("uniform", "tide")
LARGEST_TRIED = 12  # events in a block as long as the window


def choose_cap(
    people: People,
    *,
    epsilon: float,
    window: int,
    caps: Sequence[Cap] | None = None,
    mechanisms: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    max_per_step: int = 1,
    repetitions: int | None = None,
    seed: int = 1,
    tell: Callable[[int, int], None] = lambda done, total: None,
) -> CapChoice:
    """Try caps on people's events and recommend one.

    Parameters
    ----------
    people
        What `read_people` read or `describe_people` made up. A choice made on private history tells something about
        it, and no budget covers that.
    epsilon, window, parameters, seed, tell
        As of `choose`.
    caps
        Those to try; by default from 1 to 12 events in a block as long as the window.
    mechanisms
        Registry names or module:Class, uniform and tide by default. Each publishes without a cap and behind every one.
    max_per_step
        How many events of a person count in a step, with a cap or without.
    repetitions
        Runs of each: by default 50, and down to 5 the more bins there are.

    >>> from eventide.bench import describe_people
    >>> seldom = describe_people(people=2000, events_per_week=0.2, step="1d", steps=60)
    >>> choose_cap(seldom, epsilon=1, window=30, mechanisms=["uniform"], repetitions=5).best.cap.block
    30
    """
    window, max_per_step = positive_integer(window, "window"), positive_integer(max_per_step, "max_per_step")
    epsilon = float(exact(epsilon))
    nano(epsilon)
    if people.steps < window:
        raise InputError(
            f"{people.source} has {people.steps} steps, fewer than the window of {window}; give a longer history, a "
            "smaller window, or describe people for long enough"
        )
    if parameters and not mechanisms:
        raise InputError("parameters belong to mechanisms that are named; name one")
    tried = caps or [Cap(events, window) for events in range(max_per_step, max_per_step + LARGEST_TRIED)]
    useful = [cap for cap in tried if cap.window_sensitivity(window, max_per_step) < max_per_step * window]
    if repetitions is None:
        repetitions = min(MOST, max(FEWEST, VALUES // len(people.bins)))
    field = [Candidate(name, dict(parameters or {})) for name in dict.fromkeys(mechanisms or MECHANISMS)]
    counted = counted_under(people, useful, max_per_step, repetitions, seed)
    if not counted[None].any():
        raise InputError(f"nothing happens in {people.source}, so nothing can be learnt from it; give another one")
    setting = Setting("choose", epsilon, window)
    periods = automatic_periods(milliseconds(people.length), len(people.bins))
    trial = partial(_trial, counted, setting=setting, most=max_per_step, periods=periods, seed=seed)
    trials = []
    for cap in counted:
        for candidate in field:
            trials.append(trial(cap, candidate))
            tell(len(trials), len(counted) * len(field))
    return CapChoice(
        people=people,
        epsilon=epsilon,
        window=window,
        max_per_step=max_per_step,
        repetitions=repetitions,
        seed=seed,
        level=float(counted[None].mean()),
        trials=tuple(trials),
        useless=tuple(cap for cap in tried if cap not in useful),
        beyond=1 - float(counted[None].sum() / (repetitions * np.count_nonzero(people.bin >= 0))),
    )


def counted_under(
    people: People, caps: Sequence[Cap], most: int, repetitions: int, seed: int
) -> dict[Cap | None, Ints]:
    """What counts without a cap and under each, `(R, T, d)`, in every repetition with a secret of its own."""
    found: dict[Cap | None, list[Ints]] = {cap: [] for cap in (None, *caps)}
    for repetition in range(repetitions):
        chance = np.random.default_rng([seed, repetition])
        shifts, order = chance.random(people.count), chance.random(len(people.step))
        for block in {cap.block for cap in caps} or {1}:
            places = people.places(block, most, (shifts * block).astype(np.int64), order)
            for cap in (cap for cap in caps if cap.block == block):
                found[cap].append(people.counts(places < cap.events))
        found[None].append(people.counts(places < NEVER))
    return {cap: np.stack(counts) for cap, counts in found.items()}


def _trial(
    counted: dict[Cap | None, Ints],
    cap: Cap | None,
    candidate: Candidate,
    setting: Setting,
    most: int,
    periods: Automatic,
    seed: int,
) -> CapTrial:
    """One mechanism behind a cap, where it has the seasons that publishing gives it, or without one.

    All have the same noise, so that they differ by nothing else.
    """
    counts, truth = counted[cap], counted[None]
    repetitions, _, bins = counts.shape
    parameters = candidate.parameters | {"sensitivity": most}
    if cap is not None:
        parameters["window_sensitivity"] = cap.window_sensitivity(setting.window, most)
        if "seasons" in parameter_defaults(find_mechanism(candidate.name)):
            parameters.setdefault("seasons", periods)
    studied = StudiedMechanism(candidate.label, candidate.name, parameters, "truncate")
    matrix = counts if repetitions > 1 else counts[0]
    released = run(studied.build(setting, bins, repetitions, Seeded(seed)), matrix).values.reshape(counts.shape)
    errors = np.abs(released - truth).mean(axis=(1, 2))
    low, high = np.quantile(errors, NINE_OF_TEN)
    return CapTrial(
        cap=cap,
        mechanism=candidate.name,
        noise=float(np.abs(released - counts).mean()),
        left_out=float(np.abs(counts - truth).mean()),
        error=float(errors.mean()),
        low=float(low),
        high=float(high),
        missing=1 - float(counts.sum() / truth.sum()),
    )
