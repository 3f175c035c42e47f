"""The frame of a mechanism: four questions, asked at every step.

    is_sampling_point   look at this step, or not?
    budget_allocation   how much budget does the look get?
    perturbation        which measurement is asked of the meter?
    filtering           what is released, for free, from the measurement or from none?

The frame checks the counts, seals them, asks the four questions and ends the step. All arrays inside have a leading
axis for replicas: decisions and amounts are columns `(R, 1)`, or `(R, d)` where bins differ; values are `(R, d)`. A
mechanism never sees raw counts: it passes sealed steps on to the meter.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypedDict, final

import numpy as np

from eventide.arrays import LARGEST_COUNT, Array, Bools, Ints, spread
from eventide.errors import InputError, StateError
from eventide.filters.base import Filter, Repeat
from eventide.filters.registry import by_name
from eventide.mechanisms.caps import checked_cap
from eventide.mechanisms.levels import LevelParts, checked_levels
from eventide.mechanisms.release import Release
from eventide.parameters import Parametrised, parameter_defaults
from eventide.privacy.amounts import NANO, Amount, nano
from eventide.privacy.capped_ledger import CappedLedger
from eventide.privacy.guarantees import THIS_RUN_ONLY, Guarantee
from eventide.privacy.ledger import WindowLedger, positive_integer
from eventide.privacy.measured import Measured, together
from eventide.privacy.meter import Meter
from eventide.privacy.noise import Source, is_private, source, why_not_private
from eventide.privacy.sealed import SealedStep
from eventide.privacy.state import Stateful
from eventide.streams.named_counts import in_order

if TYPE_CHECKING:
    from eventide.events.timeline import Timeline  # which reads times, with pyarrow

LARGEST_SENSITIVITY = 10**6
NINE_OF_TEN = 1.645  # standard deviations of a normal distribution
_DOOR = (
    "release",
    "in_order",
    "checked",
    "take",
    "end_step",
    "_report",
)  # how true counts become a release: never replaced


class Parts(Protocol):
    """Several mechanisms that release a step together, as one."""

    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise scale that a look of any can have."""

    def release(self, step: SealedStep) -> Release:
        """Let all answer, and end the step for them."""


class CommonParameters(TypedDict, total=False):
    """The keywords that every mechanism takes besides epsilon, window and bins."""

    sensitivity: int
    window_sensitivity: int | None
    replicas: int
    filter: Filter | str | None
    noise: str | Source
    seed: int | None
    levels: Any
    level_split: Mapping[str, Any] | None


