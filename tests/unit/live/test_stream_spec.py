"""One description of a stream: every way to give it means the same, and every mistake is named by its setting."""

from __future__ import annotations

import dataclasses
import re
from datetime import UTC, datetime
from fractions import Fraction

import click
import numpy as np
import pyarrow as pa
import pytest

import eventide as ev
from eventide.cli.publish import command, option_of
from eventide.errors import InputError
from eventide.live.feeds.count_feed import MemoryFeed
from eventide.live.setting_readers import defaults_of, settings_of
from eventide.live.stream_spec import StreamOptions, StreamSpec
from eventide.service.config.settings import TABLES, StreamConfig
from eventide.service.config.template import template, value_of

NAMES = [each.name for each in dataclasses.fields(StreamSpec)]
CITY = {"epsilon": 1, "window": "24h", "step": "1h", "start": "2026-01-01", "bins": ["north", "south"], "user": "who"}


def test_every_setting_is_explained_where_it_stands_and_has_an_option_a_key_and_a_type():
    options = {each.name: each for each in command.params if isinstance(each, click.Option)}
    for name, setting in settings_of(StreamSpec).items():
        assert setting.help.endswith(".")
        assert options[name].opts == [option_of(name)]
        assert options[name].help.startswith(setting.help)
        assert (name in TABLES["streams"]) == setting.served
    assert sorted(StreamOptions.__annotations__) == sorted(NAMES)


@pytest.mark.parametrize("name", sorted(settings_of(StreamConfig).keys() - {"parameters", "queries", "levels"}))
def test_an_example_is_right_and_stands_in_what_init_writes(name):
    setting = settings_of(StreamConfig)[name]
    of_people = {"user": "who"}
    needed = {"cap": of_people, "statistic": of_people, "between": {"statistic": "sum:fare"}}
    stays = {"statistic": "quantiles:stay", "edges": "stay=0,5,10"}
    needed |= {"edges": stays, "quantiles": stays}
    needed["split"] = of_people | {"statistic": ["people", "mean:fare"], "between": "fare=0,120"}
    beside = {"step": "1h"} | needed.get(name, {"queries": [ev.Query(2, 1)]})
    assert StreamConfig.examine(beside | {name: value_of(setting.example)})[1] == []
    assert bool(re.search(rf"^(# )?{name} = ", template("2026-01-01"), re.MULTILINE)) == setting.served


def test_text_and_values_mean_the_same(tmp_path):
    (tmp_path / "bins.txt").write_text("north\nsouth\n")
    as_text = CITY | {"epsilon": "1", "bins": "bins.txt", "max_per_step": "2", "start": "2026-01-01T00:00:00"}
    as_values = CITY | {"max_per_step": 2, "window": 24, "start": datetime(2026, 1, 1)}
    assert StreamSpec.read(as_text, tmp_path) == StreamSpec(**as_values)
    assert StreamSpec(**as_values).window == 24
    assert StreamSpec(**CITY | {"start": datetime(2026, 1, 1, tzinfo=UTC)}).timeline().iso(0) == (
        "2026-01-01T00:00:00+00:00"
    )


def test_no_lateness_can_be_said_in_so_many_words():
    assert StreamSpec(**CITY, late="0s") == StreamSpec(**CITY)


def test_what_is_left_out_is_as_it_was():
    """The defaults of files and of services, which differ in the column of times and in whose events they are."""
    files, service = defaults_of(StreamSpec), defaults_of(StreamConfig)
    assert {name for name in files if files[name] != service[name]} == {"time", "population"}
    assert (files["time"], service["time"]) == ("timestamp", "time")
    assert (files["mechanism"], files["filter"], files["zone"], files["bin"]) == ("tide", "truncate", "UTC", "bin")
    assert StreamConfig(name="city", **CITY).population == "city"


