"""Mechanisms with levels: one promise, one ledger, and releases that add up."""

import numpy as np
import pytest

import eventide as ev
from eventide.errors import BudgetExceeded, InputError
from eventide.events.levels import Levels
from eventide.mechanisms.contract import check_mechanism
from eventide.mechanisms.levels import default_split, shares
from eventide.mechanisms.registry import mechanism_names
from eventide.privacy.amounts import NANO

BINS = tuple("abcdef")
DISTRICTS = {"district": list("nnnsss"), "kind": list("xyxyxy")}
WITH_LEVELS = ("uniform", "sample", "hybrid", "ba")  # and tide, which takes long to compile


def made(name, **more):
    return ev.mechanism(name, **{"epsilon": 1.0, "window": 6, "bins": BINS, "levels": DISTRICTS, "seed": 5} | more)


def stream(steps=30):
    return np.random.default_rng(8).poisson([0.2, 3, 40, 5, 0.1, 300], (steps, 6))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["ba", *(pytest.param(name, marks=pytest.mark.slow) for name in WITH_LEVELS[:3])])
def test_the_contract_of_every_mechanism(name):
    assert len(check_mechanism(type(made(name)), levels={"district": list("nns")})) == 12


@pytest.mark.parametrize("name", [*WITH_LEVELS, pytest.param("tide", marks=pytest.mark.slow)])
@pytest.mark.parametrize("filter", ["truncate", None])
def test_every_release_adds_up_exactly(name, filter):
    mechanism = made(name, filter=filter, replicas=2)
    for counts in stream():
        release = mechanism.release(counts)
        for level, told in release.levels.items():
            labels = mechanism.levels.labels[level]
            for group in range(told.values.shape[1]):
                assert np.array_equal(told.values[:, group], release.values[:, labels == group].sum(axis=1))
            if told.low is not None:
                assert (told.low <= told.values).all()
                assert (told.values <= told.high).all()
        if filter:
            assert (release.values >= 0).all()
            assert (release.values == np.rint(release.values)).all()
            for told in (release, *release.levels.values()):
                if told.low is not None:
                    assert_rounded(told.low, told.high)


def assert_rounded(low, high):
    """As Truncate rounds the ends of an interval: whole, or of a narrow one in hundredths."""
    assert (low >= 0).all()
    for end in (low, high):
        assert np.array_equal(end, np.round(end, 2))
        assert np.array_equal(end[high - low > 12], np.rint(end[high - low > 12]))


def test_intervals_of_levels_are_rounded_as_those_of_bins():
    mechanism = made("uniform", filter=ev.filters.Truncate(ev.filters.PosteriorMedian()))
    for counts in stream(8):
        release = mechanism.release(counts)
        for told in (release, *release.levels.values()):
            assert told.low is not None
            assert_rounded(told.low, told.high)
            assert (told.low <= told.values).all()
            assert (told.values <= told.high).all()


@pytest.mark.parametrize("share", [0, -1, "much"])
def test_a_share_of_nothing_is_refused_in_words(share):
    with pytest.raises(InputError, match="level_split gives every level a share above 0"):
        made("uniform", level_split={"bin": 1, "district": 0.1, "kind": share, "total": 0.1})


