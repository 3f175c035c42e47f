"""The service over HTTP: events in, durable before they are acknowledged; releases, ledger and guarantee out."""

from __future__ import annotations

import asyncio
import io
import json
import re
import shutil
import ssl
import subprocess
import threading
from fractions import Fraction
from importlib.resources import files

import httpx
import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest
from running_service import PATIENCE, configuration, event, running, stream, wait_until

from eventide.live.stores.open_store import open_store
from eventide.service.config.settings import Access, Limits, Server
from eventide.service.http.dashboard import ASSETS
from eventide.service.http.reading_routes import follow
from eventide.service.http.tokens import add_token


@pytest.fixture
def city(tmp_path):
    with running(configuration(tmp_path)) as up:
        yield up


def released(up, step, name="city"):
    (line,) = (
        up.client("read").get(f"/v1/streams/{name}/releases", params={"first": step, "last": step}).json()["releases"]
    )
    return line


def test_events_become_a_release(city):
    receipt = city.post([event(), event("south", "bert"), event("south", "carla"), event("north", "anna", 1, 0)])
    assert receipt.json() == {"accepted": 4, "duplicate": False, "refused": {}, "events": []}
    city.pass_steps(2)
    assert released(city, 0)["values"] == [1, 2, 0]
    assert released(city, 1)["values"] == [1, 0, 0]
    assert released(city, 0)["start"] == "2026-01-01T00:00:00+00:00"


def test_each_person_counts_once_in_a_step(city):
    city.post([event(place, "anna") for place in ("north", "south", "south")])
    city.post([event("harbour", "anna"), event("north", "bert")])
    city.pass_steps()
    assert sum(released(city, 0)["values"]) == 2


def test_what_was_acknowledged_is_in_the_store(city, tmp_path):
    city.post([event(), event("south", "bert")])
    reader = open_store(tmp_path / "city.store", read_only=True)
    assert [step for step, _ in reader.kept()] == [0]
    reader.close()


def test_lines_of_json_are_read_like_an_array(city):
    body = "\n".join(json.dumps(each) for each in [event(), event("south", "bert")]) + "\n\n"
    headers = {"Content-Type": "application/x-ndjson; charset=utf-8"}
    answer = city.client("ingest").post("/v1/streams/city/events", content=body, headers=headers)
    assert answer.json()["accepted"] == 2


def test_bad_events_are_refused_one_by_one_and_the_others_count(city):
    bad = [
        event(),
        "no object",
        event("atlantis", "bert"),
        {"time": "noon-ish", "user": "secret-carla", "bin": "north"},
        event("north", None),
        event("north", "d" * 2000),
        event("south", "emil", 30),
        event("north", ["list"]),
        event("harbour", 17),
    ]
    answer = city.post(bad)
    assert answer.json() == {
        "accepted": 2,
        "duplicate": False,
        "refused": {
            "not a JSON object": 1,
            "bin is not in the list": 1,
            "time cannot be read": 1,
            "without a user": 2,
            "a field is too long": 1,
            "in the future": 1,
        },
        "events": [
            {"event": 1, "reason": "not a JSON object"},
            {"event": 2, "reason": "bin is not in the list"},
            {"event": 3, "reason": "time cannot be read"},
            {"event": 4, "reason": "without a user"},
            {"event": 5, "reason": "a field is too long"},
            {"event": 7, "reason": "without a user"},
        ],
    }
    assert "atlantis" not in answer.text
    assert "secret" not in answer.text
    city.pass_steps()
    assert released(city, 0)["values"] == [1, 0, 1]


def test_a_broken_line_spoils_only_itself(city):
    lines = [json.dumps(event()), "{", json.dumps(event("atlantis", "bert"))]
    headers = {"Content-Type": "application/x-ndjson"}
    answer = city.client("ingest").post("/v1/streams/city/events", content="\n".join(lines), headers=headers)
    assert answer.json()["accepted"] == 1
    assert [each["event"] for each in answer.json()["events"]] == [1, 2]


def test_an_event_without_the_field_of_bins_is_told_its_name(tmp_path):
    missing = "no bin in the field 'ward'"
    with running(configuration(tmp_path, [stream(tmp_path, bin="ward")])) as up:
        right = event() | {"ward": "north"}
        answer = up.post([right, event()]).json()
        assert (answer["accepted"], answer["refused"]) == (1, {missing: 1})
        assert answer["events"] == [{"event": 1, "reason": missing}]
        assert up.post([event()]).json()["refused"] == {missing: 1}
        assert up.post([right | {"ward": "atlantis"}]).json()["refused"] == {"bin is not in the list": 1}