@pytest.mark.parametrize(
    ("changed", "field", "part"),
    [
        ({"epsilon": 0.0000001}, "epsilon", "must lie between"),
        ({"window": "a day"}, "window", "is no duration"),
        ({"window": "5min"}, "window", "shorter than a step"),
        ({"window": "24h", "step": None}, "window", "needs the length of a step"),
        ({"window": True}, "window", "whole number"),
        ({"start": "yesterday"}, "start", "is no time"),
        ({"until": "soon"}, "until", "is no time"),
        ({"zone": "Europe/Atlantis"}, "zone", "Atlantis"),
        ({"late": "1 fortnight"}, "late", "is no duration"),
        ({"bins": ["a", "a"]}, "bins", "appears twice"),
        ({"max_per_step": 2, "user": None}, "max_per_step", "name what holds the person, as `user`"),
        ({"sensitivity": 2}, "sensitivity", "of events `max_per_step`"),
        ({"mechanism": "bah"}, "mechanism", "did you mean 'ba'?"),
        ({"mechanism": "json:loads"}, "mechanism", "is no subclass of"),
        ({"filter": "truncat"}, "filter", "did you mean 'truncate'?"),
        ({"parameters": {"seed": 7}}, "parameters", "'seed' is decided elsewhere"),
        ({"parameters": {"noise": "zero"}}, "parameters", "nothing else is private"),
        ({"queries_epsilon": 0.5}, "queries_epsilon", "name their file with `queries`"),
        ({"queries": [ev.Query(3, 1)], "queries_epsilon": 1}, "queries_epsilon", "leaves nothing of epsilon 1"),
        ({"queries": "nowhere.toml"}, "queries", "cannot be read"),
        ({"queries_of": "towns"}, "queries_of", "none of bins, total"),
    ],
)
def test_a_mistake_is_named_by_its_setting(changed, field, part):
    given = {name: value for name, value in (CITY | changed).items() if value is not None}
    values, mistakes = StreamSpec.examine(given)
    assert [mistake.field for mistake in mistakes] == [field]
    assert part in mistakes[0].sentence
    assert set(values) == set(NAMES)
    with pytest.raises(InputError, match=f"^{field}: "):
        StreamSpec(**given)
    with pytest.raises(InputError, match=f"^{option_of(field)}: ") as told:
        StreamSpec.read(given, label=option_of)
    assert "`" not in str(told.value)


def test_all_mistakes_are_found_at_once_and_what_is_right_is_read():
    values, mistakes = StreamSpec.examine(CITY | {"epsilon": -1, "step": "soon", "filter": "x", "other": "west"})
    assert {mistake.field for mistake in mistakes} == {"epsilon", "step", "filter"}
    assert (values["bins"], values["window"], values["epsilon"]) == (("north", "south", "west"), 0, 0)


def test_what_was_written_is_told_as_it_was_written():
    with pytest.raises(InputError, match=re.escape("--bins: `odd`.txt is no number of bins")):
        StreamSpec.read({"bins": "`odd`.txt"}, label=option_of)


def test_an_unknown_setting_is_a_fault_of_the_caller():
    with pytest.raises(TypeError, match="'colour'"):
        StreamSpec(colour="red")
    with pytest.raises(TypeError, match=r"there is no setting 'windw'; did you mean 'window'\?"):
        StreamSpec(windw=3)


def test_what_a_method_needs_is_asked_for():
    with pytest.raises(InputError, match="start is missing; give it, such as 2026-01-01"):
        StreamSpec(step="1h").timeline()
    with pytest.raises(InputError, match=r"epsilon is missing or 0; give it, such as 1\.0"):
        StreamSpec(bins=3, window=2).build_mechanism()
    with pytest.raises(InputError, match="bins is missing"):
        StreamSpec().reader()


def test_it_builds_what_publishes_the_stream():
    asked = {"queries": [ev.Query(6, 2)], "queries_epsilon": 0.25, "queries_of": "total"}
    spec = StreamSpec(**CITY, **asked, mechanism="hybrid", parameters={"k": 4}, max_per_step=3, other="west")
    mechanism, questions = spec.build_mechanism(), spec.questions()
    assert (mechanism.epsilon, mechanism.k, mechanism.sensitivity) == (0.75, 4, 3)
    assert mechanism.bins == spec.reader().bins == ("north", "south", "west")
    assert (questions.epsilon, questions.of, questions.truncate) == (Fraction(1, 4), "total", True)
    assert spec.timeline().iso(2) == "2026-01-01T02:00:00+00:00"
    assert dataclasses.replace(spec, window=3).window == 3


