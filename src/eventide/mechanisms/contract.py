"""The contract suite: what every mechanism must hold, ours or anybody's.

`check_mechanism(cls)` runs each check below on small streams and raises AssertionError with a sentence at the first one
that fails. It is an ordinary function, made to be called from anybody's tests.
"""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import EventideError, InputError
from eventide.mechanisms.base import Mechanism
from eventide.mechanisms.run import run
from eventide.mechanisms.saving import load
from eventide.parameters import REQUIRED, parameter_defaults
from eventide.privacy.amounts import NANO
from eventide.privacy.measured import Measured
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Seeded, Source, Unit, Zero
from eventide.privacy.sealed import SealedStep

EPSILON, WINDOW, BINS, STEPS = 1.0, 4, 3, 30

SENSITIVITY = 3  # so that no two rules from charge to scale give the same
PATIENCE = 40  # caches of the interpreter fill up over the first streams; what is kept of every step grows in all
FACTORS = {"test": {2 * SENSITIVITY, 4 * SENSITIVITY}, "thinned counts": {1}}  # all others: the sensitivity

Make = Callable[..., Mechanism]


UNSEEN = 60  # bytes a step: what grows by less is not told from what Python keeps anyhow


class Answer(NamedTuple):
    """What a method of a mechanism must return, and whether something can be that."""

    told: str
    fits: Callable[[Any], bool]


ANSWERS = {
    "is_sampling_point": Answer(
        "an array of booleans, (replicas, 1) or (replicas, bins), such as np.full((self.replicas, 1), True)",
        lambda answer: isinstance(answer, np.ndarray | np.generic),
    ),
    "budget_allocation": Answer(
        "an array of whole numbers of nano-epsilon, such as np.array([[self.nano_epsilon // self.window]])",
        lambda answer: np.asarray(answer).dtype.kind in "iu",
    ),
    "perturbation": Answer(
        "a measurement of the meter, such as self.meter.counts(step, amount)",
        lambda answer: isinstance(answer, Measured | None),
    ),
    "filtering": Answer(
        "an array of numbers, (replicas, bins), such as super().filtering(measured)",
        lambda answer: isinstance(answer, np.ndarray),
    ),
}


def check_mechanism(cls: type[Mechanism], **parameters: object) -> list[str]:
    """Raise AssertionError if `cls` breaks the contract; the names of the checks it passed otherwise.

    Parameters
    ----------
    cls
        The class to check. It is built many times and runs on small streams.
    **parameters
        Further parameters of the constructor, whatever it takes besides epsilon, window and bins.

    >>> import eventide as ev
    >>> len(ev.check_mechanism(ev.Uniform))
    12
    """

    if not (isinstance(cls, type) and issubclass(cls, Mechanism)):
        raise AssertionError("only a class that is derived from eventide.Mechanism can be checked")
    given = {"epsilon", "window", "bins", *parameters}
    for name, default in parameter_defaults(cls).items():
        _demand(default is not REQUIRED or name in given, f"it needs a value of {name}; give one, or a default")

    def make(**more: Any) -> Mechanism:
        common: dict[str, Any] = {"epsilon": EPSILON, "window": WINDOW, "bins": BINS, "noise": Seeded(11)}
        return cls(**common | parameters | more)

    for check in CHECKS:
        try:
            check(make)
        except AssertionError:
            raise
        except Exception as problem:
            said = f"{type(problem).__name__} while checking '{_rule(check)}': {problem}{_blamed(make)}"
            raise AssertionError(said) from problem
    return [_rule(check) for check in CHECKS]


def _blamed(make: Make) -> str:
    """Which of the four methods raised, or returned what it must not; nothing where errors of ours say it all."""
    asked = told = ""

    def watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def ask(*given: Any) -> Any:
            nonlocal asked, told
            asked = name
            answer = method(*given)
            if not ANSWERS[name].fits(answer):
                told = f", which must return {ANSWERS[name].told}"
                raise TypeError(name)
            asked = ""
            return answer

        return ask

    try:
        mechanism = make()
        for name in ANSWERS:
            setattr(mechanism, name, watched(name, getattr(mechanism, name)))
        run(mechanism, _stream("bursts"))
    except EventideError:
        return ""
    except Exception:
        return f"; look at {asked}{told}" if asked else ""
    return ""


