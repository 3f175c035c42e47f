"""What landed versions wrote still opens, verifies, goes on and is exported: all that tests/fixtures holds."""

from __future__ import annotations

import json
import shlex
from contextlib import chdir, closing
from dataclasses import asdict, replace

import numpy as np
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest
from certificates import make_certificates
from landed import copied, described, eventide, kept, name_of
from postgres_server import PostgresServer
from running_service import running, wait_until

import eventide as ev
from eventide.bench import load_study, read_results, run_study
from eventide.bench.run.results import fingerprint
from eventide.bench.run.runner import batches_of
from eventide.filters.algorithms import NEWEST
from eventide.live.stores.open_store import open_store
from eventide.service.config.config_file import read_config
from eventide.service.config.settings import Server

COUNTS = np.random.default_rng(18).poisson([30, 5, 90], (12, 3))


def cases(pattern):
    """The folders of all sets that a pattern means; those that compile for long are slow."""
    return [
        pytest.param(place, id=name_of(place), marks=[pytest.mark.slow] if described(place)["slow"] else [])
        for place in kept(pattern)
    ]


def saved_mechanisms():
    """The saved mechanisms of all sets, with what was said of them."""
    return [
        pytest.param(
            index.parent / f"{name}.mechanism",
            about,
            id=f"{name_of(index.parent)}-{name}",
            marks=[pytest.mark.slow] if about["slow"] else [],
        )
        for index in kept("saved/mechanisms.json")
        for name, about in json.loads(index.read_text()).items()
    ]


def releases_of(store):
    with closing(open_store(store, read_only=True)) as opened:
        opened.verify()
        return [release for _, release in opened.releases()]


def table_of(path):
    """The rows of a file of releases, in any format, by name of column; the last line may be torn."""
    if path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]
        return {"step": [line["step"] for line in lines], "line": lines}
    table = pq.read_table(path) if path.suffix == ".parquet" else pa_csv.read_csv(path)
    return table.to_pydict()


def check_grown(before, after, last):
    """An output file has what it had and all steps up to the last."""
    rows = len(before["step"])
    assert {name: column[:rows] for name, column in after.items()} == before
    steps = sorted(set(after["step"]))
    assert steps == list(range(steps[0], last + 1))


def check_goes_on(folder, store):
    """A store verifies as it was written; it goes on, and what it had stays as it was, to the byte."""
    case, released = described(folder), (folder / "released.jsonl").read_bytes().splitlines()
    begun, steps = case["steps"]
    outs = {path: table_of(path) for path in folder.glob("*.*") if path.stem in ("out", "fewer")}
    open_store(store).close()  # a writer brings it to this version
    ledger = json.loads((folder / "ledger.json").read_text())
    found = json.loads(eventide(folder, ["ledger", "STORE", "--json"], store=store))
    same = ("steps", "charged", "in_windows", "verification")
    assert [found[name] for name in same] == [ledger[name] for name in same]
    assert releases_of(store) == released

    printed = eventide(folder, shlex.split(case["resumed_by"]), case["arriving"], store)

    after = releases_of(store)
    new = [json.loads(release) for release in after[len(released) :]]
    assert after[: len(released)] == released
    assert [release["step"] for release in new] == list(range(begun, steps))
    if case["values"]:
        assert [release["values"] for release in new] == case["values"]
    if case["answers"]:
        told = [answer for release in new for answer in release.get("answers", ())]
        assert [{name: answer[name] for name in case["answers"][0]} for answer in told] == case["answers"]
    found = json.loads(eventide(folder, ["ledger", "STORE", "--json"], store=store))
    assert (found["verification"]["holds"], found["steps"]) == (True, steps)
    assert [epoch["mechanism"] for epoch in found["epochs"]] == [epoch["mechanism"] for epoch in ledger["epochs"]]
    assert found["charged"][:begun] == ledger["charged"]
    for path, before in outs.items():
        check_grown(before, table_of(path), steps - 1)
    if "--out -" in case["resumed_by"]:
        assert printed.encode().splitlines() == after[len(released) :]
    check_exported(folder, store, after)
    return after


def check_exported(folder, store, releases):
    """What is exported is what is stored."""
    eventide(folder, ["export", "STORE", "--out", "exported.jsonl"], store=store)
    exported = [json.loads(line) for line in (folder / "exported.jsonl").read_text().splitlines()]
    stored = [json.loads(release) for release in releases]
    assert [each["step"] for each in exported] == [each["step"] for each in stored]
    for one, other in zip(exported, stored, strict=True):  # null: bins that a step did not have, or means of nothing
        known = [[value for value in each["values"] if value is not None] for each in (one, other)]
        assert known[0] == known[1]
    if answers := [answer for each in stored for answer in each.get("answers", ())]:
        eventide(folder, ["export", "STORE", "--out", "answers.jsonl", "--answers"], store=store)
        assert len((folder / "answers.jsonl").read_text().splitlines()) == len(answers)


