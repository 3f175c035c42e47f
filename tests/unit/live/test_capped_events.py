"""Events with a cap, from a file to a store: decided step by step, remembered for a block, and then forgotten."""

from __future__ import annotations

import json
from contextlib import closing

import numpy as np
import pytest
from click.testing import CliRunner
from command_words import with_last

import eventide as ev
from eventide.cli import main
from eventide.errors import InputError
from eventide.events.caps import Cap
from eventide.events.reader import Columns, EventReader
from eventide.events.timeline import Timeline
from eventide.live.feeds.event_feed import EventFeed
from eventide.live.feeds.operators_only import OperatorsOnly
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify

BINS = ["north", "south"]
STEPS, WINDOW, CAP, BOUND = 30, 8, "1/8", 4
SETTING = {"step": "1h", "start": "2026-01-01T00:00:00Z", "until": "2026-01-02T06:00:00Z", "user": "user"}


@pytest.fixture
def source(tmp_path):
    chance = np.random.default_rng(4)
    rows = [
        f"2026-01-{1 + step // 24:02}T{step % 24:02}:30:00Z,user {user},{BINS[chance.integers(2)]}"
        for step in range(STEPS)
        for user in range(12)
        if chance.random() < 0.4
    ]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["timestamp,user,bin", *rows]))
    return str(path)


def publisher(source, path, *, bound=BOUND, cap=CAP, noise=None, **options):
    noise = ev.noise.Zero() if noise is None else noise
    mechanism = ev.Uniform(1, WINDOW, BINS, window_sensitivity=bound, noise=noise)
    store = None if path is None else open_store(path, for_tests=noise != "secure")
    return ev.Publisher(source, mechanism, store, cap=cap, **SETTING | options)


def released(store):
    return [line for _, line in store.releases()]


def test_stopped_after_any_step_it_goes_on_as_if_nothing_had_happened(source, tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_bytes", bytes)  # the same key in both stores
    with publisher(source, tmp_path / "whole.db") as whole:
        whole.run()
        expected = released(whole.store)
        total = sum(sum(json.loads(line)["values"]) for line in expected)
    assert 0 < total <= 12 * 5  # of 12 people one in each of the blocks that 30 hours meet
    for until in (*range(1, STEPS, 3), None):
        with publisher(source, tmp_path / "parts.db") as part:
            part.run(until)
            kept = {step for step, _ in part.store.kept()}
            assert kept <= set(range(part.next_step, part.next_step + 7))  # older blocks are over, and erased
            found = released(part.store)
    assert found == expected
    assert len(kept) == 7


def test_without_a_store_the_cap_is_remembered_from_one_run_to_the_next(source, monkeypatch):
    monkeypatch.setattr("secrets.token_bytes", bytes)
    with publisher(source, None) as whole, publisher(source, None) as parts:
        whole.run()
        for until in range(1, STEPS + 1):
            parts.run(until)
        assert released(parts.store) == released(whole.store)


def test_without_a_cap_everything_counts(source):
    with publisher(source, None, bound=None, cap=None) as plain, publisher(source, None) as capped:
        totals = []
        for one in (plain, capped):
            one.run()
            totals.append(sum(sum(json.loads(line)["values"]) for line in released(one.store)))
    assert totals[1] < totals[0]


def test_the_guarantee_is_kept_and_says_so(source, tmp_path):
    with publisher(source, tmp_path / "city.db", noise="secure") as one:
        one.run()
    assert str(one.guarantee) == (
        "All events of one person inside any 8 consecutive steps (8 hours) are hidden by w-event differential privacy "
        "with epsilon 1. One person adds at most 1 to a step, over all bins together. If the events of "
        "one person inside one window change, the counts change by at most 4, over all steps and bins together. Of "
        "each person only the first event counts in every block of 8 hours, and the others are left out. A secret "
        "hash of a person decides when their blocks begin."
    )
    with closing(open_store(tmp_path / "city.db", read_only=True)) as store:
        store.verify()
        (epoch,) = store.epochs()
        assert epoch.setting.cap == {"events": 1, "block": 8}
        assert epoch.setting.reach == 15
        assert verify(store.entries(), [epoch], STEPS).holds


def test_the_guarantee_speaks_of_days_where_there_are_days():
    feed = EventFeed(None, Timeline("2026-01-01", "1h"), EventReader(BINS), cap=Cap(2, 168))
    assert "only the first 2 events count in every block of 7 days, and the others" in feed.promise().assumptions[0]


def test_operators_see_how_many_events_the_cap_left_out_and_readers_do_not(tmp_path):
    """Of three events in an hour one counts; of the one in each of two later hours none, since the block is full."""
    hours = [(0, 3), (1, 1), (2, 1), (20, 1)]
    rows = [f"2026-01-01T{hour:02}:{minute:02}:00Z,ann,north" for hour, times in hours for minute in range(times)]
    path = tmp_path / "events.csv"
    path.write_text("\n".join(["timestamp,user,bin", *rows]))
    feeds = {}
    for cap in (None, "1/8"):
        with publisher(str(path), None, bound=BOUND if cap else None, cap=cap) as one:
            one.run()
            feeds[cap], shown = OperatorsOnly.of(one.feed), str(one.guarantee).encode() + b"".join(released(one.store))
    assert (feeds[None].left_out, feeds[None].left_out_by_cap) == (2, None)
    by_cap = feeds["1/8"].left_out_by_cap
    assert by_cap in (1, 2)  # a block may begin between them
    assert feeds["1/8"].left_out == 2 + by_cap
    told = f"{2 + by_cap} of them were left out by the limit per person, {by_cap} of these by the cap;"
    assert told in str(feeds["1/8"])
    assert b"left_out" not in shown


def test_another_cap_is_another_epoch_that_forgets_and_waits(source, tmp_path):
    with publisher(source, tmp_path / "city.db") as one:
        one.run(10)
    with pytest.raises(InputError, match=r"cap\.block \(8 before, 12 now\).*before step 28 repeats"):
        publisher(source, tmp_path / "city.db", cap="1/12")
    with publisher(source, tmp_path / "city.db", cap="1/12", new_epoch=True) as one:
        assert not one.store.kept()
        one.run()
        assert [json.loads(line)["fresh"] for line in released(one.store)].index(True, 10) == 9 + 8 + 12 - 1
        assert verify(one.store.entries(), one.store.epochs(), STEPS).holds


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"bound": 3}, "need a mechanism with window_sensitivity=4, and this one has 3; make it 4"),
        ({"bound": None}, "this one has None; make it 4"),
        ({"cap": None}, "For events only a cap bounds what a person adds"),
        ({"user": None}, "cap: it bounds the events of a person; name what holds the person, as user"),
    ],
)
def test_what_does_not_go_together_is_refused(source, change, says):
    with pytest.raises(InputError, match=says):
        publisher(source, None, **change)


