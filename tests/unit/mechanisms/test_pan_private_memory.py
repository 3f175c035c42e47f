"""What somebody finds who looks into the memory of a pan-private BD or BA, and what they can make of it."""

import gc
import os
import random
import sys
import types

import numpy as np
import pytest

import eventide as ev
from eventide.privacy import coins
from eventide.privacy.noise import Secure, Seeded

BOTH = [ev.BudgetDistribution, ev.BudgetAbsorption]


def add_all(mech, counts):
    for bin, count in enumerate(counts):
        for _ in range(count):
            mech.add(bin)


def look_cells(mech):
    return mech._cells._look[0].copy()


def reachable(*roots):
    """Every number, in an array or alone, that can be reached from the roots, but for code: modules and classes."""
    code = {id(vars(module)) for module in list(sys.modules.values()) if isinstance(module, types.ModuleType)}
    numbers, seen, waiting = [], set(), list(roots)
    while waiting:
        thing = waiting.pop()
        if id(thing) in seen or id(thing) in code or isinstance(thing, type | types.ModuleType | types.CodeType | str):
            continue
        seen.add(id(thing))
        if isinstance(thing, np.ndarray):
            numbers.append(np.array(thing).ravel())
            waiting.append(thing.base)
        elif isinstance(thing, bytes | bytearray):
            numbers.append(np.frombuffer(thing[: len(thing) // 8 * 8], np.int64))
        elif isinstance(thing, int | float | np.number):
            numbers.append(np.array([thing]))
        elif isinstance(thing, types.FunctionType):
            waiting += [thing.__closure__, thing.__defaults__, thing.__kwdefaults__]
        else:
            waiting += gc.get_referents(thing)
    return np.concatenate([array.astype(float) for array in numbers])


@pytest.fixture
def drawn(monkeypatch):
    """Secure noise from known bytes; the list of everything that was drawn."""
    coins._laplace_coins.cache_clear()  # tables of scales that other tests used, full of numbers
    monkeypatch.setattr(os, "urandom", random.Random(5).randbytes)
    noise, laplace = [], Secure.laplace

    def recorded(self, numerator, charges, shape):
        draws = laplace(self, numerator, charges, shape)
        noise.append(draws.copy())
        return draws

    monkeypatch.setattr(Secure, "laplace", recorded)
    return noise


class CountingEvents(ev.BudgetDistribution):
    """Remembers how many events it saw."""

    seen = 0

    def add(self, bin):
        self.seen += 1
        super().add(bin)


class KeepingNoise(ev.BudgetDistribution):
    """Remembers the noise its cells started with."""

    def prepare(self):
        super().prepare()
        self.kept = self._cells._look.copy()


def secrets_in_memory(mech, noise):
    """Raw counts, or the noise that hides them, found in memory at any of several moments of three steps."""
    found = []
    for step in range(3):
        counts = np.zeros(3, dtype=int)
        for events in ([1009, 503, 2003], [0, 771, 0], [401, 0, 0]):
            add_all(mech, events)
            counts += events
            memory = reachable(mech, *vars(coins).values())
            assert np.isin(look_cells(mech), memory).all()  # the search does find the cells
            large = [draw[abs(draw) > 10_000] for draw in noise]  # no public number looks like these
            hidden = np.concatenate([counts, [counts.sum()], *large])
            found += [(step, secret) for secret in hidden if secret in memory]
        noise.clear()  # from here on the noise of the next step is drawn
        mech.close()
    return found


@pytest.mark.parametrize("cls", BOTH)
@pytest.mark.parametrize("mode", ["single", "announced"])
def test_no_count_and_no_noise_is_in_memory_between_two_events(cls, mode, drawn):
    mech = cls(epsilon=1e-5, window=3, bins=3, pan_private=mode)
    assert sum((abs(draw) > 10_000).sum() for draw in drawn) == 6
    assert secrets_in_memory(mech, drawn) == []


@pytest.mark.parametrize(("cls", "secrets"), [(CountingEvents, 3), (KeepingNoise, 27)])
def test_the_search_of_memory_finds_what_is_kept(cls, secrets, drawn):
    mech = cls(epsilon=1e-5, window=3, bins=3, pan_private="single")
    assert len(secrets_in_memory(mech, drawn)) >= secrets


def test_secure_noise_comes_from_the_operating_system():
    mech = ev.BudgetAbsorption(epsilon=1, window=2, bins=1, pan_private="single")
    assert mech.source._entropy is os.urandom
    assert ev.load(mech.save()).source._entropy is os.urandom
    with pytest.raises(ev.InputError, match="opendp"):
        ev.BudgetAbsorption(epsilon=1, window=2, bins=1, pan_private="single", noise="opendp")


class Sketch:
    """The published sketch: the noise is in the cells from the start, and the cells are released."""

    def __init__(self, scale, bins, seed):
        self.source, self.scale, self.bins = Seeded(seed), scale, bins
        self.open()

    def open(self):
        self.look = self.source.laplace(self.scale, np.array([[1]]), (1, self.bins))

    def add(self, bin):
        self.look[0, bin] += 1

    def memory(self):
        return self.look[0].copy()

    def release(self, counts):
        values = self.look[0] + counts
        self.open()
        return values


class Ours:
    """Our BD seen the same way."""

    def __init__(self, **parameters):
        self.mech = ev.BudgetDistribution(**parameters)

    def add(self, bin):
        self.mech.add(bin)

    def memory(self):
        return look_cells(self.mech)

    def release(self, counts):
        release = self.mech.release(counts)
        return release.values if release.fresh else None


def attack(target, steps):
    """See the cells during a step, subtract them from the release: the error of that count of the later events."""
    errors = []
    for step in range(steps):
        for bin in range(5):
            target.add(bin)
        later = np.full(5, 3000 * (step % 2))
        seen = target.memory()
        released = target.release(later)
        if released is not None:
            errors.append(released - seen - later)
    return np.array(errors)


def test_the_attack_succeeds_on_the_published_sketch_and_not_here():
    assert (attack(Sketch(scale=6, bins=5, seed=3), 200) == 0).all()
    errors = attack(Ours(epsilon=1, window=1, bins=5, pan_private="single", seed=3), 3000)
    assert errors.size > 5000
    assert np.abs(errors).mean() == pytest.approx(6, rel=0.1)  # a draw of scale 6 / epsilon
    assert (errors == 0).mean() == pytest.approx(np.tanh(1 / 12), rel=0.2)
