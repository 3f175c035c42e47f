"""The sources of noise: shapes, scales, refusals, state, and that no two share noise."""

import json
import math
import os
import random
import ssl
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

import eventide as ev
from eventide import windows
from eventide.errors import InputError, StateError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.privacy import noise

DRAWING = [noise.Secure, noise.OpenDP, lambda: noise.Seeded(5)]
EVERY = [*DRAWING, noise.Zero, noise.Unit]
NANO = 10**9


def charges(*values):
    return np.array(values, np.int64)


def no_entropy(count):
    raise AssertionError("nothing should be drawn here")


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4), (3, 0)])
def test_noise_comes_in_the_shape_asked_for(make, shape):
    for given in (np.array(NANO), np.full((1,) * len(shape), NANO), np.full(shape, NANO)):
        drawn = make().laplace(NANO, given, shape)
        assert isinstance(drawn, np.ndarray)
        assert drawn.shape == shape
        assert drawn.dtype == (np.float64 if make is noise.Unit else np.int64)


@pytest.mark.parametrize("make", DRAWING)
def test_every_cell_has_the_scale_of_its_own_charge(make):
    """Columns without charge, of scale 10^-6 and of scale 10^9: exactly 0, practically 0, practically large."""
    drawn = make().laplace(NANO, charges(0, 10**15, 1), (50, 3))
    assert not drawn[:, :2].any()
    assert np.abs(drawn[:, 2]).mean() > 1e7


@pytest.mark.parametrize("make", DRAWING)
def test_a_column_of_charges_gives_each_row_its_scale(make):
    drawn = make().laplace(NANO, charges(NANO, 10, 0, 10**4, 10)[:, None], (5, 400))
    means = np.abs(drawn).mean(axis=1)  # the mean distance from 0 is about the scale
    assert means[2] == 0
    assert means[[0, 1, 3, 4]] == pytest.approx([0.85, 10**8, 10**5, 10**8], rel=0.5)


def test_without_charge_nothing_is_drawn():
    secure = noise.Secure(no_entropy)
    assert secure.laplace(NANO, charges(0), (3,)).tolist() == [0, 0, 0]
    assert secure.laplace(NANO, charges(0, 0, 0)[:, None], (3, 2)).tolist() == [[0, 0]] * 3
    assert not noise.Seeded(1).laplace(NANO, charges(0, 0), (2,)).any()


def test_seeded_draws_do_not_depend_on_what_other_cells_are_charged():
    some = noise.Seeded(1).laplace(NANO, charges(0, 7, 0, 7, 7), (5,))
    every = noise.Seeded(1).laplace(NANO, charges(7), (5,))
    assert some.tolist() == [0, every[1], 0, every[3], every[4]]


@pytest.mark.parametrize("make", DRAWING)
def test_the_largest_scale_fits(make):
    drawn = make().laplace(noise.LARGEST_SCALE, charges(1), (10_000,))
    assert 0.9e16 < np.abs(drawn.astype(float)).mean() < 1.1e16


@pytest.mark.parametrize("make", EVERY)
def test_impossible_scales_are_refused(make):
    for numerator, charge in ((noise.LARGEST_SCALE + 1, charges(1, 2)), (10**26, charges(0, 10**10 - 1, 10**11))):
        with pytest.raises(InputError, match="10\\^16"):
            make().laplace(numerator, charge, charge.shape)
    for numerator, charge in ((NANO, charges(-1, 1)), (0, charges(1))):
        with pytest.raises(InputError, match="at least"):
            make().laplace(numerator, charge, charge.shape)


@pytest.mark.parametrize("make", EVERY)
def test_numerators_beyond_64_bits_work(make):
    assert make().laplace(10**20, charges(0, 10**15), (2,))[0] == 0


@pytest.mark.parametrize("make", EVERY)
def test_thinning_keeps_some_of_each(make):
    counts = np.array([0, 5, 10**4])
    kept = make().binomial(counts, np.array([[0], [50], [100]]))
    assert kept[0].tolist() == [0, 0, 0]
    assert kept[2].tolist() == counts.tolist()
    assert (kept[1] <= counts).all()
    assert 4_000 < kept[1, 2] < 6_000


@pytest.mark.parametrize("make", EVERY)
def test_impossible_thinning_is_refused_without_naming_a_count(make):
    for counts, percent in ((-1234567, 50), (1234567, 101), (1234567, -1)):
        with pytest.raises(InputError, match="thinning") as caught:
            make().binomial(np.array([counts]), np.array([percent]))
        assert "1234567" not in str(caught.value)


def test_zero_is_zero_and_unit_is_the_scale():
    assert noise.Zero().laplace(NANO, charges(1, 0), (2,)).tolist() == [0, 0]
    unit = noise.Unit().laplace(3 * NANO, charges(0, 7, NANO)[:, None], (3, 2))
    assert unit.tolist() == [[0.0] * 2, [3e9 / 7] * 2, [3.0] * 2]
    for source in (noise.Zero(), noise.Unit()):
        assert source.binomial(np.array([9, 10]), np.array(25)).tolist() == [2, 2]


def test_the_same_seed_gives_the_same_noise():
    first, same, other = (noise.Seeded(seed).laplace(100, charges(1), (50,)).tolist() for seed in (7, 7, 8))
    assert first == same != other


def test_a_restored_snapshot_continues_identically():
    def go_on(source):
        drawn = source.laplace(100, charges(1, 0, 3), (9, 3)).tolist()
        return drawn, source.binomial(np.array([1000, 2000]), np.array(30)).tolist()

    source, resumed = noise.Seeded(7), noise.Seeded(1)
    go_on(source)
    resumed.restore(json.loads(json.dumps(source.snapshot())))
    assert [go_on(resumed), go_on(resumed)] == [go_on(source), go_on(source)]