def check_no_window_is_over_epsilon(make: Make) -> None:
    """Whatever the stream and the setting, neither the ledger nor the reported charges pass epsilon in a window."""
    for name, stream in _streams():
        for setting in ({}, {"window": 1}, {"window": 7, "epsilon": "1/7"}, {"sensitivity": 5}, {"window": 10**6}):
            mechanism = make(**setting)
            spent = np.rint(run(mechanism, stream).spent * NANO).astype(np.int64)
            within = bool(np.max(mechanism.ledger.worst_window()) <= mechanism.epsilon)
            if not mechanism.accounts_per_bin:  # there `spent` is that of the dearest bin, not always the same one
                width = min(mechanism.window, len(spent))
                within = within and bool(np.convolve(spent, np.ones(width, np.int64)).max() <= mechanism.nano_epsilon)
            _demand(within, f"a window was charged more than epsilon on {name} with {setting}")


def check_releases_are_well_formed(make: Make) -> None:
    """Finite values for every bin of every step, with shapes as documented and an honest guarantee."""
    mechanism = make()
    for index, counts in enumerate(_stream("bursts")):
        release = mechanism.release(counts)
        _demand(release.step == index, "steps must be numbered from 0 without gaps")
        for field in ("values", "fresh_bins", "scale"):
            _demand(np.shape(getattr(release, field)) == (BINS,), f"{field} must hold one number for each bin")
        _demand(bool(np.isfinite(release.values).all()), "released values must be finite")
        looks = [release.fresh_bins, *(level.fresh for level in (release.levels or {}).values())]
        _demand(release.fresh == any(map(np.any, looks)), "fresh says whether any bin or level was measured")
        _demand(not np.any(np.asarray(release.scale)[release.fresh_bins] == np.inf), "a measured bin has a noise scale")
    _demand(str(mechanism.guarantee).startswith("NOT PRIVATE"), "seeded noise must make the guarantee say NOT PRIVATE")
    _demand(not str(make(noise="secure").guarantee).startswith("NOT PRIVATE"), "secure noise is private")


def check_releases_come_through_the_door(make: Make) -> None:
    """With zeros sealed in the place of the counts, every stream gives the same releases."""
    values = []
    for name in ("zeros", "bursts"):
        mechanism = make(noise=Seeded(11))
        mechanism.meter = _shut(mechanism.meter)
        values.append(run(mechanism, _stream(name)).values)
    _demand(np.array_equal(values[0], values[1]), "true counts reach a release without passing through the meter")