def test_an_event_without_a_bin_is_one_of_the_others_where_those_count(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, other="else")])) as up:
        both = [{name: event()[name] for name in ("time", "user")}, event(user="bert")]
        assert (up.post(both).json()["accepted"], up.post(both[:1]).json()["accepted"]) == (2, 1)


def test_an_event_without_the_field_of_times_is_told_its_name(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, time="at")])) as up:
        right = event() | {"at": event()["time"]}
        answer = up.post([event(), right]).json()
        assert (answer["accepted"], answer["refused"]) == (1, {"no time in the field 'at'": 1})
        assert answer["events"] == [{"event": 0, "reason": "no time in the field 'at'"}]
        assert up.post([event()]).json()["refused"] == {"no time in the field 'at'": 1}
        assert up.post([right | {"at": "noon-ish"}]).json()["refused"] == {"time cannot be read": 1}


def test_a_batch_of_which_nothing_is_taken_is_a_problem_with_its_reasons(city):
    answer = city.post([event("atlantis", "secret-bert"), "no object", event("south", "emil", 30)], key="once")
    assert (answer.status_code, answer.headers["content-type"]) == (422, "application/problem+json")
    told = answer.json()
    assert (told["code"], told["status"], told["accepted"], told["duplicate"]) == ("all-refused", 422, 0, False)
    assert told["refused"] == {"bin is not in the list": 1, "not a JSON object": 1, "in the future": 1}
    assert [each["event"] for each in told["events"]] == [0, 1]
    assert "secret" not in answer.text
    assert city.post([]).status_code == 200
    city.post([event()], key="twice")
    assert city.post([event()], key="twice").status_code == 200


def test_late_events_are_refused_and_said_to_be_late(city):
    city.pass_steps(2)
    assert city.post([event(), event(minute=2)]).json()["refused"] == {"late": 1}


def test_a_batch_counts_once_however_often_it_is_sent(city):
    batch = [event(), event("south", "bert")]
    first, second = city.post(batch, key="monday-1"), city.post(batch, key="monday-1")
    assert (first.json()["accepted"], first.json()["duplicate"]) == (2, False)
    assert (second.json()["accepted"], second.json()["duplicate"]) == (0, True)
    city.post(batch[:1], key="monday-2")  # anna again, who counts once anyway
    city.post([event("harbour", "carla")], key="monday-3")
    city.pass_steps()
    assert released(city, 0)["values"] == [1, 1, 1]


def test_the_same_key_of_another_sender_is_another_key(city, tmp_path):

    city.post([event()], key="shared")
    city.tokens["ingest"] = add_token(tmp_path / "tokens", "ingest", "second")
    assert city.post([event("south", "bert")], key="shared").json()["accepted"] == 1


def test_an_idle_stream_releases_empty_steps(city):
    city.pass_steps(3)
    answer = city.client("read").get("/v1/streams/city/releases").json()
    assert [line["values"] for line in answer["releases"]] == [[0, 0, 0]] * 3
    assert answer["next"] is None


def test_releases_come_in_pages(city):
    city.pass_steps(7)
    client, seen, first = city.client("read"), [], 0
    while first is not None:
        answer = client.get("/v1/streams/city/releases", params={"first": first, "limit": 3}).json()
        seen.append([line["step"] for line in answer["releases"]])
        first = answer["next"]
    assert seen == [[0, 1, 2], [3, 4, 5], [6]]
    latest = client.get("/v1/streams/city/releases", params={"latest": 2}).json()
    assert [line["step"] for line in latest["releases"]] == [5, 6]
    ranged = client.get("/v1/streams/city/releases", params={"first": 2, "last": 3}).json()
    assert [line["step"] for line in ranged["releases"]] == [2, 3]
    assert client.get("/v1/streams/city/releases", params={"first": 99}).json() == {"releases": [], "next": None}