@pytest.mark.parametrize("make", [noise.Secure, noise.OpenDP, noise.Zero, noise.Unit])
def test_sources_without_state_have_empty_snapshots(make):
    source = make()
    assert source.snapshot() == {}
    source.restore({})
    with pytest.raises(StateError, match="no state"):
        source.restore(noise.Seeded(1).snapshot())


@pytest.mark.parametrize("snapshot", [{}, {"bit_generator": "PCG64"}, {"bit_generator": "MT19937"}, {"state": 3}])
def test_nonsense_is_not_restored(snapshot):
    with pytest.raises(StateError, match="snapshot"):
        noise.Seeded(1).restore(snapshot)


def test_only_two_sources_are_private():
    made = {source.name: noise.is_private(source) for source in (make() for make in EVERY)}
    assert made == {"secure": True, "opendp": True, "seeded": False, "zero": False, "unit": False}
    assert noise.is_private(noise.Secure(os.urandom))
    assert noise.is_private(noise.Secure(ssl.RAND_bytes))


class Likes:
    """Bytes that anybody can tell, from something that says it is like everything."""

    def __call__(self, count):
        return bytes(count)

    def __eq__(self, other):
        return True

    __hash__ = None


class Derived(noise.Secure):
    private = True


class Pretending(noise.Zero):
    name, private = "opendp", True


NOT_PRIVATE = [
    lambda: noise.Secure(random.Random(5).randbytes),
    lambda: noise.Secure(entropy=Likes()),
    Derived,
    Pretending,
]


@pytest.mark.parametrize("make", NOT_PRIVATE)
def test_nothing_is_private_because_it_says_so(make, tmp_path):
    source = make()
    assert not noise.is_private(source)
    mechanism = ev.Uniform(epsilon=1, window=2, bins=1, noise=source)
    promises = [mechanism.guarantee, windows.plan([ev.Query(2, 1)]).start(noise=source).guarantee]
    assert all(str(promise).startswith("NOT PRIVATE (the noise is altered ") for promise in promises)
    with pytest.raises(InputError, match="private noise only"):
        ev.Publisher(MemoryFeed([[1]]), mechanism, tmp_path / "store.db")
    with pytest.raises(StateError, match="cannot be saved"):  # loaded it would call itself private
        ev.load(mechanism.save())


def test_a_source_is_found_by_name_object_or_seed():
    assert isinstance(noise.source("secure", None), noise.Secure)
    assert isinstance(noise.source("opendp", None), noise.OpenDP)
    zero = noise.Zero()
    assert noise.source(zero, None) is zero
    drawn = noise.source("secure", 7).laplace(100, charges(1), (9,))
    assert drawn.tolist() == noise.Seeded(7).laplace(100, charges(1), (9,)).tolist()
    assert isinstance(noise.source("secure", 0), noise.Seeded)


@pytest.mark.parametrize("given", ["opendp", noise.Zero(), noise.Seeded(7)])
def test_a_seed_beside_another_noise_is_refused(given):
    with pytest.raises(InputError, match="seed"):
        noise.source(given, 7)


@pytest.mark.parametrize("given", ["zero", "Secure", "", None])
def test_unknown_noise_is_refused(given):
    with pytest.raises(InputError, match="'secure', 'opendp'"):
        noise.source(given, None)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "7"])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(InputError, match="whole number"):
        noise.Seeded(seed)


def test_a_missing_opendp_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "opendp.prelude", None)
    with pytest.raises(InputError, match=r"pip install 'eventide\[opendp\]'"):
        noise.source("opendp", None)


@pytest.mark.parametrize(("numerator", "charge"), [(1, 3), (2, 3), (10**16, 3), (5, 2)])
def test_opendp_gets_the_least_double_that_is_not_below_the_scale(monkeypatch, numerator, charge):
    source, asked = noise.OpenDP(), []
    monkeypatch.setattr(source, "_make_laplace", lambda domain, metric, scale: asked.append(scale) or list)
    source.laplace(numerator, charges(charge), (1,))
    (scale,) = asked
    assert Fraction(math.nextafter(scale, 0)) < Fraction(numerator, charge) <= Fraction(scale)


@pytest.mark.parametrize("make", EVERY)
def test_a_source_shows_no_state(make):
    assert repr(make()) in {"Secure()", "OpenDP()", "Seeded()", "Zero()", "Unit()"}


@pytest.mark.parametrize("make", [noise.Secure, noise.OpenDP])
def test_two_private_instances_never_share_noise(make):
    """At scale 10^16 a single chance agreement among 100 x 100 pairs has probability about 10^-13."""
    first, second = (make().laplace(noise.LARGEST_SCALE, charges(1), (100,)) for _ in range(2))
    assert not np.intersect1d(first, second).size


FORKING = """
import os, sys
import numpy as np
from eventide.privacy import noise

source = {"secure": noise.Secure, "urandom": lambda: noise.Secure(os.urandom), "opendp": noise.OpenDP,
          "seeded": lambda: noise.Seeded(3)}[sys.argv[1]]()
draw = lambda: source.laplace(10**16, np.array([1]), (100,))
draw()
for child in range(2):
    if os.fork() == 0:
        print(*draw(), flush=True)
        os._exit(0)
    os.wait()
print(*draw())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize(("name", "distinct"), [("secure", 300), ("urandom", 300), ("opendp", 300), ("seeded", 100)])
def test_forked_processes_share_no_private_noise(name, distinct):
    """A parent that has drawn before and two children; the seeded source shows that sharing would be seen."""
    printed = subprocess.run([sys.executable, "-c", FORKING, name], capture_output=True, text=True, check=True).stdout
    assert len(printed.split()) == 300
    assert len(set(printed.split())) == distinct
