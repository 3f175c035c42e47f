"""A stream of the service with a cap: decided when a step closes, kept over restarts, told as one person's loss."""

from __future__ import annotations

import csv
import random
from contextlib import closing
from fractions import Fraction

import pytest
from live_stores import make_twin
from population_lives import live, people
from running_service import MINUTE, START, configuration, event, running, stream

import eventide as ev
from eventide.errors import InputError
from eventide.live.stores.open_store import open_store
from eventide.releases.lines import read_line
from eventide.service.config.config_file import read_config

STEPS, WINDOW, CAP = 20, 6, "1/6min"
BINS = ("north", "south", "harbour")


def capped(folder, **changed):
    return configuration(folder, [stream(folder, window=WINDOW, cap=CAP, **changed)])


def some_events():
    chance = random.Random(3)
    return [
        event(chance.choice(BINS), f"user {user}", minute)
        for minute in range(STEPS)
        for user in range(12)
        for _ in range(chance.choice([0, 0, 1, 2]))
    ]


def serve(config, events, steps):
    """Hand in the events of some steps, minute by minute, and release them; what operators see."""
    config.access.tokens.unlink(missing_ok=True)
    with running(config) as up:
        for minute in steps:
            up.clock.set(up.service.streams["city"].feed.timeline.begin(minute) + MINUTE // 2)
            batch = [one for one in events if one["time"] == event(minute=minute)["time"]]
            assert up.post(batch).json()["accepted"] == len(batch)  # whatever the cap lets count
            up.pass_steps()
        return up.client("operate").get("/v1/streams/city/operations").json()["left_out"]


def values(path):
    with closing(open_store(path, read_only=True)) as store:
        return [read_line(line).values.tolist() for _, line in store.releases()], store.kept()


def test_it_counts_what_the_publisher_of_a_file_counts_and_restarts_change_nothing(tmp_path):
    open_store(tmp_path / "city.store", for_tests=True).close()
    make_twin(tmp_path / "city.store", tmp_path / "twin.db")  # which has the same key
    events = some_events()
    left_out = sum(serve(capped(tmp_path), events, steps) for steps in (range(9), range(9, STEPS)))
    with (tmp_path / "events.csv").open("w") as file:
        rows = csv.DictWriter(file, events[0])
        rows.writeheader()
        rows.writerows(events)
    mechanism = ev.Uniform(1, WINDOW, BINS, window_sensitivity=4, noise=ev.noise.Zero())
    options = {"step": "1min", "start": START, "until": f"2026-01-01T00:{STEPS}Z", "user": "user", "cap": CAP}
    with ev.Publisher(tmp_path / "events.csv", mechanism, tmp_path / "twin.db", time="time", **options) as twin:
        twin.run()
    served, kept = values(tmp_path / "city.store")
    assert (served, kept) == values(tmp_path / "twin.db")
    total = sum(map(sum, served))
    assert 12 < total <= 12 * 5  # of 12 people one in each of the blocks that 20 minutes meet
    assert left_out == len(events) - total


@pytest.fixture
def city(tmp_path):
    with running(capped(tmp_path)) as up:
        yield up


def test_figures_tell_what_one_person_can_lose(city):
    city.pass_steps(3)
    reader = city.client("read")
    ledger = reader.get("/v1/streams/city/ledger").json()
    assert (ledger["epsilon"], ledger["window"], ledger["window_sensitivity"]) == (1, WINDOW, 4)
    assert (ledger["spent"], ledger["left"], ledger["worst"], ledger["verified"]) == (1, 0, 1, True)
    assert [each["in_window"] for each in ledger["history"]] == [1, 1, 1]  # a quarter of epsilon, four times
    assert (ledger["next_return"]["step"], ledger["next_return"]["amount"]) == (3, 1)
    assert 'eventide_window_spent_ratio{stream="city"} 1.0' in reader.get("/metrics").text
    promised = reader.get("/v1/streams/city/guarantee").json()
    assert (promised["window"], promised["window_sensitivity"]) == (WINDOW, 4)
    assert "only the first event counts in every block of 6 minutes" in promised["sentence"]
    assert reader.get("/v1/streams/city").json()["cap"] == CAP


def test_operators_see_what_was_left_out_and_readers_do_not(city):
    """Anna acts in three minutes, which meet two of her blocks at the most, and in the first of them twice."""
    operator, reader = city.client("operate"), city.client("read")
    city.post([event("south")])
    for minute in range(3):
        city.post([event(minute=minute)])
        city.pass_steps()
    releases = reader.get("/v1/streams/city/releases").json()["releases"]
    left_out = 4 - sum(sum(release["values"]) for release in releases)
    found = operator.get("/v1/streams/city/operations").json()
    assert (found["accepted"], found["left_out"], found["left_out_by_cap"]) == (4, left_out, left_out - 1)
    assert left_out in (2, 3)
    figures = operator.get("/metrics").text
    assert f'eventide_raw_left_out_events_total{{stream="city"}} {left_out}.0' in figures
    assert f'eventide_raw_left_out_by_cap_events_total{{stream="city"}} {left_out - 1}.0' in figures
    for path in ("/metrics", "/v1/streams/city", "/v1/streams/city/ledger", "/v1/streams/city/guarantee"):
        assert "left_out" not in reader.get(path).text


CONFIG = """
[[streams]]
name = "city"
epsilon = 1.0
window = "24h"
step = "1h"
start = 2026-01-01T00:00:00Z
bins = ["north", "south"]
{more}
store = "city.store"
"""


def read(folder, more):
    (folder / "eventide.toml").write_text(CONFIG.format(more=more))
    return read_config(folder / "eventide.toml")


def test_a_configuration_says_it(tmp_path):
    (city,) = read(tmp_path, 'user = "user"\ncap = "2/24h"').streams
    assert city.cap_in_steps() == (2, 24)
    assert city.build_mechanism().window_sensitivity == 8


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ('cap = "2/24h"', "cap: it bounds the events of a person; name what holds the person, as user"),
        ('user = "user"\ncap = "6/24h"', "cap: 6/24h brings nothing: in a window of 24 steps"),
        ('user = "user"\ncap = "2/90min"', "cap: the 90min of the cap 2/90min are no whole number of steps"),
        ('user = "user"\ncap = "2/24h"\nmechanism = "ba"', "mechanism: ba cannot be published with a cap"),
    ],
)
def test_a_cap_that_cannot_be_is_refused_where_it_stands(tmp_path, more, says):
    with pytest.raises(InputError, match=says):
        read(tmp_path, more)


# Streams about the same people.


def test_a_capped_stream_waits_for_its_own_block_too(tmp_path):
    """
    minutes   0 ... 9 │ 14         window 5: the last charge is at 9, and a window of it ends at 13
    a         x x x x │
    b                 │ . . x      without a cap
    c                 │ . . . . x  with blocks of 5, in which a change of minute 13 shows until minute 17
    """
    live(people(tmp_path, {"a": 1}), 10)
    c = {"cap": "1/5", "epsilon": Fraction(1, 2)}
    assert live(people(tmp_path, {"b": 0.5, "c": c}), 25) == {"b": 14, "c": 18}
    assert live(people(tmp_path, {"b": 0.5, "c": c}), 30) == {"b": 14, "c": 18}  # and a restart changes nothing


def test_another_cap_is_another_epoch_of_that_stream_alone(tmp_path):
    shares = {"a": {"cap": "1/5", "epsilon": 0.5}, "b": 0.5}
    live(people(tmp_path, shares), 10)
    shares["a"] = {"cap": "1/8", "epsilon": 0.5}
    assert live(people(tmp_path, shares), 30) == {"a": 9 + 5 + 8 - 1, "b": 0}