def test_releases_come_as_csv_and_arrow_and_of_some_bins(city):
    city.post([event(), event("south", "bert"), event("south", "carla")])
    city.pass_steps(2)
    client = city.client("read")
    asked = {"format": "csv", "bin": ["south", "north"]}
    table = pa_csv.read_csv(io.BytesIO(client.get("/v1/streams/city/releases", params=asked).content))
    assert table.column("south").to_pylist() == [2, 0]
    assert table.column("north").to_pylist() == [1, 0]
    assert "harbour" not in table.schema.names
    arrow = client.get("/v1/streams/city/releases", params={"format": "arrow", "limit": 1})
    assert arrow.headers["eventide-next"] == "1"
    assert pa.ipc.open_stream(arrow.content).read_all().column("south").to_pylist() == [2]
    part = client.get("/v1/streams/city/releases", params={"bin": "south"}).json()["releases"][0]
    assert (part["values"], part["start"]) == ([2], "2026-01-01T00:00:00+00:00")
    assert client.get("/v1/streams/city/releases", params={"bin": "atlantis"}).status_code == 404


def test_stored_releases_are_given_out_as_they_are_stored(city, tmp_path):
    city.post([event()])
    city.pass_steps()
    reader = open_store(tmp_path / "city.store", read_only=True)
    stored = reader.release(0)
    reader.close()
    assert stored in city.client("read").get("/v1/streams/city/releases").content


def followed(up, steps, **options):
    """The first server-sent events, as pairs of id and release."""
    seen = []
    with up.client("read").stream("GET", "/v1/streams/city/stream", **options) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        identity = None
        for line in answer.iter_lines():
            if line.startswith("id: "):
                identity = int(line[4:])
            if line.startswith("data: "):
                seen.append((identity, json.loads(line[6:])))
            if len(seen) == steps:
                break
    return seen


def test_followers_get_what_was_and_what_comes(city):
    city.pass_steps(2)
    seen = []
    follower = threading.Thread(target=lambda: seen.extend(followed(city, 4)))
    follower.start()
    city.post([event("south", "bert", 2)])
    city.pass_steps(2)
    follower.join(PATIENCE)
    assert [identity for identity, _ in seen] == [0, 1, 2, 3]
    assert [release["step"] for _, release in seen] == [0, 1, 2, 3]
    assert seen[2][1]["values"] == [0, 1, 0]


def test_a_follower_goes_on_where_it_was(city):
    city.pass_steps(4)
    assert [identity for identity, _ in followed(city, 2, headers={"Last-Event-ID": "1"})] == [2, 3]
    assert [identity for identity, _ in followed(city, 1, params={"first": 3})] == [3]
    assert city.client("read").get("/v1/streams/city/stream", headers={"Last-Event-ID": "x"}).status_code == 422


def test_the_ledger_shows_what_the_store_was_charged(city, tmp_path):
    city.pass_steps(7)
    ledger = city.client("read").get("/v1/streams/city/ledger").json()
    assert (ledger["epsilon"], ledger["window"], ledger["verified"]) == (1, 5, True)
    assert [each["in_window"] for each in ledger["history"]] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1, 1, 1])
    assert ledger["spent"] == pytest.approx(1)
    assert ledger["left"] == pytest.approx(0)
    reader = open_store(tmp_path / "city.store", read_only=True)
    assert sum(entry.amount for entry in reader.entries() if entry.step >= 2) == ledger["spent"] * 10**9
    reader.close()


def test_the_guarantee_states_the_total_over_all_streams_about_the_same_people(tmp_path):

    shares = {"a": Fraction("0.3"), "b": Fraction("0.5")}
    parts = [stream(tmp_path, name, population="people", epsilon=share) for name, share in shares.items()]
    with running(configuration(tmp_path, parts, populations={"people": Fraction(1)})) as up:
        told = up.client("read").get("/v1/streams/a/guarantee").json()
        assert (told["epsilon"], told["own"], told["private"]) == (1, 0.3, False)
        assert "with epsilon 1." in told["sentence"]
        assert "Of this epsilon 0.3 is for this stream, and the rest for b." in told["sentence"]
        assert told["sentence"].startswith("NOT PRIVATE")  # the noise of these tests is none
        assert up.service.streams["a"].publisher.store.epochs()[-1].guarantee == told["sentence"]


