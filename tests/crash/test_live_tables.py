"""kill -9 at every write point and at moments between them: a table holds every step once, as the store has it."""

from __future__ import annotations

import pytest
from crash_events import FILE, OF_A_FILE, STEPS, write_events
from publisher_lives import BINS, KILLED, check, lives_of_a_process, new_life
from read_tables import KINDS, NEEDED, catalog_settings, place_of, rows_in, rows_of


@pytest.fixture(scope="module")
def lives(tmp_path_factory):
    """Their environment names the catalog."""
    with pytest.MonkeyPatch.context() as environment:
        for name, value in catalog_settings(tmp_path_factory.mktemp("catalog")).items():
            environment.setenv(name, value)
        with lives_of_a_process() as live:
            yield live


def begun(folder, kind, name):
    pytest.importorskip(NEEDED[kind])
    write_events(folder / "events.csv", seed=1)
    life, _ = new_life(folder, folder / "events.csv", mechanism="uniform", noise="secure", **FILE)
    place = place_of(kind, folder, name)
    return life, life | {"sinks": [*life["sinks"], place]}, place


def check_table(life, place, folder):
    releases, _ = check(life, STEPS, folder)
    assert rows_in(place) == rows_of([release for _, release in releases], BINS, starts=True)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "sqlite" else pytest.mark.slow) for kind in KINDS]
)
def test_a_table_holds_each_step_once_after_a_kill_at_every_write_point(lives, tmp_path, kind):
    plain, life, place = begun(tmp_path, kind, "points")
    for number, point in enumerate(OF_A_FILE):
        passings = 1 if "epoch" in point or "deliver" in point else 1 + number % 3
        assert lives(life, fault=f"{point}:{passings}") == KILLED, point
    assert lives(life) == 0
    check_table(plain, place, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_holds_each_step_once_after_kills_at_moments_ever_later(lives, tmp_path, kind):
    """Also inside of what the libraries of tables do; until a life comes to its end."""
    plain, life, place = begun(tmp_path, kind, "moments")
    ends = [KILLED]
    while ends[-1] == KILLED:
        ends.append(lives(life, kill_after=0.03 * (len(ends) - 1)))
    assert (ends[1], ends[-1]) == (KILLED, 0)
    check_table(plain, place, tmp_path)