def check_is_causal(make: Make) -> None:
    """A later step never changes an earlier release."""
    stream = _stream("bursts")
    whole = run(make(), stream).values
    _demand(
        np.array_equal(run(make(noise=Seeded(11)), stream).values, whole),
        "two runs with one seed differ: it draws chance of its own; take noise from the meter alone",
    )
    for changed_from in (1, STEPS // 2, STEPS - 1):
        other = stream.copy()
        other[changed_from:] += 1000
        _demand(
            np.array_equal(run(make(noise=Seeded(11)), other).values[:changed_from], whole[:changed_from]),
            f"a change at step {changed_from} changed an earlier release",
        )


def check_does_not_depend_on_chunking(make: Make) -> None:
    """One long run and the same run piece by piece release the same."""
    stream = _stream("walk")
    whole, pieces = run(make(), stream).values, make()
    cut = [run(pieces, stream[begin : begin + 7]).values for begin in range(0, STEPS, 7)]
    _demand(np.array_equal(np.concatenate(cut), whole), "a run in pieces differs from the whole run")


def check_goes_on_after_save_and_load(make: Make) -> None:
    """Saved and loaded at any step, it goes on as if nothing had happened."""
    stream = _stream("bursts")
    mechanism = make()
    for name in parameter_defaults(type(mechanism)).keys() - {"noise", "seed"}:
        _demand(hasattr(mechanism, name), f"its parameter {name} must be kept as self.{name}, so that it can be saved")
    for cut in (0, 1, 5, STEPS // 2):
        mechanism = make()
        run(mechanism, stream[:cut])
        loaded = load(mechanism.save(), type(mechanism), mechanism.filter)
        expected, found = run(mechanism, stream[cut:]), run(loaded, stream[cut:])
        same = np.array_equal(expected.values, found.values) and np.array_equal(expected.spent, found.spent)
        _demand(
            same,
            f"saved and loaded at step {cut}, it releases something else; what changes while it runs must be named in "
            "the class attribute state",
        )
        kept = np.array_equal(mechanism.ledger.worst_window(), loaded.ledger.worst_window())
        _demand(kept, "the ledger was not saved whole")


def check_memory_is_bounded(make: Make) -> None:
    """A long stream needs no more memory than a short one: less than 60 bytes a step, which is what can be seen."""
    mechanism = make()
    stream = np.tile(_stream("bursts"), (2, 1))
    run(mechanism, np.tile(stream, (3, 1)))
    tracemalloc.start()
    try:
        growths = (_growth(mechanism, stream) for _ in range(PATIENCE))
        bounded = any(growth < UNSEEN * len(stream) for growth in growths)
    finally:
        tracemalloc.stop()
    _demand(bounded, f"memory grows with the length of the stream, by {UNSEEN} bytes a step or more")


def check_replicas_are_independent(make: Make) -> None:
    """Replicas do what single runs do, and draw noise of their own."""
    streams = np.stack([stream for _, stream in _streams()])
    together = run(make(replicas=len(streams), noise=Zero()), streams)
    for index, stream in enumerate(streams):
        alone = run(make(noise=Zero()), stream)
        same = np.array_equal(alone.values, together.values[index]) and np.array_equal(
            alone.spent, together.spent[index]
        )
        _demand(same, f"replica {index} of several differs from a run alone")
    both = run(make(replicas=2), _stream("bursts"))
    _demand(bool(both.fresh.any()), f"it never measures: {STEPS} steps, and no look")
    values = both.values
    _demand(not np.array_equal(values[0], values[1]), "two replicas share their noise")


def check_inputs_are_left_alone(make: Make) -> None:
    """Counts handed in are not changed, and neither they nor a release are kept by reference."""
    stream = _stream("walk")
    expected, mechanism = run(make(), stream).values, make()
    for index, counts in enumerate(stream):
        handed = counts.copy()
        release = mechanism.release(handed)
        _demand(np.array_equal(handed, counts), "the counts handed in were changed")
        _demand(
            np.array_equal(release.values, expected[index]), "changing counts or a release afterwards changed the next"
        )
        handed[:] = 0
        release.values[:] = -1


def check_bad_input_changes_nothing(make: Make) -> None:
    """What is no vector of counts is refused with InputError; nothing is charged and the next release is the same."""
    stream = _stream("walk")
    expected, mechanism = run(make(), stream).values, make()
    nothing = np.zeros(BINS)
    bad: list[Any] = [nothing - 1, nothing + 0.5, nothing + np.nan, nothing + np.inf, nothing[1:], np.zeros(BINS + 1)]
    bad += [["a"] * BINS, None, 3, np.zeros((2, BINS)), nothing + 2.0**60, [[1], [2, 3]], nothing > 0]
    for index, counts in enumerate(stream):
        left = mechanism.ledger.left()
        try:
            mechanism.release(bad[index % len(bad)])
        except InputError:
            _demand(np.array_equal(mechanism.ledger.left(), left), "refused input was charged")
        except Exception as problem:
            raise AssertionError(f"bad input raised {type(problem).__name__} instead of InputError") from problem
        else:
            raise AssertionError("bad input was released")
        _demand(
            np.array_equal(mechanism.release(counts).values, expected[index]), "refused input changed the next release"
        )


def check_every_draw_is_charged(make: Make) -> None:
    """Every draw comes from a measurement of the meter, has the scale its rule gives, and was paid for."""
    for inner in (Seeded(5), Unit()):
        recorder = RecordingSource(inner)
        mechanism = make(noise=recorder, sensitivity=SENSITIVITY)
        mechanism.meter.journal = []
        for counts in _stream("bursts"):
            recorder.drawn, mechanism.meter.journal = [], []
            release = mechanism.release(counts)
            journal = mechanism.meter.journal
            _demand(
                [(draw.numerator, draw.charges.tolist()) for draw in journal] == recorder.drawn,
                "noise was drawn that no measurement of the meter asked for",
            )
            paid = round(release.spent * NANO)
            now = [draw.charges for draw in journal if draw.kind in ("counts", "distance")]
            whole = sum(int(charges.max()) for charges in now if charges.shape[1] == 1)
            parts = max((int(charges.max()) for charges in now if charges.shape[1] > 1), default=0)
            _demand(whole + parts <= paid, "a measurement was not charged to its step")
            for draw in journal:
                if not (draw.kind == "test" and (mechanism.guarantee.not_proven or mechanism.guarantee.refuted)):
                    rule = FACTORS.get(draw.kind, {mechanism.sensitivity})
                    _demand(draw.numerator // NANO in rule, f"the scale of '{draw.kind}' is not what its rule gives")


def check_a_bound_over_a_window_is_kept(make: Make) -> None:
    """With `window_sensitivity` every step keeps to its own budget, saved and loaded too; or it is refused."""

    def capped(**more: Any) -> Mechanism:
        return make(**{"window": 3 * SENSITIVITY, "window_sensitivity": 2 * SENSITIVITY} | more)

    try:
        capped()
    except (InputError, TypeError):  # it does not take one, which its constructor says
        return
    for name, stream in _streams():
        mechanism = capped(sensitivity=SENSITIVITY)
        spent = np.rint(run(mechanism, stream).spent * NANO).astype(np.int64)
        within = bool(2 * spent.max() <= mechanism.nano_epsilon) and bool(
            np.max(mechanism.ledger.worst_window()) <= mechanism.epsilon
        )
        _demand(within, f"a step was charged more than epsilon x sensitivity / window_sensitivity on {name}")
    check_goes_on_after_save_and_load(capped)
    check_every_draw_is_charged(capped)


CHECKS = (
    check_no_window_is_over_epsilon,
    check_releases_are_well_formed,
    check_is_causal,
    check_does_not_depend_on_chunking,
    check_goes_on_after_save_and_load,
    check_memory_is_bounded,
    check_replicas_are_independent,
    check_inputs_are_left_alone,
    check_bad_input_changes_nothing,
    check_every_draw_is_charged,
    check_releases_come_through_the_door,
    check_a_bound_over_a_window_is_kept,
)


class RecordingSource(Source):
    """Passes another source's noise on and remembers what was asked."""

    name = "recorded"

    def __init__(self, inner: Source) -> None:
        self.inner = inner
        self.drawn: list[tuple[int, list[Any]]] = []

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """The inner source's draws."""
        self.drawn.append((numerator, np.asarray(charges).tolist()))
        return self.inner.laplace(numerator, charges, shape)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """The inner source's sample."""
        return self.inner.binomial(counts, percent)


def _shut(meter: Meter) -> Meter:
    """The same meter, but for its door: it seals zeros whatever the counts are."""
    kind = type(meter)

    class Shut(kind):  # type: ignore[misc, valid-type]
        __slots__ = ()

        def seal(self, counts: Ints) -> SealedStep:
            return kind.seal(self, np.zeros_like(counts))

    meter.__class__ = Shut
    return meter


def _growth(mechanism: Mechanism, stream: Ints) -> int:
    """By how many bytes the process is larger after releasing a stream than before."""
    before: int = tracemalloc.get_traced_memory()[0]
    for counts in stream:
        mechanism.release(counts)
    gc.collect()
    after: int = tracemalloc.get_traced_memory()[0]
    return after - before


def _streams() -> Iterator[tuple[str, Ints]]:
    """Small streams that make mechanisms behave differently, by name."""
    generator = np.random.default_rng(3)
    shape = (STEPS, BINS)
    yield "zeros", np.zeros(shape, dtype=np.int64)
    yield "constant", np.full(shape, 500)
    yield "walk", 1000 + np.cumsum(generator.integers(-9, 10, shape), axis=0)
    yield "bursts", generator.poisson(3, shape) + 400 * (generator.random(shape) < 0.2)


def _stream(name: str) -> Ints:
    return dict(_streams())[name]


def _rule(check: Callable[[Make], None]) -> str:
    return check.__name__.removeprefix("check_").replace("_", " ")


def _demand(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
