"""kill -9 at every write point and at random moments: every step is released once, with one noise, and nothing is lost.

The oracle is a twin that nobody disturbs: a copy of the same empty store (so that bounding has the same key), made for
tests, with zero noise. Then what is released depends on the events alone, and must be the same bytes.
"""

from __future__ import annotations

import array
import fcntl
import gzip
import json
import os
import random
import termios
import threading
import time
from collections import Counter
from datetime import timedelta

import numpy as np
import pytest
from crash_events import BEGIN, FILE, OF_A_FILE, STEPS, write_events
from publisher_lives import (
    BINS,
    FOLLOWED,
    KILLED,
    PRODUCED,
    Producer,
    check,
    check_like_twin,
    followed,
    in_postgres,
    let_go,
    new_life,
    stored,
)

from eventide.events.tally import EventTally
from eventide.live.stores.verification import verify


@pytest.mark.parametrize(
    ("mechanism", "noise", "queries_of"),
    [
        pytest.param("uniform", "zero", None, marks=pytest.mark.slow),
        pytest.param("uniform", "secure", None, marks=pytest.mark.slow),
        pytest.param("ba", "zero", None, marks=pytest.mark.slow),
        pytest.param("rg", "zero", None, marks=pytest.mark.slow),
        pytest.param("dsat", "zero", None, marks=pytest.mark.slow),
        pytest.param("ba", "zero", "bins", marks=pytest.mark.slow),
        ("uniform", "secure", "total"),
    ],
)
def test_killed_at_every_write_point_in_order(lives, tmp_path, mechanism, noise, queries_of):
    write_events(tmp_path / "events.csv", seed=1)
    setting = {"mechanism": mechanism, "noise": noise, "queries_of": queries_of}
    life, twin = new_life(tmp_path, tmp_path / "events.csv", **setting, **FILE)
    for number, point in enumerate(OF_A_FILE):
        passings = 1 if "epoch" in point or "deliver" in point else 1 + number % 3
        assert lives(life, fault=f"{point}:{passings}") == KILLED, point
    assert lives(life) == 0
    if noise == "zero":
        check_like_twin(lives, life, twin, tmp_path, STEPS)
    else:
        check(life, STEPS, tmp_path)
    answers = [each["end"] for _, line in stored(life["store"])[0] for each in json.loads(line).get("answers", ())]
    assert len(answers) == (0 if queries_of is None else 29 + 18 + 5)  # every window that ends in 60 steps


@pytest.mark.parametrize(
    ("mechanism", "queries_of", "database"),
    [
        ("uniform", None, "sqlite"),
        pytest.param("dsat", "total", "sqlite", marks=pytest.mark.slow),
        pytest.param("uniform", "total", "postgres", marks=pytest.mark.database),
    ],
)
def test_under_a_cap_the_same_events_count_however_often_it_dies(
    lives, tmp_path, request, mechanism, queries_of, database
):
    """Of each of forty people three in every block of seven steps."""
    write_events(tmp_path / "events.csv", seed=1)
    setting = {"mechanism": mechanism, "queries_of": queries_of}
    life, twin = new_life(tmp_path, tmp_path / "events.csv", cap="3/7", **setting, **FILE)
    server = request.getfixturevalue("postgres") if database == "postgres" else None
    if server is not None:
        life, twin = in_postgres(life, twin, server)
    for number, point in enumerate(OF_A_FILE):
        passings = 1 if "epoch" in point or "deliver" in point else 1 + number % 3
        assert lives(life, fault=f"{point}:{passings}") == KILLED, point
        if server is not None:
            let_go(server)
    assert lives(life) == 0
    capped = check_like_twin(lives, life, twin, tmp_path, STEPS)
    assert len(stored(life["store"])[3]) == 6  # of the steps whose blocks may go on
    plain, _ = new_life(tmp_path / "plain", tmp_path / "events.csv", **setting, **FILE)
    assert lives(plain) == 0
    assert 0 < total_of(capped) < total_of(stored(plain["store"])[0])


