"""Which mechanism for a stream like this one: a small study on a history, and what it recommends.

Every candidate publishes the history some times, with the noise of studies and rounded to counts as the command line
does it; the one with the least error is recommended. Nothing is published and nothing is charged, which is why the
history must be one that may be looked at. The same arguments give the same choice.

Where nothing is worth publishing, remedies are tried. Each changes what is to be published by a factor and says how;
it gives None where it cannot go so far.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Ints
from eventide.bench.choose.choice import USELESS, Choice, Remedy, best_first, least
from eventide.bench.choose.history import History, given_history, read_history
from eventide.bench.choose.trials import Candidate, Publication, Trials
from eventide.bench.study.custom_mechanisms import is_custom, why_refused
from eventide.bench.study.metrics import season_length
from eventide.bench.study.requirements import BASELINES
from eventide.errors import InputError
from eventide.events.levels import Levels, read_levels
from eventide.mechanisms.hybrid import Hybrid
from eventide.mechanisms.publishing import why_not_published
from eventide.mechanisms.registry import build_mechanism, find_mechanism, mechanism_class, mechanism_names
from eventide.parameters import parameter_defaults
from eventide.privacy.amounts import LARGEST, NANO, SMALLEST, exact, nano
from eventide.privacy.ledger import positive_integer
from eventide.privacy.noise import Zero

OTHER_EPSILONS = (0.25, 0.5, 2, 4)  # times the one asked for
OTHER_WINDOWS = (0.25, 0.5, 2)
REMEDY_SIZES = (4, 16, 64)  # how much of a remedy is tried, until one helps
VALUES = 500  # repetitions times bins: many bins say as much with fewer repetitions
FEWEST, MOST = 5, 50  # repetitions
FEWER = 4  # at most one in so many of them where only a comparison is drawn: other windows and budgets, remedies


def choose(
    history: History | str | Path | Any,
    *,
    epsilon: float,
    window: int,
    mechanisms: Sequence[str] | None = None,
    parameters: Mapping[str, Any] | None = None,
    hide: int | None = None,
    levels: Any = None,
    sensitivity: int = 1,
    repetitions: int | None = None,
    seed: int = 1,
    tell: Callable[[int, int], None] = lambda done, total: None,
    processes: int = 1,
) -> Choice:
    """Try mechanisms on a history and recommend one that can be published.

    Parameters
    ----------
    history
        A file of counts, a matrix of steps and bins, or what `describe` made up. A choice made on private history
        tells something about it, and no budget covers that.
    epsilon, window
        As for a mechanism.
    mechanisms
        Registry names or module:Class, besides the baselines; by default all that release counts of single steps.
    parameters
        Further parameters of the mechanisms that are named.
    hide
        The longest sequence of steps that must not show, for advice on the window.
    levels
        Groups of bins that are published as well: the path of a file of levels, or for each level the group of every
        bin. Only mechanisms that can have levels are tried then.
    sensitivity
        The most that one person adds to a step.
    repetitions
        Runs of each candidate: by default 50, and down to 5 the more bins there are. Under other windows and budgets
        three; where these differ by more than 5 %, a quarter of the runs, but at least 5.
    seed
        The same seed gives the same choice.
    tell
        `tell(done, total)` hears of finished trials.
    processes
        How many run side by side; the choice is the same.

    >>> from eventide.bench import describe
    >>> calm = describe(level=400, steps=100)
    >>> choose(calm, epsilon=1, window=50, mechanisms=["hybrid"], repetitions=5).recommended.label
    'sample'
    """
    window, epsilon = positive_integer(window, "window"), float(exact(epsilon))
    nano(epsilon)
    sensitivity = positive_integer(sensitivity, "sensitivity")
    field = candidates(mechanisms, window, parameters)
    history = taken_history(history, window)
    given = Publication(history.counts, epsilon, window)
    groups = None if levels is None else _levels_of(history, levels)
    field = [each for each in field if can_be_published(each, given, sensitivity, mechanisms or (), groups)]
    if repetitions is None:
        repetitions = runs_of(history.counts)
    trials = Trials(sensitivity, positive_integer(repetitions, "repetitions"), seed, tell, processes, groups)
    return _choice(history, given, None if hide is None else positive_integer(hide, "hide"), field, trials)


def _choice(history: History, given: Publication, hide: int | None, field: list[Candidate], trials: Trials) -> Choice:
    counts, epsilon, window = given
    tried = best_first(trials.run([(each, given) for each in field]))
    ranked = [Candidate(trial.mechanism, trial.parameters) for trial in tried]
    of_another_kind = next((each for each in ranked if each.name != ranked[0].name), None)
    shortlist = [each for each in ranked if each in (ranked[0], of_another_kind) or each.name in BASELINES]
    as_asked = [trial for trial, candidate in zip(tried, ranked, strict=True) if candidate in shortlist]
    season = history.season or int(season_length(counts.sum(axis=1)))
    level = float(counts.mean())
    windows = _other_windows(window, (season, hide), len(counts))
    epsilons = [epsilon * factor for factor in OTHER_EPSILONS if SMALLEST <= epsilon * factor * NANO <= LARGEST]
    over_window = [(each, given._replace(window=other)) for other in windows for each in shortlist]
    over_epsilon = [(each, given._replace(epsilon=other)) for other in epsilons for each in shortlist]
    compared = trials.compare(over_window + over_epsilon, _fewer(trials))
    return Choice(
        history=history,
        epsilon=epsilon,
        window=window,
        sensitivity=trials.sensitivity,
        hide=hide,
        repetitions=trials.study.repetitions,
        seed=trials.study.seed,
        level=level,
        movement=float(np.abs(counts - np.median(counts, axis=0)).mean()),
        season=season,
        candidates=tuple(tried),
        over_window=(*as_asked, *compared[: len(over_window)]),
        over_epsilon=(*as_asked, *compared[len(over_window) :]),
        remedies=() if tried[0].error <= USELESS * level else _remedies(trials, shortlist, given),
        released=trials.released(ranked[0], given),
    )


def _fewer(trials: Trials) -> int:
    """The most repetitions of a trial that is compared with others, and not recommended."""
    repetitions = trials.study.repetitions
    return min(repetitions, max(FEWEST, repetitions // FEWER))


def candidates(
    mechanisms: Sequence[str] | None, window: int, parameters: Mapping[str, Any] | None = None
) -> list[Candidate]:
    """The baselines, each mechanism with the parameters or as it is by default, and then hybrid with several k.

    >>> [candidate.label for candidate in candidates(["hybrid", "ba"], 20)]
    ['uniform', 'sample', 'hybrid', 'hybrid k=10', 'hybrid k=5', 'hybrid k=3', 'hybrid k=2', 'ba']
    """
    if parameters and not mechanisms:
        raise InputError("parameters belong to mechanisms that are named; name one")
    found = []
    for name in dict.fromkeys([*BASELINES, *(mechanisms or _of_single_steps())]):
        own = dict(parameters or {}) if name in (mechanisms or ()) else {}
        if is_custom(name) and (reason := why_refused(find_mechanism(name), own)):
            raise InputError(f"{name} is refused: {reason}")
        found.append(Candidate(name, own))
        if name == "hybrid" and "k" not in own:
            known = (1, Hybrid(epsilon=1, window=window, bins=1).k)  # these are uniform and the default
            intervals = dict.fromkeys(-(-window // 2**power) for power in range(1, window.bit_length()))
            found += [Candidate(name, {"k": k, **own}) for k in intervals if k not in known]
    return found


def _levels_of(history: History, given: Any) -> Levels:
    """The levels of the bins that are tried, which may be some of those that a file names."""
    if isinstance(given, str | Path):
        known = set(history.bins)
        groups = read_levels(Path(given))
        given = {
            level: {name: group for name, group in each.items() if name in known} for level, each in groups.items()
        }
    return Levels.of(given, history.bins)


def runs_of(counts: Ints) -> int:
    """How often each candidate runs where nobody says it."""
    bins: int = counts.shape[1]
    return min(MOST, max(FEWEST, VALUES // bins))


def can_be_published(
    candidate: Candidate, given: Publication, sensitivity: int, named: Sequence[str], levels: Levels | None = None
) -> bool:
    """Whether a publisher takes a candidate; one that was asked for by name is refused with the reason."""
    if levels is not None and not find_mechanism(candidate.name).takes_levels:
        if candidate.name in named:
            raise InputError(f"{candidate.label} cannot have levels; choose tide, ba, uniform, sample or hybrid")
        return False
    fixed = {"epsilon": given.epsilon, "window": given.window, "bins": given.counts.shape[1], "noise": Zero()}
    reason = why_not_published(
        build_mechanism(candidate.name, {"sensitivity": sensitivity, **fixed, **candidate.parameters})
    )
    if reason and candidate.name in named:
        raise InputError(f"{candidate.label} cannot be published: {reason}")
    return reason is None


def _of_single_steps() -> list[str]:
    """All mechanisms but those that are made for histograms of sliding windows."""
    return [name for name in mechanism_names() if "span" not in parameter_defaults(mechanism_class(name))]


def taken_history(history: History | str | Path | Any, window: int) -> History:
    """The history in whatever form it was given, if a choice can be made on it."""
    if isinstance(history, str | Path):
        history = read_history(history, window)
    elif not isinstance(history, History):
        history = given_history(history, window)
    if len(history.counts) < window:
        raise InputError(
            f"{history.source} has {len(history.counts)} steps, fewer than the window of {window}; give a longer one, "
            "a smaller window, or describe a stream that is long enough"
        )
    if not history.counts.any():
        raise InputError(f"every count of {history.source} is 0, so nothing can be learnt from it; give another one")
    return history


def _other_windows(window: int, wanted: tuple[int | None, ...], steps: int) -> list[int]:
    """Windows to compare with, and those that are wanted, if the history is long enough."""
    found = {round(window * factor) for factor in OTHER_WINDOWS} | {each for each in wanted if each}
    return sorted(each for each in found if 1 <= each <= steps and each != window)


class Changed(NamedTuple):
    """What is to be published after a change, and the change in words."""

    words: str
    publication: Publication


def more_epsilon(given: Publication, factor: int) -> Changed | None:
    """A larger budget: weaker privacy for less noise."""
    epsilon = given.epsilon * factor
    if epsilon > LARGEST / NANO:
        return None
    return Changed(f"epsilon {epsilon:g} instead of {given.epsilon:g}", given._replace(epsilon=epsilon))


def smaller_window(given: Publication, factor: int) -> Changed | None:
    """Shorter sequences of events protected."""
    if factor > given.window:
        return None
    window = given.window // factor
    return Changed(f"window {window} instead of {given.window}", given._replace(window=window))


def longer_steps(given: Publication, factor: int) -> Changed | None:
    """Several steps summed into one. A sequence of short steps can begin inside a long one, so it touches one more."""
    window = -(-(given.window - 1) // factor) + 1
    counts = _summed(given.counts[: len(given.counts) // factor * factor], factor)
    if len(counts) < window:
        return None
    return Changed(
        f"steps {factor} times as long, with a window of {window}", given._replace(counts=counts, window=window)
    )


def fewer_bins(given: Publication, factor: int) -> Changed | None:
    """Neighbouring bins summed into one."""
    if factor > given.counts.shape[1]:
        return None
    return Changed(f"{factor} bins summed into one", given._replace(counts=_summed(given.counts.T, factor).T))


def coarser(given: Publication, factor: int) -> Changed | None:
    """Longer steps and fewer bins."""
    longer = longer_steps(given, factor)
    if longer is None:
        return None
    fewer = fewer_bins(longer.publication, factor)
    return fewer and Changed(f"{longer.words}, and {fewer.words}", fewer.publication)


def _summed(rows: Ints, factor: int) -> Ints:
    """The sums of so many consecutive rows each, the last of what is left."""
    return np.add.reduceat(rows, np.arange(0, len(rows), factor))


REMEDIES = (more_epsilon, smaller_window, longer_steps, fewer_bins, coarser)


def _remedies(trials: Trials, shortlist: list[Candidate], given: Publication) -> tuple[Remedy, ...]:
    """Each remedy, as large as it must be to help, or else as large as it was tried; the most helpful first."""
    found = []
    field = [*shortlist, *(each for each in [Candidate("hybrid", {})] if each not in shortlist)]
    for remedy in REMEDIES:
        result = None
        for change in (remedy(given, size) for size in REMEDY_SIZES):
            if change is None:
                break
            best = least(trials.compare([(candidate, change.publication) for candidate in field], _fewer(trials)))
            result = Remedy(change.words, best, float(change.publication.counts.mean()))
            if result.share <= USELESS:
                break
        if result is not None:
            found.append(result)
    return tuple(sorted(found, key=lambda each: each.share))
