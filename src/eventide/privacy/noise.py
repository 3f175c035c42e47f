"""Where noise comes from: two private sources, and three for studies and tests.

Promises integer noise whose scale is the exact ratio of two integers; `Secure` and `OpenDP` draw it exactly and from a
cryptographic generator. Nothing else is private: not a class made from one of them, nor `Secure` with random bytes from
anywhere but OpenSSL or the operating system.

>>> Unit().laplace(10**9, np.array([500_000_000]), (1, 3))
array([[2., 2., 2.]])
"""

from __future__ import annotations

import abc
import copy
import math
import os
import ssl
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from eventide.arrays import Array, Ints
from eventide.errors import InputError, StateError, missing_extra
from eventide.privacy import coins

__all__ = ["OpenDP", "Secure", "Seeded", "Source", "Unit", "Zero"]

PRIVATE_NAMES = ("secure", "opendp")
TRUSTED_BYTES = (ssl.RAND_bytes, os.urandom)  # OpenSSL's generator, which the operating system seeds, and its own
LARGEST_SCALE = 10**16  # its digits end below 2^59; past int64 lie only 16 heads in a row of a coin of 2^-64


class Source(abc.ABC):
    """A source of noise. (Sources of events are `eventide.EventSource`.)"""

    name: ClassVar[str]

    @abc.abstractmethod
    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """Independent discrete Laplace draws of scale numerator / charge in an array of `shape`.

        `charges` (int64, >= 0) broadcasts to `shape`. Where the charge is 0 nothing is drawn and the cell is 0.
        """

    def laplace_in_turn(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """One draw of `shape` after the other, a charge for each; a seeded source gives what single draws would."""
        every = charges.reshape(-1, *(1 for _ in shape))
        return self.laplace(numerator, every, (len(charges), *shape))

    @abc.abstractmethod
    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """How many of `counts` events survive, each kept with probability percent / 100; the arrays broadcast."""

    def snapshot(self) -> dict[str, Any]:
        """What `restore` needs to go on from here, ready for JSON; empty for a source without state."""
        return {}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Go on from where `snapshot` was taken."""
        if snapshot:
            raise StateError(f"the {self.name} noise has no state; restore this snapshot into the noise it came from")

    def anew(self) -> Source:
        """A source like this one at its beginning: itself where it has no state."""
        return self

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Secure(Source):
    """Exact noise from a cryptographic generator, by default OpenSSL's, which is safe across forks.

    Parameters
    ----------
    entropy
        `entropy(n)` returns n fresh uniform bytes, of which nothing is kept between calls. Private with
        `ssl.RAND_bytes` and `os.urandom`; with anything else, which is for tests, the guarantee begins with NOT
        PRIVATE.
    """

    name = "secure"

    def __init__(self, entropy: Callable[[int], bytes] = ssl.RAND_bytes) -> None:
        self._entropy = entropy

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Ints:
        """Exact draws; distinct scales are drawn one after the other."""
        _check_scales(numerator, charges)
        return _by_charge(lambda charge, count: coins.laplace(numerator, charge, count, self._entropy), charges, shape)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """One exact coin per event."""
        _check_thinning(counts, percent)
        return coins.binomial(counts, percent, self._entropy)


class OpenDP(Source):
    """The discrete Laplace sampler of the package opendp, for those who want that one and can wait.

    Its scale is a double, so ours is rounded up to one: the noise is never smaller than what is charged. opendp has no
    binomial sampler, so thinning uses the exact coins of `Secure`.
    """

    name = "opendp"

    def __init__(self) -> None:
        try:
            import opendp.prelude as opendp
        except ImportError:
            raise missing_extra("the noise 'opendp' needs the package opendp", "opendp") from None
        opendp.enable_features("contrib")  # make_laplace refuses without; it holds for the whole process
        self._space = opendp.vector_domain(opendp.atom_domain(T="i64")), opendp.l1_distance(T="i64")
        self._make_laplace = opendp.m.make_laplace

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Ints:
        """opendp's measurement of a vector of zeros, once for each distinct scale."""
        _check_scales(numerator, charges)

        def draw(charge: int, count: int) -> Ints:
            scale = numerator / charge
            if Fraction(scale) < Fraction(numerator, charge):
                scale = math.nextafter(scale, math.inf)
            return np.array(self._make_laplace(*self._space, scale)([0] * count), np.int64)

        return _by_charge(draw, charges, shape)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """One exact coin per event."""
        return Secure().binomial(counts, percent)


class Seeded(Source):
    """Repeatable noise for studies, from numpy's generator. NOT PRIVATE: whoever knows the seed knows the noise.

    Parameters
    ----------
    seed
        At least 0. The same seed gives the same noise.
    """

    name = "seeded"

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
            raise InputError(f"a seed is a whole number of at least 0, not {seed!r}")
        self.seed: int | None = int(seed)
        self._generator = np.random.default_rng(seed)

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Ints:
        """Differences of two geometric numbers, each the floor of a scaled exponential one.

        The generator moves on for every cell, charged or not: what one replica does never changes another's noise.
        """
        scale = _scales(numerator, charges)
        return self._differences(self._generator.standard_exponential((2, *shape)), scale)

    def laplace_in_turn(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """All in one call: the generator fills an array in the order in which single draws would ask for it."""
        scale = _scales(numerator, charges)
        pairs = self._generator.standard_exponential((len(charges), 2, *shape))
        return self._differences(np.moveaxis(pairs, 1, 0), scale.reshape(-1, *(1 for _ in shape)))

    @staticmethod
    def _differences(pair: Array, scale: Array) -> Ints:
        pair *= scale
        np.floor(pair, out=pair)
        return np.asarray(pair[0] - pair[1], np.int64)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """By numpy's generator."""
        _check_thinning(counts, percent)
        return np.asarray(self._generator.binomial(counts, percent / 100))

    def snapshot(self) -> dict[str, Any]:
        """The generator's state, and the seed it began with."""
        return {"seed": self.seed, **self._generator.bit_generator.state}

    def restore(self, snapshot: dict[str, Any]) -> None:
        """Continue the generator from that state."""
        try:
            self._generator.bit_generator.state = snapshot
        except (KeyError, TypeError, ValueError):
            raise StateError("this is no snapshot of a seeded noise; restore one that `snapshot` returned") from None
        self.seed = snapshot.get("seed")

    def anew(self) -> Source:
        """The same noise from the beginning; from here on where an old snapshot did not tell the seed."""
        return copy.deepcopy(self) if self.seed is None else Seeded(self.seed)


class Zero(Source):
    """No noise at all, to see a mechanism's own error. NOT PRIVATE."""

    name = "zero"

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """0 everywhere."""
        _check_scales(numerator, charges)
        return np.zeros(shape, np.int64)

    def binomial(self, counts: Ints, percent: Ints) -> Ints:
        """The expected number, rounded down."""
        _check_thinning(counts, percent)
        return counts * percent // 100


class Unit(Zero):
    """Noise equal to its scale, so that a test can read every scale. NOT PRIVATE."""

    name = "unit"

    def laplace(self, numerator: int, charges: Ints, shape: tuple[int, ...]) -> Array:
        """The scales, as floats."""
        return np.broadcast_to(_scales(numerator, charges), shape).copy()


def source(noise: str | Source, seed: int | None) -> Source:
    """The source a user asked for: `noise` by name or as an object, or a seeded one where a `seed` is given."""
    if seed is not None:
        if not (isinstance(noise, str) and noise == "secure"):
            raise InputError(f"give either a seed or noise={noise!r}, not both: a seed makes its own noise")
        return Seeded(seed)
    if isinstance(noise, Source):
        return noise
    if isinstance(noise, str) and noise in ("secure", "opendp"):
        return Secure() if noise == "secure" else OpenDP()
    raise InputError(f"noise is 'secure', 'opendp' or a source such as eventide.noise.Zero(), not {noise!r}")


def is_private(noise: Source) -> bool:
    """Whether a source is one of the two private ones, as they are: whatever else a class says of itself, it is not."""
    if type(noise) is Secure:
        return any(noise._entropy is trusted for trusted in TRUSTED_BYTES)
    return type(noise) is OpenDP


def recorded_name(noise: Source) -> str:
    """The name that a source goes by where its noise is recorded: that of a private one is for private ones only."""
    return noise.name if is_private(noise) or noise.name not in PRIVATE_NAMES else f"altered {noise.name}"


def why_not_private(noise: Source) -> str | None:
    """What a guarantee must say first about noise from this source; None where it is private."""
    return None if is_private(noise) else f"the noise is {recorded_name(noise)}, for studies and tests only"


def named(name: str) -> Source:
    """The source of that name, ready to restore a snapshot into; a seeded one gets its seed from there."""
    if name == Seeded.name:
        return Seeded(0)
    for kind in (Secure, OpenDP, Zero, Unit):
        if name == kind.name:
            return kind()
    raise StateError(
        f"there is no noise named {name!r}; the saved state is damaged, or its noise was one that cannot be saved"
    )


def _check_scales(numerator: int, charges: Ints) -> None:
    """Refuse what no scale can be made of."""
    if numerator < 1 or charges.min(initial=1) < 0:
        raise InputError("a noise scale needs a numerator of at least 1 and charges of at least 0")
    if numerator > LARGEST_SCALE and ((charges > 0) & (charges < -(-numerator // LARGEST_SCALE))).any():
        raise InputError("a noise scale above 10^16 cannot be drawn; spend more epsilon or bound users more tightly")


def _scales(numerator: int, charges: Ints) -> Array:
    """numerator / charge as doubles; 0 where the charge is 0."""
    _check_scales(numerator, charges)
    if charges.all():
        return float(numerator) / charges
    return np.divide(float(numerator), charges, out=np.zeros(charges.shape), where=charges > 0)


def _check_thinning(counts: Ints, percent: Ints) -> None:
    if (counts < 0).any() or (percent < 0).any() or (percent > 100).any():
        raise InputError("thinning needs counts of at least 0 and a percentage from 0 to 100")


def _by_charge(draw: Callable[[int, int], Ints], charges: Ints, shape: tuple[int, ...]) -> Ints:
    """`draw(charge, count)` for each distinct charge, laid out as the charges are; 0 where the charge is 0."""
    if charges.size and charges.min() == (charge := int(charges.max())):
        return draw(charge, math.prod(shape)).reshape(shape) if charge else np.zeros(shape, np.int64)
    cells = np.broadcast_to(charges, shape).ravel()
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    draws = np.zeros(cells.size, np.int64)
    for begin, end in pairwise([*np.flatnonzero(np.diff(ordered, prepend=-1)), cells.size]):
        if charge := int(ordered[begin]):
            draws[order[begin:end]] = draw(charge, int(end - begin))
    return draws.reshape(shape)