@pytest.mark.parametrize(
    ("noise", "queries_of", "database"),
    [
        ("zero", None, "sqlite"),
        pytest.param("zero", "total", "sqlite", marks=pytest.mark.slow),
        pytest.param("secure", None, "sqlite", marks=pytest.mark.slow),
        pytest.param("zero", None, "postgres", marks=pytest.mark.database),
    ],
)
def test_killed_while_old_releases_are_erased(lives, tmp_path, request, noise, queries_of, database):
    """Those of the last 12 steps stay, and the charges of all; the twin keeps everything."""
    write_events(tmp_path / "events.csv", seed=1)
    setting = {"mechanism": "ba", "noise": noise, "queries_of": queries_of}
    life, twin = new_life(tmp_path, tmp_path / "events.csv", **setting, **FILE)
    server = request.getfixturevalue("postgres") if database == "postgres" else None
    if server is not None:
        life, twin = in_postgres(life, twin, server)
    for point in ("before-forgetting", "inside-forgetting", "after-forgetting", "inside-group:3"):
        assert lives(life | {"keep": 12}, fault=point) == KILLED, point
        if server is not None:
            let_go(server)
    assert lives(life | {"keep": 12}) == 0
    releases, entries, epochs, _ = stored(life["store"])
    kept_from = releases[0][0]
    assert 0 < kept_from <= STEPS - 12
    assert [step for step, _ in releases] == list(range(kept_from, STEPS))
    assert verify(entries, epochs, STEPS).problems == []
    lines = (tmp_path / "out.jsonl").read_bytes().splitlines()
    assert lines[kept_from:] == [line for _, line in releases]
    assert [json.loads(line)["step"] for line in lines] == list(range(STEPS))
    if noise == "zero":
        assert lives(twin) == 0
        everything, charges, _, _ = stored(twin["store"])
        assert (lines, entries) == ([line for _, line in everything], charges)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "noise"),
    [("rg", "zero"), ("rg", "secure"), ("rg-baseline", "zero"), ("rg-window-baseline", "zero")],
)
def test_histograms_of_windows_outlive_deaths(lives, tmp_path, mechanism, noise):
    """Byte for byte those of a twin that nobody disturbs, in the store and in every output, with their scales."""
    write_events(tmp_path / "events.csv", seed=1)
    setting = {"mechanism": mechanism, "parameters": {"span": 5}, "noise": noise, "window": 1}
    life, twin = new_life(tmp_path, tmp_path / "events.csv", **setting, **FILE)
    for number, point in enumerate(OF_A_FILE):
        passings = 1 if "epoch" in point or "deliver" in point else 1 + number % 3
        assert lives(life, fault=f"{point}:{passings}") == KILLED, point
    assert lives(life) == 0
    if noise == "zero":
        releases = check_like_twin(lives, life, twin, tmp_path, STEPS)
    else:
        releases, _ = check(life, STEPS, tmp_path)
    told = [json.loads(line) for _, line in releases]
    assert all(len(each["window_values"]) == len(each["window_scale"]) == len(BINS) for each in told)
    if (mechanism, noise) == ("rg-baseline", "zero"):
        sums = np.cumsum([each["values"] for each in told], axis=0)
        sums[5:] -= sums[:-5].copy()
        assert [each["window_values"] for each in told] == sums.tolist()


def total_of(releases):
    return sum(sum(json.loads(line)["values"]) for _, line in releases)


def split(path, folder, dealt):
    """The rows of a file as files of several kinds; dealt to them, every step has rows in each, else in one or two."""
    header, *rows = path.read_text().splitlines(keepends=True)
    folder.mkdir()
    for number, name in enumerate(("a.csv", "b.jsonl", "c.csv.gz", "place=north/d.csv")):
        some = rows[number::4] if dealt else rows[len(rows) * number // 4 : len(rows) * (number + 1) // 4]
        (folder / name).parent.mkdir(exist_ok=True)
        if name.endswith(".jsonl"):
            objects = (dict(zip(header.strip().split(","), row.strip().split(","), strict=True)) for row in some)
            (folder / name).write_text("".join(json.dumps(each) + "\n" for each in objects))
        elif name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress("".join([header, *some]).encode()))
        else:
            (folder / name).write_text("".join([header, *some]))