def test_streams_are_apart(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, "a"), stream(tmp_path, "b", bins=("x", "y"))])) as up:
        assert up.post([event()], "a").json()["accepted"] == 1
        assert up.post([event("x")], "b").json()["accepted"] == 1
        assert up.post([event("x")], "a").json()["accepted"] == 0
        up.pass_steps(1, "a")
        wait_until(lambda: up.service.streams["b"].notices.last == 0)
        assert released(up, 0, "a")["values"] == [1, 0, 0]
        assert released(up, 0, "b")["values"] == [1, 0]
        names = [each["name"] for each in up.client("read").get("/v1/streams").json()["streams"]]
        assert names == ["a", "b"]


def test_a_restart_goes_on_with_what_was_acknowledged(tmp_path):
    config = configuration(tmp_path)
    with running(config) as up:
        up.pass_steps()
        up.post([event("south", "bert", 1)], key="k")
    (tmp_path / "tokens").unlink()
    with running(config) as up:
        up.clock.set(up.service.streams["city"].feed.timeline.begin(1))
        assert up.service.streams["city"].notices.last == 0
        assert up.post([event("north", "carla", 1)], key="l").json()["accepted"] == 1
        up.pass_steps()
        assert released(up, 1)["values"] == [1, 1, 0]


def test_reading_can_be_opened_to_everybody_and_nothing_else_is(tmp_path):
    access = Access(tmp_path / "tokens", open_reading=True)
    with running(configuration(tmp_path, access=access)) as up:
        anybody = up.client()
        assert anybody.get("/v1/streams").status_code == 200
        assert anybody.get("/v1/access").json() == {"role": "read"}
        assert anybody.get("/v1/streams/city/operations").status_code == 401
        assert anybody.post("/v1/streams/city/events", json=[]).status_code == 401


def test_too_many_waiting_batches_are_sent_away_for_a_while(tmp_path):
    with running(configuration(tmp_path, limits=Limits(waiting_batches=1))) as up:
        feed, held, go = up.service.streams["city"].feed, threading.Event(), threading.Event()
        original = feed.take

        def slow(batch):
            if len(batch.events.time):
                held.set()
                go.wait(PATIENCE)
            original(batch)

        feed.take = slow
        threads = [threading.Thread(target=up.post, args=([event("north", str(n))],)) for n in range(2)]
        threads[0].start()
        assert held.wait(PATIENCE)
        threads[1].start()
        wait_until(lambda: feed.waiting == 1)
        answer = up.post([event("south", "late")])
        assert (answer.status_code, answer.json()["code"], answer.headers["retry-after"]) == (429, "busy", "1")
        go.set()
        for thread in threads:
            thread.join()
        up.pass_steps()
        assert released(up, 0)["values"] == [2, 0, 0]


def test_a_stream_that_fails_says_so_and_takes_nothing_more(city, caplog):
    city.service.streams["city"].publisher.store.commit = lambda commit: 1 / 0
    city.clock.set(city.service.streams["city"].feed.timeline.end(0))
    wait_until(lambda: city.service.streams["city"].failed)
    assert city.client().get("/readyz").status_code == 503
    assert city.client().get("/healthz").status_code == 503
    answer = city.post([event()])
    assert (answer.status_code, answer.json()["code"]) == (503, "closed")
    assert city.client("read").get("/v1/streams/city").json()["health"] == "failed"
    said = [record.getMessage() for record in caplog.records]
    assert said == ["stream city has stopped: unexpected ZeroDivisionError"]


def test_operators_see_figures_and_readers_do_not(city):
    city.post([event(), event("atlantis")])
    figures = city.client("operate").get("/v1/streams/city/operations").json()
    left_out, refused = {"left_out": 0, "left_out_by_cap": None}, {"bin is not in the list": 1}
    assert figures == {"accepted": 1, "late": 0, **left_out, "refused": refused, "waiting": 0}
    assert city.client("read").get("/v1/streams/city/operations").status_code == 403
    assert "raw_accepted_events_total" in city.client("operate").get("/metrics").text
    assert "events" not in city.client("read").get("/metrics").text


def test_figures_for_prometheus_are_those_of_the_stream(city):
    city.pass_steps(3)
    said = city.client("read").get("/metrics").text
    assert 'eventide_releases_total{stream="city"} 3.0' in said
    assert 'eventide_window_spent_ratio{stream="city"} 0.6' in said
    assert 'eventide_up{stream="city"} 1.0' in said