def called(source, *words):
    given = ("--epsilon", 1, "--window", "8h", "--mechanism", "uniform", "--bins", source.parent / "bins.txt")
    given += ("--step", "1h", "--user", "user", "--bin", "bin", "--out", source.parent / "out.jsonl")
    (source.parent / "bins.txt").write_text("\n".join(BINS))
    ended = CliRunner().invoke(main, with_last("publish", source, *given, *words))
    return ended.exit_code, " ".join(ended.stderr.split())


def test_the_command_takes_a_cap(source, tmp_path):
    path = tmp_path / "events.csv"
    code, said = called(path, "--cap", "1/8h", "--store", tmp_path / "city.db")
    assert code == 0, said
    assert "any 8 consecutive steps (8 hours)" in said
    assert "Of each person only the first event counts in every block of 8 hours, and the others are left out" in said
    assert "One person lost in any 8 steps at most 1 of epsilon 1." in said
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {scale for line in lines for scale in line["scale"]} == {4}
    ended = CliRunner().invoke(main, ["ledger", str(tmp_path / "city.db")])
    assert "window 8, window sensitivity 4 by a cap of 1 in 8 steps, 2 bins" in ended.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--cap", "4/8h"),
            "--cap: 4/8h brings nothing: in a window of 8 steps one person still changes the counts by up to 12",
        ),
        (
            ("--cap", "1/8h", "--max-per-step", 2),
            "--cap: it counts less in a block than the 2 of --max-per-step in a step",
        ),
        (("--cap", "1/8h", "--mechanism", "ba"), "ba cannot be published with a cap"),
        (("--window-sensitivity", 8), "it is for ready-made counts; of events --cap says how many count"),
    ],
)
def test_the_command_refuses(source, tmp_path, words, says):
    code, said = called(tmp_path / "events.csv", *words)
    assert code == 2
    assert says in said


def test_a_feed_refuses_what_its_cap_cannot_bound():
    timeline, cap = Timeline("2026-01-01", "1h"), Cap(1, 8)
    with pytest.raises(InputError, match="a cap bounds the events of a person; name the column of users"):
        EventFeed(None, timeline, EventReader(BINS, Columns(user=None)), cap=cap)
    with pytest.raises(InputError, match="a cap of 1 in 8 steps is less than the 2 events of a user"):
        EventFeed(None, timeline, EventReader(BINS), cap=cap, max_per_step=2)


def test_a_description_of_a_stream_gives_the_mechanism_what_its_cap_is_worth(source):
    spec = ev.StreamSpec(epsilon=1, window="8h", bins=BINS, mechanism="uniform", cap="1/8h", **SETTING)
    mechanism = spec.build_mechanism()
    assert mechanism.window_sensitivity == BOUND
    with ev.Publisher(spec.feed(source), mechanism) as publisher:
        assert publisher.run() == STEPS
    assert ev.StreamSpec(epsilon=1, window=8, bins=BINS, window_sensitivity=5).build_mechanism().window_sensitivity == 5
    with pytest.raises(InputError, match="window_sensitivity: it is for ready-made counts; of events cap says"):
        ev.StreamSpec(epsilon=1, window=8, bins=BINS, window_sensitivity=5, **SETTING)