@pytest.mark.parametrize("dealt", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_killed_in_the_middle_of_a_folder(lives, tmp_path, dealt):
    """The twin reads the same rows from one file."""
    write_events(tmp_path / "events.csv", seed=1)
    split(tmp_path / "events.csv", tmp_path / "events", dealt)
    life, twin = new_life(tmp_path, tmp_path / "events", mechanism="uniform", **FILE)
    for point in ("after-commit", "inside-transaction:3", "before-commit:6", "after-draw:11"):
        assert lives(life, fault=point) == KILLED, point
    assert lives(life) == 0
    check_like_twin(lives, life, twin | {"source": str(tmp_path / "events.csv")}, tmp_path, STEPS)


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["zero", "secure"])
def test_answers_outlive_deaths_at_random_moments(lives, tmp_path, noise):
    setting = {"mechanism": "uniform", "noise": noise, "queries_of": "total"}
    check_deaths_at_random(lives, tmp_path, random.Random(8), 5, **setting)


def check_deaths_at_random(lives, folder, chance, deaths, moments=1, **setting):
    """Die at least so often at random moments of a life, until that was before so many different steps.

    On a busy machine most of a life is its start, so that more deaths are needed to meet the rest of it.
    """
    write_events(folder / "events.csv", seed=2)
    died: list[int] = []
    stores = 0

    def enough():
        return len(died) >= deaths and len(set(died)) >= moments

    while not enough():
        assert len(died) < 20 * deaths, f"deaths come before the same steps again and again: {set(died)}"
        here = folder / f"store {stores}"
        life, twin = new_life(here, folder / "events.csv", **setting, **FILE)
        begin = time.monotonic()
        assert lives(twin) == 0
        lifetime = time.monotonic() - begin
        while not enough() and (code := lives(life, kill_after=chance.uniform(0, lifetime))) == KILLED:
            died.append(len(stored(life["store"])[0]))
        assert code == 0 or lives(life) == 0
        releases, entries = check(life, STEPS, here)
        if setting["noise"] == "zero":
            assert stored(twin["store"])[:2] == (releases, entries)
        stores += 1
    print(f"{len(died)} deaths over {stores} stores, before the steps {died}")


@pytest.mark.slow
def test_killed_at_random_moments(lives, tmp_path):
    check_deaths_at_random(lives, tmp_path, random.Random(5), 3, mechanism="ba", noise="zero")


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["zero", "secure"])
@pytest.mark.parametrize("mechanism", ["uniform", "ba", "rg", "dsat"])
def test_killed_at_many_random_moments(lives, tmp_path, mechanism, noise):
    check_deaths_at_random(lives, tmp_path, random.Random(7), 25, moments=6, mechanism=mechanism, noise=noise)


def test_killed_while_the_setting_changes(lives, tmp_path):
    write_events(tmp_path / "events.csv", seed=3)
    life, twin = new_life(tmp_path, tmp_path / "events.csv", mechanism="uniform", **FILE)
    longer = {"window": 11, "new_epoch": True}
    for each in (life, twin):
        assert lives(each, until=20) == 0
    for point in ("inside-epoch", "after-epoch", "before-commit", "after-commit", "half-line"):
        assert lives(life | longer, fault=point) == KILLED
    assert lives(life | longer) == 0
    releases = check_like_twin(lives, life, twin | longer, tmp_path, STEPS)
    fresh = [json.loads(release)["fresh"] for _, release in releases]
    assert fresh == [True] * 20 + [False] * 10 + [True] * 30  # the last charge is at step 19, and 19 + 11 = 30