def test_readers_are_told_in_whole_steps_how_far_a_stream_is_behind(city):
    feed, held, go = city.service.streams["city"].feed, threading.Event(), threading.Event()
    feed.take = lambda batch: (held.set(), go.wait(PATIENCE))
    assert held.wait(PATIENCE)
    city.clock.set(feed.timeline.end(0) + 150_250_000)
    try:
        client = city.client("read")
        assert client.get("/v1/streams/city").json()["lag_seconds"] == 120
        assert client.get("/v1/streams").json()["streams"][0]["lag_seconds"] == 120
        assert 'eventide_lag_seconds{stream="city"} 120.0' in client.get("/metrics").text
        assert client.get("/v1/streams/city").json()["health"] == "behind"
    finally:
        go.set()


def test_the_page_and_its_files_are_served_by_us_alone(city):

    client = city.client()
    page = client.get("/").text
    for name in re.findall(r'(?:src|href)="([^"#]+)"', page):
        assert name.startswith("/assets/") or name == "/docs"
        assert client.get(name).status_code == 200
    policy = client.get("/").headers["content-security-policy"]
    assert "script-src 'self';" in policy
    assert "<script>" not in page
    tag = client.get("/assets/app.js").headers["etag"]
    assert client.get("/assets/app.js", headers={"If-None-Match": tag}).status_code == 304


def test_every_module_of_the_page_is_served(city):

    there = {file.name: file for file in (files("eventide.service") / "static").iterdir()}
    assert there.keys() == {*ASSETS, "index.html", "docs.html"} - {"plotly.js"}
    for name, file in there.items():
        if name.endswith(".js"):
            assert there.keys() >= set(re.findall(r'from "\./([^"]+)"', file.read_text()))


def test_a_table_can_be_long_with_the_columns_of_long_files(city):
    city.post([event(), event("south", "bert")])
    city.pass_steps(2)
    asked = {"format": "csv", "layout": "long", "bin": ["south", "north"]}
    lines = city.client("read").get("/v1/streams/city/releases", params=asked).text.splitlines()
    assert lines[0] == '"step","start","bin","value","low","high","scale","fresh"'.replace('"', "")
    assert [line.split(",")[2:4] for line in lines[1:]] == [
        ["south", "1"],
        ["north", "1"],
        ["south", "0"],
        ["north", "0"],
    ]
    assert city.client("read").get("/v1/streams/city/releases?format=csv").text.startswith("step,start,north,south")


def test_a_stream_tells_its_zone(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, zone="Europe/Berlin")])) as up:
        assert up.client("read").get("/v1/streams/city").json()["zone"] == "Europe/Berlin"


def test_the_description_is_there_and_names_the_refusals(city):
    description = city.client().get("/openapi.json").json()
    operation = description["paths"]["/v1/streams/{name}/events"]["post"]
    assert {"400", "401", "403", "413", "415", "429", "503"} <= operation["responses"].keys()
    assert "application/problem+json" in operation["responses"]["429"]["content"]
    assert set(operation["requestBody"]["content"]) == {"application/json", "application/x-ndjson"}


def test_tls_by_file(tmp_path):

    if shutil.which("openssl") is None:
        pytest.skip("needs openssl: install it with the system's package manager")
    certificate, key = tmp_path / "server.pem", tmp_path / "server.key"
    request = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
    request += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(request, check=True, capture_output=True)
    server = Server(port=0, certificate=str(certificate), key=str(key))
    with running(configuration(tmp_path, server=server)) as up:
        trusted = ssl.create_default_context(cafile=str(certificate))
        with httpx.Client(base_url=up.address, verify=trusted, trust_env=False, timeout=PATIENCE) as client:
            answer = client.get("/healthz")
    assert answer.json() == {"status": "ok"}
    assert "strict-transport-security" in answer.headers


def test_true_counts_are_told_of_synthetic_streams_only(city, tmp_path_factory):
    assert city.client("operate").get("/v1/streams/city/synthetic").status_code == 404
    assert "synthetic" not in str(list(city.client().get("/openapi.json").json()["paths"]))
    folder = tmp_path_factory.mktemp("synthetic")
    with running(configuration(folder), truth=lambda first: [(step, [1, 2, 3]) for step in range(first, 2)]) as up:
        assert up.client().get("/v1/streams/city/synthetic").status_code == 401
        told = up.client("read").get("/v1/streams/city/synthetic", params={"first": 1}).json()
        assert told == {"counts": [{"step": 1, "values": [1, 2, 3]}]}
        assert up.client("read").get("/v1/streams/city").json()["synthetic"]