@pytest.mark.parametrize("place", cases("stores/*"))
def test_a_store_goes_on(place, tmp_path):
    folder = copied(place, tmp_path)
    check_goes_on(folder, str(folder / "store.db"))


@pytest.mark.parametrize("place", cases("stores/seasons-*"))
def test_tide_goes_on_with_the_algorithm_and_the_charges_of_before(place, tmp_path):
    folder = copied(place, tmp_path)
    ledger = json.loads((folder / "ledger.json").read_text())
    tide = ev.Tide(1, 24, ["north", "south", "harbour"], seasons=(7,), filter="truncate")
    with ev.Publisher(str(folder / "counts.csv"), tide, folder / "store.db") as publisher:
        rebuilt, begun = publisher.mechanism, described(folder)["steps"][0]
        before = ledger["epochs"][0]["mechanism"]["parameters"].get("algorithm", 1)
        assert (tide.algorithm, rebuilt.algorithm, rebuilt.step) == (NEWEST, before, begun)
        assert {"step": begun, "start": None, "left": rebuilt.ledger.left()} == ledger["returns"][0]
        assert len(publisher.store.epochs()) == 1


@pytest.fixture(scope="module")
def server():
    running_server = PostgresServer().start()
    yield running_server
    running_server.kill()


@pytest.mark.database
@pytest.mark.parametrize("place", cases("postgres/*"))
def test_a_store_in_postgresql_goes_on(place, tmp_path, server):
    import psycopg

    folder = copied(place, tmp_path)
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"DROP SCHEMA IF EXISTS {place.name} CASCADE")
        connection.execute((folder / "store.sql").read_text())
    check_goes_on(folder, f"{server.address}#{place.name}")


@pytest.mark.parametrize(("file", "about"), saved_mechanisms())
def test_a_saved_mechanism_goes_on(file, about):
    mechanism = ev.load(file.read_bytes())
    assert mechanism.step == about["step"]
    assert str(mechanism.guarantee).startswith("NOT PRIVATE") == about["guarantee"].startswith("NOT PRIVATE")
    ledger = mechanism.ledger
    assert np.array_equal(ledger.left(), about["left"])
    assert np.array_equal(ledger.worst_window(), about["worst_window"])
    for step, counts in enumerate(COUNTS, start=about["step"]):
        release = mechanism.release(counts)
        assert release.step == step
        assert np.isfinite(release.values).all()
    assert np.all(ledger.worst_window() <= mechanism.epsilon)


@pytest.mark.parametrize("index", kept("saved/plans.json"), ids=name_of)
def test_saved_plans_and_answers_go_on(index):
    said = json.loads(index.read_text())
    counts = np.array(said["counts"])
    for planner, about in said["plans"].items():
        loaded = ev.windows.load((index.parent / f"{planner}.plan").read_bytes())
        assert loaded.cost == pytest.approx(about["workload_error"])
        answers = ev.windows.load((index.parent / f"{planner}.answers").read_bytes())
        begun, until = about["ticks"]
        assert answers.tick == begun
        check_answers(answers.push_many(counts[begun:until]), counts)
        assert answers.ledger.worst_window() <= answers.ledger.epsilon
    together = index.parent / "several.answers"  # of versions that could start several plans with one ledger
    several = ev.windows.load(together.read_bytes()) if together.exists() else {}
    for name, answers in several.items():
        own = {"first": counts, "second": counts[:, 0]}[name]
        check_answers(answers.push_many(own[answers.tick :]), own)
        assert answers.tick == len(counts)
        assert answers.ledger.worst_window() <= answers.ledger.epsilon == answers.plan.epsilon


@pytest.mark.parametrize("index", kept("saved/total.json"), ids=name_of)
def test_a_saved_running_total_goes_on(index):
    about = json.loads(index.read_text())
    counter = ev.windows.RunningTotal.load(index.with_name("counter.total").read_bytes())
    counted = np.array(about["sum"])
    for step, counts in enumerate(COUNTS, start=about["steps"] + 1):
        counted += counts
        total = counter.push(counts)
        assert total.steps == step
        np.testing.assert_allclose(total.value, counted, atol=1e-6)  # epsilon is so large that there is no noise
    assert counter.ledger.worst_window() <= counter.ledger.epsilon