@pytest.mark.slow
def test_a_growing_file_is_followed_over_deaths(lives, tmp_path):
    events = tmp_path / "events.jsonl"
    events.touch()
    begin = time.time()
    life, twin = new_life(tmp_path, events, mechanism="uniform", **followed(begin))

    def append(event):
        with events.open("a") as file:
            file.write(json.dumps(event)[:20])
            file.flush()  # a torn line is left until it is complete
            file.write(json.dumps(event)[20:] + "\n")

    producer = Producer(begin + PRODUCED, append)
    producer.start()
    chance, ends = random.Random(6), Counter()
    while producer.is_alive():
        ends[lives(life, kill_after=chance.uniform(0, 1.2))] += 1
    producer.join()
    assert set(ends) == {KILLED}
    assert lives(life) == 0
    complete = twin["feed"] | {"follow": False, "late": None}
    releases = check_like_twin(lives, life, twin | {"feed": complete}, tmp_path, FOLLOWED)
    assert sum(sum(json.loads(release)["values"]) for _, release in releases) > 20


def waiting(pipe):
    """How many bytes stand in a pipe."""
    size = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, size)
    return size[0]


def counted(path):
    """How many events a store has taken of each step and bin, released or still open."""
    releases, _, _, kept = stored(path)
    counts = Counter()
    for step, release in releases:
        counts[step] = np.array(json.loads(release)["values"])
    for step, data in kept:
        tally = EventTally(len(BINS))
        tally.join(data)
        counts[step] = counts[step] + tally.counts(step)
    return sum(int(np.sum(values)) for values in counts.values())


def test_what_was_taken_from_standard_input_is_neither_lost_nor_doubled(lives, tmp_path):
    """A pipe cannot be read twice: an event that was read but not kept when death came is sent again by its sender.

    The clock stands still until all events are sent, and then shows a time when all steps are over.
    """
    clock, chance = tmp_path / "clock", random.Random(4)
    when = {name: FILE[name] for name in ("step", "start", "until")}
    life, _ = new_life(tmp_path, "-", mechanism="uniform", most=1, clock=str(clock), late="1000h", **when)
    points = ["inside-keep:2", "after-keep:2", "inside-keep", "after-keep", "before-draw", "inside-transaction:2"]
    points += ["after-commit:2", "half-line", "after-draw:3", "before-commit", "none"]
    expected = np.zeros((STEPS, len(BINS)), int)

    def show(hours):
        moment = BEGIN + timedelta(hours=hours)
        (tmp_path / "next").write_text(str(int(moment.timestamp() * 1e6)))
        (tmp_path / "next").replace(clock)

    def send():
        until = time.monotonic() + 300
        try:
            for taken in range(40):
                step, place = chance.randrange(STEPS), chance.randrange(len(BINS))
                event = {"timestamp": (BEGIN + timedelta(hours=step)).isoformat(), "bin": BINS[place]}
                send_until_taken((json.dumps(event) + "\n").encode(), taken, until)
                expected[step, place] += 1
        finally:
            show(STEPS + 1001)

    def send_until_taken(line, taken, until):
        os.write(lives.pipe[1], line)
        while counted(life["store"]) == taken:
            assert time.monotonic() < until, "an event was not taken in time"
            if ended.is_set():  # somebody died: send again what was read and not kept
                ended.clear()
                if counted(life["store"]) == taken and not waiting(lives.pipe[0]):
                    os.write(lives.pipe[1], line)
                alive.set()
            time.sleep(0.005)

    ended, alive, codes = threading.Event(), threading.Event(), []
    show(STEPS)
    sender = threading.Thread(target=send)
    sender.start()
    for point in points:
        codes.append(lives(life, fault=point))
        ended.set()
        while sender.is_alive() and not alive.wait(0.05):
            pass
        alive.clear()
    sender.join()
    assert codes == [KILLED] * (len(points) - 1) + [0]
    releases, _ = check(life, STEPS, tmp_path)
    assert expected.sum() == 40
    np.testing.assert_array_equal([json.loads(release)["values"] for _, release in releases], expected)