class Mechanism(Parametrised, Stateful, abc.ABC):
    """Publishes one vector of counts per step under w-event privacy.

    Parameters
    ----------
    epsilon
        Budget of every `window` consecutive steps, from 0.000001 to 1000000.
    window
        How many consecutive steps are protected together.
    bins
        How many, or their names.
    sensitivity
        The most that one person adds to a step over all bins together.
    window_sensitivity
        The most that the counts change, over all steps and bins together, when one person's rows inside one window
        change. Give it where it is less than sensitivity x window: every step then has a budget of its own.
    replicas
        How many independent copies run side by side.
    filter
        What turns measurements into releases, instead of the mechanism's own; or its name.
    noise
        "secure", "opendp", or a source of `eventide.noise` for tests.
    seed
        `seed=7` is short for `noise=Seeded(7)`, for studies and tests.
    levels
        Groups of bins that are published as well and add up, such as the district of every bin: the path of a CSV file
        whose first column is the bin, or for each level the group of every bin, from small groups to large ones.
    level_split
        Which part of epsilon each level gets, `bin` and `total` included; by default what public facts say is best.
    """

    state: ClassVar[tuple[str, ...]] = ("ledger", "source", "_filter", "_released", "_scale")
    accounts_per_bin = False  # accounting="fixed-bin": a subclass sets it before the frame's constructor runs
    takes_window_sensitivity = False  # True in a class that plans with `shared_nano_epsilon` and `shared_steps`
    heard: Measured | None = None  # what other levels measured of this step
    idle: Bools | None = None  # bins that hold nobody, as everybody knows: they are measured, and their release is 0
    decides_by_floats = False  # True where charges follow from floating-point numbers, which versions round differently
    takes_levels = False  # True in a class that measures counts and distances and nothing that stays open

    def __init__(
        self,
        epsilon: Amount,
        window: int,
        bins: int | Sequence[str],
        *,
        sensitivity: int = 1,
        window_sensitivity: int | None = None,
        replicas: int = 1,
        filter: Filter | str | None = None,
        noise: str | Source = "secure",
        seed: int | None = None,
        levels: Any = None,
        level_split: Mapping[str, Any] | None = None,
    ) -> None:
        self.nano_epsilon = nano(epsilon)
        self.window = positive_integer(window, "window")
        self._names = None if isinstance(bins, int | np.integer) else _names(bins)
        self.size = positive_integer(bins, "bins") if self._names is None else len(self._names)  # type: ignore[arg-type]
        self.sensitivity = positive_integer(sensitivity, "sensitivity", LARGEST_SENSITIVITY)
        self.replicas = positive_integer(replicas, "replicas")
        self.filter = by_name(filter) if isinstance(filter, str) else filter
        if not isinstance(self.filter, Filter | None):
            raise InputError(f"filter is {filter!r}; it must be a filter or the name of one")
        self.source = source(noise, seed)
        self.window_sensitivity = checked_cap(self, window_sensitivity)
        self.ledger = self._new_ledger()
        self.meter = Meter(self.ledger, self.source, self.numbers, self.sensitivity)
        self.level_split = level_split
        self.levels = checked_levels(self, levels)
        self._parts = self._made_parts()
        if self._parts is not None:  # which answer for it
            self.noise_range = self._parts.noise_range  # type: ignore[method-assign]
            return
        own = self.own_filter()
        chosen = own if self.filter is None else self.filter.over(own)
        self._filter = chosen.started(*self.meter.shape, **self.known())
        self._released: Array = np.zeros(self.meter.shape)
        self._scale: Array = np.full((self.replicas, 1), np.inf)
        self.begin()
        self.prepare()

    def __init_subclass__(cls, **keywords: Any) -> None:
        super().__init_subclass__(**keywords)
        if any(getattr(cls, name) is not getattr(Mechanism, name) for name in _DOOR):
            raise StateError(f"{cls.__name__} replaces what reads true counts; write its four methods only")

    def _new_ledger(self) -> WindowLedger:
        epsilon = Fraction(self.nano_epsilon, NANO)
        if self.window_sensitivity is not None:
            return CappedLedger(epsilon, self.window, self.sensitivity, self.window_sensitivity, self.replicas)
        return WindowLedger(epsilon, self.window, self.replicas, self.size if self.accounts_per_bin else 1)

    def _made_parts(self) -> Parts | None:
        """The mechanisms that answer for it, if there are any."""
        return None if self.levels is None else LevelParts(self, self.levels)

    @property
    def numbers(self) -> int:
        """How many numbers a step has: one for each bin."""
        return self.size

    @property
    def statistics_told(self) -> tuple[str, ...]:
        """The names of what is computed from its numbers and released, where these are not released themselves."""
        return ()

    @property
    def statistics_of_slots(self) -> frozenset[str]:
        """The names of those that have no numbers but at the last steps of slots of several steps."""
        return frozenset()

    def know_times(self, timeline: Timeline, origin: int) -> None:
        """Learn when steps are, of which step `origin` is step 0 here; most have no use for it."""

    def begin(self) -> None:
        """Build the mechanism's own state before the first step."""

    def known(self) -> dict[str, Any]:
        """Public facts that a filter may use: they say how sharp and how blurred looks can be."""
        return {"sensitivity": self.sensitivity, "epsilon": self.shared_epsilon, "window": self.shared_steps}

    def prepare(self) -> None:
        """Get ready for the next step, of which nothing is known yet; asked as soon as the one before has ended."""

    @property
    def kept_by_stores(self) -> tuple[str, ...]:
        """The parameters that nobody chooses: a store goes on with those that it was begun with."""
        return ()

    def own_filter(self) -> Filter:
        """The filter used when none is given."""
        return Repeat()

    @abc.abstractmethod
    def is_sampling_point(self, step: SealedStep) -> Bools:
        """Look at this step, or not? A column `(R, 1)`, or `(R, d)` where bins differ."""

    @abc.abstractmethod
    def budget_allocation(self) -> Ints:
        """How much, in nano-epsilon, does a look at this step get?"""

    def perturbation(self, step: SealedStep, amount: Ints) -> Measured:
        """Which measurement is asked of the meter? By default all bins, with `amount`."""
        return self.meter.counts(step, amount)

    def filtering(self, measured: Measured | None) -> Array:
        """What is released? By default whatever the filter makes of the measurement."""
        return self._filter.step(measured)

    @final
    def release(self, counts: Any) -> Release:
        """Publish the next step.

        Parameters
        ----------
        counts
            `d` whole numbers that are not negative, in the order of the bins; or a dict, a Series or a frame of one
            row, whose names are matched with the bins: names that are missing or unknown are an error. With replicas
            also `(R, d)`.
        """
        full = self.take(self.meter.seal(self.checked(counts)))
        return full if self.replicas > 1 else full.first()

    def checked(self, counts: Any) -> Ints:
        """The counts as a copy of shape `(1 or R, d)`, or a refusal that shows none of them."""
        array = whole_counts(self.in_order(counts, one_step=True))
        shared = array.ndim == 1
        if not (shared or (array.ndim == 2 and len(array) == self.replicas and self.replicas > 1)):
            raise InputError("counts of one step have one axis, the bins (or two, replicas and bins)")
        if array.shape[-1] != self.numbers:
            bins = f"{self.size} bins" if self.numbers == self.size else f"the {self.numbers} numbers of a step"
            raise InputError(f"{array.shape[-1]} counts were given for {bins}; give one for each, 0 included")
        return array.reshape(-1, self.numbers)

    def in_order(self, counts: Any, *, one_step: bool = False) -> Any:
        """Counts with the bins in this mechanism's order: by their names where they have any, else as they are."""
        return in_order(counts, self.bins, one_step=one_step)

    @property
    def epsilon(self) -> float:
        """The budget of every window."""
        return self.nano_epsilon / NANO

    @property
    def shared_steps(self) -> int:
        """How many consecutive steps share one budget: those of the window; a single one under `window_sensitivity`."""
        return self.ledger.window

    @property
    def shared_nano_epsilon(self) -> int:
        """What any `shared_steps` consecutive steps may be charged in all: what a mechanism plans with."""
        return self.ledger.nano_epsilon

    @property
    def shared_epsilon(self) -> float:
        """The same in epsilon."""
        return self.shared_nano_epsilon / NANO

    @cached_property
    def bins(self) -> tuple[str, ...]:
        """The names of the bins."""
        return tuple(map(str, range(self.size))) if self._names is None else self._names

    @property
    def guarantee(self) -> Guarantee:
        """What this mechanism promises."""
        return Guarantee(
            notion="event-level" if self.window == 1 else "w-event",
            epsilon=self.epsilon,
            window=self.window,
            unit=self.unit(),
            sensitivity=self.sensitivity,
            assumptions=(*self.assumptions(), THIS_RUN_ONLY),
            not_proven=self.not_proven(),
            refuted=self.refuted(),
            not_private=why_not_private(self.source),
            window_sensitivity=self.window_sensitivity,
        )

    def unit(self) -> str:
        """Whose events are protected."""
        return "one person who stays in one bin" if self.accounts_per_bin else "one person"

    def not_proven(self) -> str | None:
        """What the proof of a published form does not cover; None where it is whole."""
        return None

    def refuted(self) -> str | None:
        """How a published form is known to break its promise; None where it is not."""
        return None

    def assumptions(self) -> tuple[str, ...]:
        """What the guarantee rests on, beyond the ledger."""
        bounds = "this bound" if self.window_sensitivity is None else "these bounds"
        return (*self.covered(), f"the counts are trusted to keep {bounds}: nothing checks that")

    def covered(self) -> tuple[str, ...]:
        """What the guarantee says about what is released besides the counts of bins."""
        return (
            ()
            if self.levels is None
            else (f"this covers the releases of {', '.join(self.levels.names)} and bins together",)
        )

    def look_scale(self, charge: float) -> float:
        """The noise scale of a look that is charged so many nano-epsilon; infinite without any."""
        return self.sensitivity * NANO / charge if charge else math.inf

    def noise_range(self) -> tuple[float, float]:
        """The smallest and the largest noise scale that a look can have: known before any data is seen."""
        look = self.sensitivity / self.shared_epsilon
        return look, look * self.shared_steps

    @property
    def holds_raw(self) -> bool:
        """Whether a saved state would hold what hides or holds true events: open sums and groups, or a test's noise."""
        return False

    @property
    def step(self) -> int:
        """The index of the step that the next release will have."""
        return self.ledger.step

    def parameters(self) -> dict[str, Any]:
        """What it was made with, by name: `type(it)(**it.parameters())` makes another one alike.

        A seeded noise is there as one that begins anew, so that the other draws the same.
        """
        own = {name: getattr(self, name) for name in parameter_defaults(type(self)) if name not in ("noise", "seed")}
        noise = self._noise()
        return own | {
            "bins": self.size if self._names is None else self._names,
            "noise": noise.anew() if isinstance(noise, Source) else noise,
        }

    def _state_names(self) -> list[str]:
        return super()._state_names() if self._parts is None else ["ledger", "source", "_parts"]

    def _noise(self) -> str | Source:
        return self.source.name if is_private(self.source) else self.source

    def _told(self) -> dict[str, Any]:
        claim = {"epsilon": self.epsilon, "window": self.window, "bins": self.size}
        own = {name: value for name, value in super()._told().items() if name not in claim}
        return claim | own | ({} if self._noise() == "secure" else {"noise": self._noise()})

    def _repr_html_(self) -> str:
        from eventide.mechanisms.pictures import mechanism_card

        return mechanism_card(self)

    def save(self) -> bytes:
        """Everything needed to go on from this step, as bytes that `eventide.load` reads."""
        from eventide.mechanisms.saving import save

        return save(self)

    def take(self, step: SealedStep) -> Release:
        """Answer a sealed step, and end it."""
        try:
            if self._parts is not None:
                return self._parts.release(step)
            looks = self.is_sampling_point(step)
            measured = None
            if looks.any():
                measured = self.perturbation(step, np.where(looks, self.budget_allocation(), 0))
            measured = together(measured, self.heard)
            values = np.array(spread(self.filtering(measured), self.meter.shape), dtype=np.float64)
            release = self._report(step.index, values, measured)
            return release if self.idle is None else release.without(self.idle)
        finally:  # also a step that failed is over: what it was charged stays, and nothing of it is counted again
            self.end_step()

    def end_step(self) -> None:
        """End the current step and get ready for the next."""
        self.meter.advance()
        if self._parts is None:
            self.prepare()

    def _report(self, index: int, values: Array, measured: Measured | None) -> Release:
        """Build the release."""
        fresh = np.zeros((self.replicas, 1), dtype=np.bool_) if measured is None else measured.fresh
        if measured is not None:
            self._scale = np.where(fresh, measured.scale, self._scale)
        self._released = values
        charged = np.asarray(self.ledger.charged()).reshape(self.replicas, -1)
        window, noise = self.window_histogram(), self.window_noise()
        low, high = None, None
        if window is not None and noise is not None:
            low, high = _interval(window, noise, self.window_is_whole())
        return Release(
            step=index,
            values=values.copy(),
            fresh=fresh.any(axis=1),
            fresh_bins=np.full(values.shape, fresh),
            scale=np.full(values.shape, self._scale),
            spent=charged.max(axis=1),
            low=_copied(self._filter.low),
            high=_copied(self._filter.high),
            window_values=_filtered(window, self._filter),
            window_scale=_copied(noise),
            window_low=_filtered(low, self._filter),
            window_high=_filtered(high, self._filter),
        )

    def window_histogram(self) -> Array | None:
        """The histogram of the sliding window, for mechanisms that give one."""
        return None

    def window_noise(self) -> Array | None:
        """The noise scale of that histogram, where it is known."""
        return None

    def window_noise_range(self) -> tuple[float, float] | None:
        """The smallest and the largest noise scale of a whole histogram, known beforehand; None where none is given."""
        return None

    def window_is_whole(self) -> Array:
        """Where noise is all that the histogram is off by."""
        return np.ones((1, 1), dtype=np.bool_)

    @property
    def gives_windows(self) -> bool:
        """Whether releases have the histogram of a sliding window."""
        return type(self).window_histogram is not Mechanism.window_histogram