def test_after_a_long_pause_batches_are_taken_between_the_steps_that_are_due(city):
    stream = city.service.streams["city"]
    city.clock.set(stream.feed.timeline.end(399))
    receipt = city.post([event("south", "bert", 6, 40) | {"time": "2026-01-01T06:40:00Z"}])
    assert receipt.json()["accepted"] == 1
    wait_until(lambda: stream.notices.last == 399)
    city.pass_steps()
    assert released(city, 400)["values"] == [0, 1, 0]


def test_steps_that_are_due_together_are_announced_when_they_are_durable(city, monkeypatch):
    stream, committed, announced = city.service.streams["city"], [], []
    store, notices = stream.publisher.store, stream.notices
    commit, announce = store.commit, notices.announce

    def committing(*commits):
        commit(*commits)
        committed.append([each.step for each in commits])

    def announcing(step):
        announced.append((step, committed[-1][-1]))
        announce(step)

    monkeypatch.setattr(store, "commit", committing)
    monkeypatch.setattr(notices, "announce", announcing)
    city.pass_steps(20)
    assert [len(steps) for steps in committed] == [8, 8, 4]
    assert all(told <= durable for told, durable in announced)


def test_a_smaller_epsilon_does_not_rewrite_what_was_promised_before(tmp_path):
    with running(configuration(tmp_path, [stream(tmp_path, epsilon=Fraction(2))])) as up:
        up.pass_steps(5)
    (tmp_path / "tokens").unlink()
    with running(configuration(tmp_path), new_epoch=True) as up:
        ledger, told = (up.client("read").get(f"/v1/streams/city/{what}") for what in ("ledger", "guarantee"))
        page = up.client("read").get("/v1/streams/city/guarantee.html").text
    assert [ledger.json()[name] for name in ("epsilon", "worst", "worst_of", "verified")] == [1, 2, 2, True]
    before = (
        "Of steps 0 to 4 (before 2026-01-01T00:05): epsilon 2 inside any 5 minutes (5 consecutive steps of 1 minute)."
    )
    assert before in told.json()["sentence"]
    assert before[1:-1] in page


def test_releases_over_other_bins_are_refused_and_no_empty_page(tmp_path):
    with running(configuration(tmp_path)) as up:
        up.pass_steps(3)
    (tmp_path / "tokens").unlink()
    more = stream(tmp_path, bins=("north", "south", "harbour", "quay"))
    with running(configuration(tmp_path, [more]), new_epoch=True) as up:
        up.clock.set(up.service.streams["city"].feed.timeline.end(4))
        wait_until(lambda: up.service.streams["city"].notices.last == 4)
        read = up.client("read").get
        before, whole = read("/v1/streams/city/releases?last=2"), read("/v1/streams/city/releases")
    assert (before.status_code, before.json()["code"]) == (404, "other-bins")
    assert "before step 3 have other bins" in before.json()["title"]
    assert [one["step"] for one in whole.json()["releases"]] == [3, 4]


def test_a_parameter_that_is_not_allowed_is_told_with_what_is(tmp_path):
    with running(configuration(tmp_path)) as up:
        misspelt = up.client("read").get("/v1/streams/city/releases?lates=3&_=17")
        passed = up.client("read").get("/v1/streams/city/releases?latest=3&_=17")
        told = up.client("read").get("/v1/streams/city/releases?latest=-1").json()["title"]
    assert (misspelt.status_code, "did you mean query.latest?" in misspelt.json()["title"]) == (422, True)
    assert passed.status_code == 200
    assert told == "not as the description asks: query.latest (Input should be greater than or equal to 1)"


def test_releases_that_are_there_are_sent_together(tmp_path):
    """One write at a time: so whoever has left is noticed before the next, and the log is not filled."""

    async def first_two(one):
        following = follow(one, 0, lambda: True)
        return [await anext(following), await anext(following)]

    with running(configuration(tmp_path)) as up:
        up.pass_steps(4)
        begin, releases = asyncio.run(first_two(up.service.streams["city"]))
    assert begin.startswith(b"retry: ")
    assert re.findall(rb"(?m)^id: (\d)$", releases) == [b"0", b"1", b"2", b"3"]
