"""kill -9 around the naming of a bin, and with levels at every write point: nothing is lost, and all adds up.

The oracle is a twin that nobody disturbs, as in test_live_crash.py.
"""

from __future__ import annotations

import json

import numpy as np
import pytest
from crash_events import FILE, OF_A_FILE, STEPS, write_events
from publisher_lives import BINS, KILLED, new_life, stored

from eventide.events.bins import with_spares
from eventide.events.levels import Levels, with_spare_groups

PLACES = with_spares(BINS, 2)
GROWN = with_spares((*BINS, "nowhere"), 2)  # where somebody was all the time


def values_of(life):
    return np.array([json.loads(line)["values"] for _, line in stored(life["store"])[0]])


@pytest.mark.slow
def test_killed_around_the_naming_of_a_bin(lives, tmp_path):
    write_events(tmp_path / "events.csv", seed=1)
    made = new_life(tmp_path, tmp_path / "events.csv", **FILE)
    life, twin = (each | {"bins": PLACES, "sinks": each["sinks"][:1]} for each in made)
    assert lives(life, until=20) == 0
    grown = life | {"bins": GROWN}
    for fault in ("inside-naming", "inside-naming", "after-naming", "after-commit:3", "inside-transaction:2"):
        assert lives(grown, fault=fault) == KILLED, fault
    assert lives(life, until=30) == 0  # the list of before does as well: the name stays
    assert lives(grown) == 0
    assert lives(twin, until=20) == 0
    assert lives(twin | {"bins": GROWN}) == 0
    assert stored(life["store"])[:2] == stored(twin["store"])[:2]
    (epoch,) = stored(life["store"])[2]
    assert epoch.setting.named == [[3, "nowhere", 20, None]]
    values = values_of(life)
    assert len(values) == STEPS
    assert not values[:20, 3].any()
    assert values[20:, 3].sum() > 0
    assert not values[:, 4].any()
    seen = (tmp_path / "out.jsonl").read_bytes()
    assert seen == b"".join(release + b"\n" for _, release in stored(life["store"])[0])


GROUPS = with_spare_groups({"shore": ["inland", "inland", "sea"], "side": ["left", "right", "right"]}, PLACES)


@pytest.mark.parametrize(
    ("mechanism", "noise", "spare"),
    [
        pytest.param("ba", "zero", True, marks=pytest.mark.slow),
        pytest.param("uniform", "secure", False, marks=pytest.mark.slow),
        pytest.param("hybrid", "zero", False, marks=pytest.mark.slow),
        pytest.param("sample", "secure", True, marks=pytest.mark.slow),
        pytest.param("tide", "zero", False, marks=pytest.mark.nightly),
    ],
)
def test_levels_add_up_after_a_death_at_any_write_point(lives, tmp_path, mechanism, noise, spare):
    write_events(tmp_path / "events.csv", seed=2)
    bins = PLACES if spare else BINS
    groups = {level: each[: len(bins)] for level, each in GROUPS.items()}
    made = new_life(tmp_path, tmp_path / "events.csv", mechanism=mechanism, noise=noise, **FILE)
    life, twin = (each | {"bins": bins, "levels": groups} for each in made)
    points = [point for point in OF_A_FILE if not (spare and point == "inside-group")]  # then each step is alone
    for number, point in enumerate(points):
        passings = 1 if "epoch" in point or "deliver" in point else 1 + number % 3
        assert lives(life, fault=f"{point}:{passings}") == KILLED, point
    assert lives(life) == 0
    releases, entries, _, _ = stored(life["store"])
    if noise == "zero":
        assert lives(twin) == 0
        assert stored(twin["store"])[:2] == (releases, entries)
    assert len(releases) == STEPS
    labels = Levels(groups, bins).labels
    for _, line in releases:
        said = json.loads(line)
        for level, told in said["levels"].items():
            assert told["values"] == np.bincount(labels[level], said["values"]).tolist()