def whole_counts(counts: Any) -> Ints:
    """A copy of `counts`, of any shape, as whole numbers from 0 to 2^53, or a refusal that shows none of them."""
    try:
        array = np.asarray(counts)
    except ValueError:
        array = np.asarray(None)
    if array.dtype.kind not in "iuf":
        raise InputError("counts must be numbers, one for each bin")
    if array.size and not (array.min() >= 0 and array.max() <= LARGEST_COUNT):
        bad = np.argwhere(~((array >= 0) & (array <= LARGEST_COUNT)))[0]
        raise InputError(f"counts must lie between 0 and 2^53; look at position {', '.join(map(str, bad))}")
    whole: Ints = array.astype(np.int64)
    if array.dtype.kind == "f" and (whole != array).any():
        raise InputError("counts must be whole numbers; round them before publishing")
    return whole


def _copied(array: Array | None) -> Array | None:
    return None if array is None else array.copy()


def _interval(histogram: Array, noise: Array, known: Array) -> tuple[Array, Array]:
    """The ends of an interval around a histogram; NaN where they are not known.

    A sum of Laplace noise lies within it in at least nine of ten cases, however its variance is shared out: of the
    normal distribution, which many small parts come to, it holds nine of ten, and of a single part slightly more.
    """
    width = np.where(known & np.isfinite(noise), NINE_OF_TEN * math.sqrt(2) * noise, np.nan)
    return histogram - width, histogram + width


def _filtered(histogram: Array | None, filter: Filter) -> Array | None:
    return None if histogram is None else filter.windows(histogram).copy()


def _names(bins: Sequence[str]) -> tuple[str, ...]:
    listed = isinstance(bins, Sequence | np.ndarray) and getattr(bins, "ndim", 1) == 1
    if isinstance(bins, str | bytes) or not listed or len(bins) == 0:
        raise InputError("bins is the number of bins, or a list of their names")
    names = tuple(str(name) for name in bins)
    if len(set(names)) < len(names):
        raise InputError("two bins have the same name; give each its own")
    return names
