"""Seasons that follow from the step: a store goes on with those that it has, one of an older version without any."""

from contextlib import closing

import pytest

import eventide as ev
from eventide.errors import InputError
from eventide.filters.algorithms import NEWEST
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.stores.open_store import open_store

CITY = {"epsilon": 1, "window": 24, "step": "1h", "start": "2026-01-01", "bins": ["north", "south"]}
AUTO = CITY | {"seasons": "auto"}


def opened(folder, spec, **more):
    """What a publisher goes on with: the mechanism and the stored setting."""
    with ev.Publisher(MemoryFeed([[1, 2]]), spec.build_mechanism(), folder / "city.db", **more) as publisher:
        return publisher.mechanism.seasons, publisher.store.epochs()


def outlook(folder, spec, **more):
    return ev.Publisher.check(MemoryFeed([[1, 2]]), spec.build_mechanism(), folder / "city.db", **more)


def test_a_store_of_an_older_version_goes_on_without_seasons(tmp_path):
    before, epochs = opened(tmp_path, ev.StreamSpec(**CITY, seasons="none"))
    assert before is None
    assert "seasons" not in epochs[-1].setting.mechanism["parameters"]  # as older versions wrote it
    assert opened(tmp_path, ev.StreamSpec(**AUTO)) == (None, epochs)
    assert outlook(tmp_path, ev.StreamSpec(**AUTO), new_epoch=True).before is None


def test_a_new_store_has_those_of_its_step_and_keeps_them(tmp_path):
    seasons, epochs = opened(tmp_path, ev.StreamSpec(**AUTO))
    assert seasons == (24, 168)
    assert epochs[-1].setting.mechanism["parameters"]["seasons"] == [24.0, 168.0]
    assert opened(tmp_path, ev.StreamSpec(**AUTO)) == ((24, 168), epochs)


def test_seasons_that_were_chosen_stay_with_auto(tmp_path):
    opened(tmp_path, ev.StreamSpec(**CITY, seasons=(12,)))
    assert opened(tmp_path, ev.StreamSpec(**AUTO))[0] == (12,)


def test_other_seasons_are_another_setting(tmp_path):
    opened(tmp_path, ev.StreamSpec(**CITY, seasons="none"))
    with pytest.raises(InputError, match="seasons"):
        outlook(tmp_path, ev.StreamSpec(**CITY, seasons=(24,)))


def test_a_new_epoch_for_another_reason_gets_those_of_its_step(tmp_path):
    opened(tmp_path, ev.StreamSpec(**CITY, seasons="none"))
    seasons, epochs = opened(tmp_path, ev.StreamSpec(**AUTO | {"window": 30}), new_epoch=True)
    assert (seasons, len(epochs)) == ((24, 168), 2)


def test_what_is_stored_can_be_read(tmp_path):
    _, epochs = opened(tmp_path, ev.StreamSpec(**AUTO))
    with closing(open_store(tmp_path / "city.db", read_only=True)) as store:
        store.verify()
        assert store.epochs() == epochs


@pytest.mark.parametrize(("seasons", "algorithm", "written"), [((24,), 1, None), ((24,), 2, 2), ("none", 1, None)])
def test_a_store_keeps_the_algorithm_that_it_was_begun_with(tmp_path, seasons, algorithm, written):
    first = ev.StreamSpec(**CITY, seasons=seasons, parameters={"algorithm": algorithm})
    _, epochs = opened(tmp_path, first)
    assert epochs[-1].setting.mechanism["parameters"].get("algorithm") == written  # as older versions wrote it
    newest = ev.StreamSpec(**CITY, seasons=seasons)
    assert newest.build_mechanism().algorithm == NEWEST
    with ev.Publisher(MemoryFeed([[1, 2]]), newest.build_mechanism(), tmp_path / "city.db") as publisher:
        assert publisher.mechanism.algorithm == algorithm
        assert publisher.store.epochs() == epochs
    assert outlook(tmp_path, newest, new_epoch=True).before is None


def test_a_store_without_seasons_has_the_algorithm_and_nothing_else_that_older_versions_did_not_write(tmp_path):
    _, epochs = opened(tmp_path, ev.StreamSpec(**CITY))
    assert epochs[-1].setting.mechanism["parameters"].keys() == {"filter", "algorithm"}


def test_a_new_epoch_for_another_reason_gets_the_newest_algorithm(tmp_path):
    opened(tmp_path, ev.StreamSpec(**CITY, seasons=(24,), parameters={"algorithm": 1}))
    _, epochs = opened(tmp_path, ev.StreamSpec(**CITY | {"window": 30}, seasons=(24,)), new_epoch=True)
    assert [epoch.setting.mechanism["parameters"].get("algorithm") for epoch in epochs] == [None, NEWEST]