def test_charges_of_all_levels_add_up():
    mechanism = made("uniform", level_split={"bin": 0.4, "district": 0.3, "kind": 0.2, "total": 0.1})
    mechanism.meter.journal = []
    release = mechanism.release(stream()[0])
    charged = [int(draw.charges.max()) for draw in mechanism.meter.journal]
    assert charged == [NANO * part // 60 for part in (4, 3, 2, 1)]
    assert release.spent == pytest.approx(sum(charged) / NANO)
    assert release.levels["total"].scale.tolist() == pytest.approx([60])
    ev.run(mechanism, stream())
    assert 0.99 < mechanism.ledger.worst_window() <= 1


def test_a_level_that_asks_for_more_than_its_share_is_refused_by_both_ledgers():
    mechanism = made("uniform")
    part = mechanism._parts._parts["total"]
    step = mechanism.meter.seal(mechanism.checked(stream()[0]))
    sealed = part.meter.seal_sums(step)
    with pytest.raises(BudgetExceeded):
        part.meter.counts(sealed, np.array([[part.ledger.nano_epsilon]]) + 1)
    assert mechanism.ledger.charged() == 0
    part.ledger.nano_epsilon = 10 * NANO  # a ledger of a level that is loosened does not help
    with pytest.raises(BudgetExceeded):
        part.meter.counts(sealed, np.array([[mechanism.nano_epsilon + 1]]))


def test_a_level_cannot_keep_anything_open():
    part = made("uniform")._parts._parts["district"]
    makes = ("thinned", "sum_over_steps", "slot_sums", "threshold_test", "group_test")
    uses = ("add", "read", "sum_slots", "end_slots", "open_test", "above", "close_test", "grouped")
    for method in (*makes, *uses):
        with pytest.raises(ev.StateError, match="counts and distances only"):
            getattr(part.meter, method)(None)


@pytest.mark.parametrize("name", WITH_LEVELS)
def test_saved_and_loaded_it_goes_on(name):
    mechanism = made(name, filter="truncate")
    for counts in stream(9):
        mechanism.release(counts)
    loaded = ev.load(mechanism.save())
    assert loaded.levels == mechanism.levels
    for counts in stream(9):
        here, there = mechanism.release(counts), loaded.release(counts)
        assert np.array_equal(here.levels["kind"].values, there.levels["kind"].values)
        assert here.spent == there.spent


@pytest.mark.parametrize("replicas", [1, 3])
def test_a_run_keeps_its_levels_and_frames_have_a_row_for_each_group(replicas):
    run = ev.run(made("uniform", replicas=replicas), stream(4)).replica(replicas - 1)
    assert np.array_equal(run.levels["total"].values[:, 0], run.values.sum(axis=1))
    table = run.to_arrow()
    assert table.column_names == ["step", "level", "bin", "value", "scale", "fresh"]
    assert table["level"].to_pylist()[:11] == [*["bin"] * 6, *["district"] * 2, *["kind"] * 2, "total"]
    assert table["value"].to_pylist()[10] == run.values[0].sum()


def test_a_total_of_its_own_is_sharper_than_a_sum_over_bins():
    """200 bins, all of epsilon at every step: the error of the total is a fraction of that of the sum."""
    counts, bins = np.full((20, 200), 30), [str(number) for number in range(200)]
    halves = {"half": ["a"] * 100 + ["b"] * 100}
    errors = {}
    for levels in (None, halves):
        split = levels and {"bin": 0.7, "half": 0.1, "total": 0.2}
        uniform = ev.Uniform(1, 10, bins, replicas=50, seed=3, levels=levels, level_split=split)
        values = ev.run(uniform, counts).values
        errors[levels is None] = np.abs(values.sum(axis=2) - 6000).mean()
    assert errors[False] < 0.6 * errors[True]


def test_the_guarantee_names_the_levels_and_no_split_looks_at_data():
    mechanism = made("uniform", noise="secure", seed=None)
    assert "releases of district, kind, total and bins together" in str(mechanism.guarantee)
    levels = Levels(DISTRICTS, BINS)
    assert sum(default_split(levels).values()) == 1
    assert sum(shares(levels, NANO).values()) <= NANO
    assert mechanism.noise_range()[0] > 6  # that of a share, not of all


@pytest.mark.parametrize("name", sorted(set(mechanism_names()) - {*WITH_LEVELS, "tide"}))
def test_others_say_that_they_have_none(name):
    with pytest.raises(InputError, match="cannot have levels"):
        made(name)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"levels": None, "level_split": {"bin": 1}}, "give levels as well"),
        ({"level_split": {"bin": 1, "total": 1}}, "a share to each of bin, district, kind, total"),
        ({"levels": 3}, "levels are the path of a CSV file"),
        ({"levels": {"district": list("nns")}}, "group of each of the 6 bins"),
    ],
)
def test_what_is_no_description_of_levels_is_refused(more, sentence):
    with pytest.raises(InputError, match=sentence):
        made("uniform", **more)


def test_levels_do_not_go_with_other_promises():
    with pytest.raises(InputError, match="fixed-bin"):
        made("ba", groups=2, accounting="fixed-bin")
    with pytest.raises(InputError, match="pan_private"):
        made("ba", pan_private="announced")
    with pytest.raises(InputError, match="leave groups out"):
        made("ba", groups=2)


def test_events_one_at_a_time_are_refused_in_words():
    with pytest.raises(ev.StateError, match="need pan_private"):
        made("ba").add("a")


def test_with_a_window_sensitivity_every_step_keeps_to_its_budget():
    mechanism = made("uniform", window_sensitivity=2)
    spent = ev.run(mechanism, stream()).spent
    assert 0.49 < spent.max() <= 0.5
