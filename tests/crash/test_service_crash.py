"""A service that is killed while events come in: what it acknowledged counts, once, and nothing else does.

The client sends each batch under a key until it is acknowledged; the service dies at named points and at random moments
and is started again. Afterwards every step and every answer to a window query holds exactly the events that were sent,
and no window is over epsilon.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from functools import cache
from pathlib import Path

import httpx
import numpy as np
import pytest
from live_stores import make_twin
from postgres_server import PostgresServer
from running_service import PATIENCE, START, wait_until

import eventide as ev
from eventide.events.caps import parse_cap
from eventide.events.timeline import Timeline
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.releases.lines import read_line
from eventide.service.http.tokens import add_token

HERE = Path(__file__).parent
STEPS, BATCHES, EVENTS, BINS = 4, 6, 40, 7
HOUR = 3_600_000_000


@cache
def timeline():
    return Timeline(START, "1min")  # reads times with a kernel, which is not compiled for whoever collects tests


@pytest.fixture(scope="module")
def cradle():
    """The process that lives are forked from."""
    command = [sys.executable, str(HERE / "service_life.py")]
    modules = os.pathsep.join([str(HERE.parent / "support"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"PYTHONPATH": modules}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, env=environment, text=True, bufsize=1, **pipes) as process:
        yield process
        process.stdin.close()


class Lives:
    """The service, life after life, and the client that does not give up."""

    def __init__(self, cradle, folder, fault, cap):
        self.cradle, self.folder, self.cap = cradle, folder, cap
        self.deaths = 0
        (folder / "tokens").unlink(missing_ok=True)  # of a life before
        token = add_token(folder / "tokens", "ingest", "client")
        headers = {"Authorization": f"Bearer {token}"}
        self.client = httpx.Client(headers=headers, timeout=PATIENCE, trust_env=False, verify=False)
        if not (folder / "clock").exists():
            (folder / "clock").write_text(str(timeline().start))
        self.begin(fault)

    def begin(self, fault="none"):
        self.cradle.stdin.write(f"{self.folder} {fault} {self.cap}\n")
        process, address = self.cradle.stdout.readline().split()  # "ended" is no such pair
        self.process, self.address = int(process), address.rstrip("/")

    def alive(self):
        try:
            os.kill(self.process, 0)
        except ProcessLookupError:
            return False
        return True

    def kill(self):
        with suppress(ProcessLookupError):
            os.kill(self.process, signal.SIGKILL)

    def end(self):
        self.client.close()
        self.kill()
        assert self.cradle.stdout.readline() == "ended\n"

    def send(self, batch, key):
        """Send until it is acknowledged, through as many lives as it takes."""
        while True:
            try:
                path, headers = f"{self.address}/v1/streams/city/events", {"Idempotency-Key": key}
                answer = self.client.post(path, json=batch, headers=headers)
                if answer.status_code == 200:
                    return answer.json()
                assert answer.status_code in (429, 503)
            except httpx.HTTPError:
                time.sleep(0.02)
                self.revive()

    def revive(self):
        """Begin the next life, unless this one is not over."""
        if not self.alive():
            assert self.cradle.stdout.readline() == "ended\n"
            self.deaths += 1
            self.begin()

    def pass_step(self, step):
        """Seal a step; if the service dies of it, begin again."""
        (self.folder / "clock").write_text(str(timeline().end(step) + HOUR))

        def sealed():
            self.revive()
            with closing(open_store(self.folder / "city.store", read_only=True)) as reader:
                return reader.next_step() > step

        wait_until(sealed)


def batches(step, generator):
    """Events of seventy people, many of whom come again and again."""
    for _ in range(BATCHES):
        places, people = generator.integers(0, BINS, EVENTS), generator.integers(0, 70, EVENTS)
        yield (
            places,
            [
                {"time": timeline().iso(step), "user": f"user {user}", "bin": str(place)}
                for user, place in zip(people, places, strict=True)
            ],
        )


@contextmanager
def lives(cradle, folder, fault="none", cap="none"):
    service = Lives(cradle, folder, fault, cap)
    try:
        yield service
    finally:
        service.end()


def run(service, between=lambda: None):
    """Send everything, seal every step, and give the counts that must come out."""
    generator, expected = np.random.default_rng(1), np.zeros((STEPS, BINS), dtype=np.int64)
    for step in range(STEPS):
        for number, (places, batch) in enumerate(batches(step, generator)):
            between()
            receipt = service.send(batch, f"{step}/{number}")
            assert receipt["duplicate"] or receipt["accepted"] == EVENTS
            expected[step] += np.bincount(places, minlength=BINS)
        service.pass_step(step)
    return expected


def check(folder, expected, expected_kept=()):
    with closing(open_store(folder / "city.store", read_only=True)) as store:
        store.verify()
        lines = list(store.releases())
        values = np.array([read_line(line).values for _, line in lines])
        answers = [answer for _, line in lines for answer in read_line(line).answers]
        found = verify(store.entries(), store.epochs(), store.next_step())
        kept = store.kept()
    assert [step for step, _ in lines] == list(range(STEPS))
    assert (values == expected).all()
    assert [(answer["begin"], answer["end"]) for answer in answers] == [(0, 2), (1, 3), (2, 4), (0, 4)]
    for answer in answers:
        assert answer["values"] == [expected[answer["begin"] : answer["end"]].sum()]
    assert found.holds
    assert kept == list(expected_kept)


LONG = (
    "inside-keep:1",
    "after-keep:1",
    "after-keep:10",
    "before-draw:2",
    "after-draw:1",
    "before-commit:3",
    "after-commit:1",
)


WITH_A_CAP = (
    "inside-keep:9",
    "after-keep:10",
    "before-draw:3",
    "after-draw:2",
    "before-commit:3",
    "inside-transaction:3",
    "after-commit:3",
)


@pytest.mark.parametrize(
    "fault",
    ["inside-keep:9", "inside-transaction:2"] + [pytest.param(one, marks=pytest.mark.slow) for one in LONG],
)
def test_killed_at_a_named_point_nothing_is_lost_or_counted_twice(cradle, tmp_path, fault):
    with lives(cradle, tmp_path, fault) as service:
        expected = run(service)
        assert service.deaths == 1
    check(tmp_path, expected)


@pytest.mark.slow
@pytest.mark.parametrize("fault", WITH_A_CAP)
def test_under_a_cap_the_same_events_count_as_of_a_file(cradle, tmp_path, fault):
    """Of each of seventy people one in every block of three steps; the twin reads what was sent, with the same key."""
    cap = "1/3"
    open_store(tmp_path / "city.store", for_tests=True).close()
    make_twin(tmp_path / "city.store", tmp_path / "twin.db")
    with lives(cradle, tmp_path, fault, cap) as service:
        sent = run(service)
        assert service.deaths == 1
    generator = np.random.default_rng(1)
    events = [event for step in range(STEPS) for _, batch in batches(step, generator) for event in batch]
    (tmp_path / "events.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    bins = [str(place) for place in range(BINS)]
    bound = parse_cap(cap, "1min").window_sensitivity(9, 1)
    mechanism = ev.Uniform(1, 9, bins, window_sensitivity=bound, noise=ev.noise.Zero())
    cut = {"step": "1min", "start": START, "until": timeline().iso(STEPS), "time": "time", "user": "user", "cap": cap}
    with ev.Publisher(tmp_path / "events.jsonl", mechanism, tmp_path / "twin.db", **cut) as twin:
        twin.run()
        expected = np.array([read_line(line).values for _, line in twin.store.releases()], dtype=np.int64)
        kept = twin.store.kept()
    check(tmp_path, expected, kept)
    assert 0 < expected.sum() <= 70 * 3 < sent.sum()


@pytest.mark.parametrize(
    "kills", [pytest.param(12, marks=pytest.mark.slow), pytest.param(40, marks=pytest.mark.nightly)]
)
def test_killed_at_random_moments_nothing_is_lost_or_counted_twice(cradle, tmp_path, kills):
    moments, timers = random.Random(kills), []
    with lives(cradle, tmp_path) as service:

        def soon():
            if timers:
                timers.pop().join()  # one at a time, so that most of them find somebody alive, on a fast machine too
            if service.deaths < kills:
                timers.append(threading.Timer(moments.uniform(0, 0.05), service.kill))
                timers[-1].start()

        expected = run(service, soon)
        assert service.deaths >= min(kills, STEPS * BATCHES // 4)
    check(tmp_path, expected)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["after-charge:2", "after-draw:2", "after-commit:2", "after-settle:2"])
def test_killed_around_the_charge_of_an_account_every_step_is_out_once(cradle, tmp_path, fault):
    create_account(tmp_path / "people.account", "city", 1, "4min")  # which meets five of its steps, a window
    with lives(cradle, tmp_path, fault) as service:
        run(service)
        assert service.deaths == 1
    with closing(open_store(tmp_path / "city.store", read_only=True)) as store:
        assert [step for step, _ in store.releases()] == list(range(STEPS))
        assert verify(store.entries(), store.epochs(), store.next_step()).holds
    with open_account(tmp_path / "people.account", read_only=True) as account:
        found = account_report(account)
    assert (found.problems, found.worst) == ([], 10**9)
    assert [tenure.charged_until for tenure in found.tenures] == [timeline().end(STEPS - 1)]


POINTS = (
    *("inside-epoch", "after-epoch", "before-draw", "after-draw", "before-snapshot", "after-snapshot"),
    *("before-commit", "inside-transaction", "after-commit"),
)


class NoisyLives(Lives):
    """A service that holds events in noisy cells alone, in `store`: whoever kills it takes those of the open step."""

    def __init__(self, cradle, folder, fault, store):
        self.held = np.zeros(BINS, dtype=np.int64)
        super().__init__(cradle, folder, fault, store)

    def begin(self, fault="none"):
        """One that dies before it listens is followed by the next."""
        self.held[:] = 0
        self.cradle.stdin.write(f"{self.folder} {fault} {self.cap}\n")
        if (said := self.cradle.stdout.readline()) == "ended\n":
            self.deaths += 1
            self.begin()
        else:
            self.process, self.address = int(said.split()[0]), said.split()[1].rstrip("/")

    def hand_in(self, step, places):
        batch = [{"time": timeline().iso(step), "bin": str(place)} for place in places]
        answer = self.client.post(f"{self.address}/v1/streams/city/events", json=batch)
        assert (answer.status_code, answer.json()["accepted"]) == (200, len(batch))
        self.held += np.bincount(places, minlength=BINS)

    def seal(self, step, deaths):
        """Let the next step begin, and wait for so many deaths; give what was held when this one was committed."""
        held = self.held.copy()
        (self.folder / "clock").write_text(str(timeline().begin(step + 1) + 30_000_000))

        def sealed():
            dies = not self.alive()
            if dies and not is_released(self.cap, step):
                held[:] = 0
            self.revive()
            return self.deaths == deaths and not dies and is_released(self.cap, step)

        wait_until(sealed)
        self.held -= held
        return held


def is_released(store, step):
    with closing(open_store(store, read_only=True)) as reader:
        return reader.next_step() > step


def killed_at_every_point(cradle, folder, store):
    """A life for each point: it takes events, dies at the point, if not at once, and is followed by another."""
    places, expected = np.random.default_rng(2), []
    (folder / "clock").write_text(str(timeline().start + 30_000_000))
    for step, point in enumerate(("none", *POINTS, "none")):
        with noisy_lives(cradle, folder, point, store) as service:
            for _ in range(2):
                service.hand_in(step, places.integers(0, BINS, 5))
            expected.append(service.seal(step, deaths=point != "none"))
    return expected


@contextmanager
def noisy_lives(cradle, folder, fault, store):
    service = NoisyLives(cradle, folder, fault, store)
    try:
        yield service
    finally:
        service.end()


def check_noisy(store, expected):
    with closing(open_store(store, read_only=True)) as found:
        found.verify()
        lines = [read_line(line) for _, line in found.releases()]
        assert verify(found.entries(), found.epochs(), found.next_step()).holds
        left = [found._database.all(f"SELECT COUNT(*) FROM {table}") for table in ("kept", "batch")]
        assert left == [[(0,)], [(0,)]]
        assert found._database.all("SELECT position FROM head") == [("null",)]
    assert [line.values.astype(int).tolist() for line in lines] == [each.tolist() for each in expected]
    assert sum(each.any() for each in expected) >= 3, "some steps kept their events"
    assert not all(each.any() for each in expected), "what was held when it died is gone"


@pytest.mark.slow
def test_a_pan_private_service_killed_at_every_write_point_leaves_nothing(cradle, tmp_path):
    store = str(tmp_path / "city.store")
    check_noisy(store, killed_at_every_point(cradle, tmp_path, store))


@pytest.mark.nightly
@pytest.mark.database
def test_so_it_is_with_a_store_in_postgresql(cradle, tmp_path):
    server = PostgresServer().start()
    try:
        store = f"{server.address}#city"
        check_noisy(store, killed_at_every_point(cradle, tmp_path, store))
    finally:
        server.kill()