def check_answers(due, counts):
    assert len(due)
    exact = [counts[begin:end].sum(axis=0) for begin, end in zip(due.begin, due.end, strict=True)]
    np.testing.assert_allclose(due.value, exact, atol=1e-6)  # epsilon is so large that there is no noise


@pytest.mark.parametrize("place", kept("service"), ids=name_of)
def test_a_service_goes_on_with_its_configuration_tokens_and_stores(place, tmp_path):
    folder = copied(place, tmp_path)
    case, config = described(folder), read_config(folder / "eventide.toml")
    batches = list(case["batches"].items())
    with running(replace(config, server=Server(port=0)), for_tests=False) as up:
        headers = {"Authorization": f"Bearer {case['token']}"}
        timeline = up.service.streams["city"].feed.timeline
        for number, (key, events) in enumerate(batches[case["sent"] - 1 :], start=case["sent"] - 1):
            up.clock.set(timeline.begin(number) + 30_000_000)
            for name in up.service.streams:
                address, with_key = f"/v1/streams/{name}/events", headers | {"Idempotency-Key": key}
                answer = up.client().post(address, json=events, headers=with_key)
                assert answer.json().get("duplicate") == (number < case["sent"]), answer.text
        up.clock.set(timeline.begin(len(batches) + 2))
        wait_until(lambda: all(stream.notices.last == len(batches) - 1 for stream in up.service.streams.values()))
    for stream in config.streams:
        released = (folder / f"{stream.name}.jsonl").read_bytes().splitlines()
        after = releases_of(stream.store)
        assert (after[: len(released)], len(after)) == (released, len(batches))
        found = json.loads(eventide(folder, ["ledger", "STORE", "--json"], store=str(stream.store)))
        assert found["verification"]["holds"]
    city = [json.loads(release)["values"] for release in releases_of(config.streams[0].store)]
    places = config.streams[0].bins
    assert city == [[sum(event["bin"] == name for event in events) for name in places] for _, events in batches]


@pytest.mark.parametrize("index", kept("configurations/meaning.json"), ids=name_of)
def test_configurations_mean_what_they_meant(index, tmp_path):
    folder = copied(index.parent, tmp_path)
    make_certificates(folder)  # the set has the names of such files alone, with which no version started
    for name, meaning in json.loads(index.read_text().replace('"pan_private": "single"', "")).items():
        written = folder / f"{name}.toml"  # no version started with the combination that is taken out here
        written.write_text(written.read_text().replace('pan_private = "single"', ""))
        eventide(folder, ["config", "check", f"{name}.toml"])
        read = asdict(read_config(folder / f"{name}.toml"))
        check_still_said(meaning, json.loads(json.dumps(read, default=str).replace(f"{folder}/", "")))


def check_still_said(before, now):
    """All that was said, and perhaps more."""
    if isinstance(before, dict):
        for key, value in before.items():
            check_still_said(value, now[key])
    elif isinstance(before, list):
        for one, other in zip(before, now, strict=True):
            check_still_said(one, other)
    else:
        assert now == before


@pytest.mark.parametrize("half", kept("studies/*-half.parquet.partial"), ids=name_of)
def test_a_study_goes_on_and_its_results_are_read_and_drawn(half, tmp_path):
    folder, name = copied(half.parent, tmp_path), half.name.partition("-")[0]
    with chdir(folder):
        study = load_study(f"{name}.toml")
        journal = folder / half.name
        _, *finished = journal.read_text().splitlines()
        mark = json.dumps({"study": fingerprint(study)})  # as if this machine had the versions that it was left by
        journal.write_text("\n".join([mark, *finished]) + "\n")
        told = []
        run_study(study, f"{name}-half.parquet", tell=lambda done, total: told.append((done, total)))
    batches = batches_of(study)
    done = sum(batches[json.loads(line)["batch"]].cost for line in finished)
    assert told[0] == (done, sum(batch.cost for batch in batches))
    assert len(told) == 1 + len(batches) - len(finished)
    results, resumed = (read_results(folder / f"{name}{end}.parquet").table.to_pylist() for end in ("", "-half"))
    assert len(resumed) == len(results) == len(study.cells) * len(study.metrics)
    for line in finished:
        for cell in batches[json.loads(line)["batch"]].cells:
            rows = slice(cell * len(study.metrics), (cell + 1) * len(study.metrics))
            assert [row["mean"] for row in resumed[rows]] == [row["mean"] for row in results[rows]]
    eventide(folder, ["report", f"{name}.parquet", "--out", "report.html"])
    assert (folder / "report.html").stat().st_size > 0