def test_a_mechanism_of_ones_own_is_built(monkeypatch, tmp_path):
    (tmp_path / "theirs_of_spec.py").write_text(
        "from eventide.mechanisms.uniform import Uniform\nclass Mine(Uniform): pass\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = StreamSpec(**CITY, mechanism="theirs_of_spec:Mine")
    assert type(spec.build_mechanism()).__name__ == "Mine"
    assert StreamSpec.examine(CITY | {"mechanism": "theirs_of_spec:Other"})[1][0].field == "mechanism"


@pytest.mark.parametrize("name", ["people", "population"])
def test_people_is_an_older_name_of_the_population(name):
    mechanism = ev.Uniform(epsilon=1, window=2, bins=2)
    with ev.Publisher(MemoryFeed([]), mechanism, **{name: "riders"}) as publisher:
        assert publisher.store.epochs()[-1].setting.people == "riders"


@pytest.mark.parametrize(
    ("written", "step", "periods"),
    [
        ("auto", "1h", (24, 168)),
        ("auto", "", None),
        (None, "1h", None),
        ("none", "1h", None),
        ("24, 30.5", "", (24, 30.5)),
        ([7], "1d", (7,)),
    ],
)
def test_seasons_are_given_or_follow_from_the_step(written, step, periods):
    spec = StreamSpec.read({"epsilon": 1, "window": 3, "bins": 2, "seasons": written, "step": step or None})
    assert spec.build_mechanism().seasons == periods


def test_behind_a_cap_the_day_and_the_week_need_not_be_asked_for():
    capped = StreamSpec(epsilon=1, window=168, bins=2, step="1h", user="who", cap="2/7d")
    assert capped.build_mechanism().seasons == (24, 168)
    assert dataclasses.replace(capped, seasons="none").build_mechanism().seasons is None


def test_seasons_that_cannot_be_meant_are_refused():
    with pytest.raises(InputError, match="seasons: 'daily' is neither auto, none nor periods in steps, such as 24,168"):
        StreamSpec.read({"seasons": "daily"})
    with pytest.raises(InputError, match="mechanism 'ba' takes no seasons"):
        StreamSpec(**CITY, mechanism="ba", seasons=(24,)).build_mechanism()
    with pytest.raises(InputError, match="'seasons' is decided elsewhere"):
        StreamSpec(**CITY, parameters={"seasons": [24]})
    assert StreamSpec(**CITY, mechanism="ba").build_mechanism().step == 0


def test_columns_may_have_their_numbers_by_name():
    named = {"between": {"fare": (0, 120)}, "edges": {"stay": np.array([0, 0.5, 10]), "fare": [0, 5, 20]}}
    written = {"between": "fare=0,120", "edges": ["stay=0.0,0.5,10.0", "fare=0,5,20"]}
    asked = CITY | {"statistic": ["mean:fare", "quantiles:stay", "quantiles:fare"]}
    assert StreamSpec(**asked, **named) == StreamSpec(**asked, **written)
    with pytest.raises(InputError, match="must give each column its numbers"):
        StreamSpec(**asked, between={"fare": 120})


@pytest.mark.parametrize(
    "array",
    [
        lambda names: np.array(names, dtype=object),
        np.array,
        pa.array,
        lambda names: pytest.importorskip("polars").Series(names),
        pytest.param(lambda names: pytest.importorskip("pandas").Series(names), marks=pytest.mark.slow),
    ],
)
def test_bins_may_be_an_array_or_a_series(array):
    names = ["a", "b", "c"]
    assert StreamSpec(**CITY | {"bins": array(names)}) == StreamSpec(**CITY | {"bins": names})
