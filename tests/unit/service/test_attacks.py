"""Whoever comes with bad intentions gets the right refusal, and the service goes on."""

from __future__ import annotations

import contextlib
import functools
import gc
import gzip
import json
import socket
import threading
import time

import httpx
import pytest
from running_service import PATIENCE, configuration, event, running, stream, wait_until

from eventide.service import service
from eventide.service.config.settings import Limits, Server
from eventide.service.connections import Connections
from eventide.service.http import ingest
from eventide.service.http.access import RequestRate

EVENTS = "/v1/streams/city/events"
OF_A_STREAM = ("", "/bins", "/guarantee", "/ledger", "/releases", "/stream")
READABLE = ("/v1/access", "/v1/streams", "/metrics", *(f"/v1/streams/city{rest}" for rest in OF_A_STREAM))
WRONG_HEADERS = ["Bearer wrong", "Bearer", "Basic cmVhZDpyZWFk", "bearer " + "x" * 5000, "\x7f"]
NASTY = '<img src=x onerror="alert(1)">'


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("attacked")
    limits = Limits(body_megabytes=1, requests_per_second=500, connections=40)
    with running(configuration(folder, [stream(folder, bins=("north", NASTY))], limits=limits)) as up:
        yield up


@pytest.fixture(autouse=True)
def still_there(city):
    """After each attack the service answers as before."""
    yield
    wait_until(lambda: city.post([event()]).status_code == 200)


def problem(answer):
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return answer.status_code, answer.json()["code"]


@contextlib.contextmanager
def silent(address, number):
    """Connections on which nothing is ever said."""
    host, port = address.removeprefix("http://").split(":")
    held = [socket.create_connection((host, int(port))) for _ in range(number)]
    try:
        yield
    finally:
        for connection in held:
            connection.close()


def raw(city, *parts, pause=0.0):
    """What the service answers to these bytes, until it closes the connection."""
    host, port = city.address.removeprefix("http://").split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=PATIENCE) as connection:
        with contextlib.suppress(ConnectionError):  # it may hang up while we are talking
            for part in parts:
                connection.sendall(part)
                time.sleep(pause)
        with contextlib.suppress(ConnectionError):
            while more := connection.recv(65536):
                answer += more
    return answer


@pytest.mark.parametrize("path", READABLE)
def test_without_a_token_nothing_is_told(city, path):
    answer = city.client().get(path)
    assert problem(answer) == (401, "no-token")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize("header", WRONG_HEADERS)
@pytest.mark.parametrize("path", [READABLE[0], EVENTS])
def test_a_wrong_token_is_no_token(city, header, path):
    call = city.client().post if path == EVENTS else city.client().get
    answer = call(path, headers={"Authorization": header})
    assert problem(answer) == (401, "no-token")
    assert ("not known" if header.lower().startswith("bearer ") else "needs a token") in answer.json()["title"]


def test_a_token_in_the_address_is_no_token(city):
    token = city.tokens["read"]
    answer = city.client().get("/v1/streams", params={"token": token, "access_token": token})
    assert answer.status_code == 401


@pytest.mark.parametrize(
    ("role", "path"),
    [("read", EVENTS), ("operate", EVENTS)]
    + [("ingest", path) for path in READABLE]
    + [("read", "/v1/streams/city/operations"), ("ingest", "/v1/streams/city/operations")],
)
def test_a_token_opens_its_own_door_only(city, role, path):
    call = city.client(role).post if path == EVENTS else city.client(role).get
    answer = call(path)
    assert problem(answer) == (403, "wrong-token")


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/%2e%2e/tokens",
        "/assets/....//app.py",
        "/assets//etc/passwd",
        "/assets/app.js%00.html",
        "/assets/app.js/",
        "/v1/streams/../streams/city",
        "/v1/streams/%2e%2e",
        "/v1//streams",
        "//etc/passwd",
        "/redoc",
        "/tokens",
        "/city.store",
    ],
)
def test_tricks_with_paths_lead_nowhere(city, path):
    token = city.tokens["operate"]
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    answer = raw(city, head.encode())
    assert answer.split(b"\r\n")[0] in (b"HTTP/1.1 404 Not Found", b"HTTP/1.1 400 Bad Request")
    assert b"import" not in answer
    assert b"root:" not in answer


def test_a_gigabyte_is_refused_before_it_is_read(city):
    head = (
        f"POST {EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {city.tokens['ingest']}\r\n"
        "Content-Type: application/json\r\nContent-Length: 1000000000\r\n\r\n"
    )
    answer = raw(city, head.encode(), b"[" * 1000)
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer.lower()


def test_a_body_without_a_length_is_cut_where_it_is_too_large(city):
    head = (
        f"POST {EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {city.tokens['ingest']}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    chunk = b"%x\r\n%s\r\n" % (100_000, b" " * 100_000)
    answer = raw(city, head.encode(), *[chunk] * 11)
    assert answer.startswith(b"HTTP/1.1 413")


def test_a_slow_body_is_given_up(tmp_path):
    with running(configuration(tmp_path, limits=Limits(body_seconds=1))) as up:
        head = (
            f"POST {EVENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {up.tokens['ingest']}\r\n"
            "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        )
        answer = raw(up, head.encode(), *[b" "] * 6, pause=0.2)
    assert answer.startswith(b"HTTP/1.1 408")


def test_headers_that_never_end_are_given_up(tmp_path):
    with running(configuration(tmp_path), header_seconds=0.5) as up:
        assert raw(up, b"GET / HTTP/1.1\r\n", *[b"X-Slow: 1\r\n"] * 8, pause=0.2) == b""
        assert raw(up) == b""  # nor is silence waited for


def test_a_flood_of_headers_is_refused(city):
    answer = raw(city, b"GET / HTTP/1.1\r\nHost: x\r\n", *[b"X-%d: %s\r\n" % (n, b"y" * 1000) for n in range(100)])
    assert answer.startswith(b"HTTP/1.1 400") or answer == b""
    assert b"yyyy" not in answer


def test_a_decompression_bomb_is_not_opened(city):
    bomb = gzip.compress(b" " * 50_000_000)
    assert len(bomb) < 1_000_000
    headers = {"Content-Type": "application/json", "Content-Encoding": "gzip"}
    assert problem(city.client("ingest").post(EVENTS, content=bomb, headers=headers)) == (415, "compressed")


@pytest.mark.parametrize("key", ["", "x" * 201, "two words", "tab\there", "\x7f", "\xe9"])
def test_a_forged_key_is_refused(city, key):
    headers = {"Idempotency-Key": key.encode("latin-1")}
    assert problem(city.client("ingest").post(EVENTS, json=[event()], headers=headers)) == (400, "bad-key")


@pytest.mark.parametrize(
    ("content", "kind", "expected"),
    [
        (b"", "application/json", (400, "malformed")),
        (b"{", "application/json", (400, "malformed")),
        (b"{}", "application/json", (400, "malformed")),
        (b"null", "application/json", (400, "malformed")),
        (b"[" * 100_000, "application/json", (400, "malformed")),
        (b"\xff\xfe", "application/json", (400, "malformed")),
        (b"NaN", "application/json", (400, "malformed")),
        (b"[]", "text/plain", (415, "wrong-type")),
        (b"[]", "", (415, "wrong-type")),
        (b"a=b", "application/x-www-form-urlencoded", (415, "wrong-type")),
    ],
)
def test_a_body_that_is_no_batch_is_refused(city, content, kind, expected):
    headers = {"Content-Type": kind} if kind else {}
    assert problem(city.client("ingest").post(EVENTS, content=content, headers=headers)) == expected


@pytest.mark.parametrize(
    "strange",
    [
        {},
        {"time": {"$gt": ""}, "user": "a", "bin": "north"},
        {"time": 1e300, "user": "a", "bin": "north"},
        {"time": -1, "user": "a", "bin": "north"},
        {"time": True, "user": "a", "bin": "north"},
        {"time": "9999-12-31T23:59:59Z", "user": "a", "bin": "north"},
        {"time": "0001-01-01T00:00:00Z", "user": "a", "bin": "north"},
        {"time": "2026-01-01T00:00:10Z", "user": "", "bin": "north"},
        {"time": "2026-01-01T00:00:10Z", "user": {"a": 1}, "bin": "north"},
        {"time": "2026-01-01T00:00:10Z", "user": "a", "bin": ["north"]},
        {"time": "2026-01-01T00:00:10Z", "user": "a", "bin": None},
        {"time": "2026-01-01T00:00:10Z", "user": "a", "bin": "'; DROP TABLE step; --"},
        [],
        3,
        None,
    ],
)
def test_a_strange_event_is_refused_and_its_neighbour_counts(city, strange):
    answer = city.post([strange, event("north", "neighbour")])
    assert answer.status_code == 200
    assert answer.json()["accepted"] == 1
    assert sum(answer.json()["refused"].values()) == 1


@pytest.mark.parametrize("user", [rb"\u0000", rb"\ud800", rb"\u202e", rb"\uffff"])
def test_strange_characters_do_no_harm(city, user):
    body = rb'[{"time": "2026-01-01T00:00:10Z", "user": "%s", "bin": "north"}]' % user
    answer = city.client("ingest").post(EVENTS, content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in (200, 400, 422)


def test_html_in_names_stays_text(city):
    city.post([event(NASTY, "mallory")])
    for path in ("/v1/streams/city/bins", "/v1/streams/city/releases?format=csv"):
        answer = city.client("read").get(path)
        assert answer.headers["content-type"].split(";")[0] in ("application/json", "text/csv")
        assert answer.headers["x-content-type-options"] == "nosniff"
    assert NASTY not in city.client().get("/").text


@pytest.mark.parametrize(
    "parameters",
    [{"first": -1}, {"first": 2**60}, {"limit": 0}, {"limit": 10**9}, {"format": "exe"}, {"first": "zzz"}],
)
def test_parameters_out_of_range_are_refused_without_an_echo(city, parameters):
    answer = city.client("read").get("/v1/streams/city/releases", params=parameters)
    assert problem(answer) == (422, "invalid-parameter")
    ((name, given),) = parameters.items()
    allowed = answer.json()["title"].removeprefix(f"not as the description asks: query.{name} (")
    assert allowed.startswith("Input should be ")
    assert str(given) not in allowed.replace("than or equal to 0", "")


def test_other_origins_are_not_let_in(city):
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "GET"}
    answer = city.client("read").get("/v1/streams", headers=origin)
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert city.client().options("/v1/streams", headers=origin).status_code == 405


@pytest.mark.parametrize("path", ["/", "/assets/app.js", "/healthz", "/v1/streams", "/nowhere", "/openapi.json"])
def test_every_answer_carries_the_security_headers(city, path):
    headers = city.client().get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "server" not in headers


def test_too_many_requests_are_slowed_down(tmp_path, monkeypatch):
    within_a_moment = functools.partial(RequestRate, clock=lambda: 0.0)
    monkeypatch.setattr(service, "RequestRate", within_a_moment)
    with running(configuration(tmp_path, limits=Limits(requests_per_second=5))) as up:
        reader, ingester = up.client("read"), up.client("ingest")
        answers = [reader.get("/v1/access") for _ in range(30)]
        refused = [answer for answer in answers if answer.status_code == 429]
        assert len(refused) == 25
        assert problem(refused[0]) == (429, "too-many-requests")
        assert refused[0].headers["retry-after"] == "1"
        assert ingester.post(EVENTS, json=[event()]).status_code == 200  # others are not held back


def test_too_many_connections_are_turned_away(tmp_path):
    config = configuration(tmp_path, limits=Limits(connections=5, connections_per_address=50))
    with running(config, header_seconds=PATIENCE) as up:  # so that silent ones stay
        with silent(up.address, 8):
            wait_until(lambda: up.client("read").get("/v1/streams").status_code == 503)
            assert problem(up.client("read").get("/v1/streams")) == (503, "too-many-connections")
            for check in ("/healthz", "/readyz", "/readyz/city"):
                assert up.client().get(check).status_code == 200
        wait_until(lambda: up.client("read").get("/v1/streams").status_code == 200)


def test_one_address_cannot_take_the_places_of_others(tmp_path):
    config = configuration(tmp_path, server=Server(port=0, health_port=0))
    with running(config, header_seconds=PATIENCE) as up, silent(up.address, 205):
        with pytest.raises(httpx.HTTPError):  # hung up on, perhaps before the answer could be read
            httpx.get(f"{up.address}/healthz", trust_env=False).raise_for_status()
        elsewhere = httpx.HTTPTransport(local_address="127.0.0.9")
        with httpx.Client(transport=elsewhere, base_url=up.address, headers=up.client("read").headers) as other:
            assert other.get("/healthz").status_code == 200
            assert other.get("/v1/streams").status_code == 200
        for check in ("/healthz", "/readyz", "/readyz/city"):
            assert httpx.get(up.health_address + check, trust_env=False).status_code == 200


def test_health_checks_are_answered_while_the_other_port_is_kept_busy(tmp_path, monkeypatch):
    """As by a flood of connections, of which each takes a moment: here one takes as long as the test wants."""
    busy, over, enter = threading.Event(), threading.Event(), Connections.enter

    def keeping_busy(self, address):
        if address == "127.0.0.9":
            busy.set()
            over.wait()
        return enter(self, address)

    monkeypatch.setattr(Connections, "enter", keeping_busy)
    with running(configuration(tmp_path, server=Server(port=0, health_port=0))) as up:
        try:
            port = int(up.address.rpartition(":")[2])
            with socket.create_connection(("127.0.0.1", port), source_address=("127.0.0.9", 0)):
                assert busy.wait(PATIENCE)
                for check in ("/healthz", "/readyz", "/readyz/city"):
                    assert httpx.get(up.health_address + check, trust_env=False).status_code == 200
                up.service.pulse.longest_pause = 0  # then it is called dead
                assert problem(httpx.get(up.health_address + "/healthz", trust_env=False)) == (503, "stalled")
        finally:
            over.set()
        up.service.pulse.longest_pause = PATIENCE
        assert up.client().get("/healthz").status_code == 200


def test_the_port_for_health_checks_tells_nothing_else(tmp_path):
    config = configuration(tmp_path, server=Server(port=0, health_port=0))
    with running(config) as up:
        for path in (*READABLE, "/", "/openapi.json", "/assets/app.js"):
            headers = {"Authorization": f"Bearer {up.tokens['operate']}"}
            answer = httpx.get(up.health_address + path, headers=headers, trust_env=False)
            assert (answer.status_code, answer.json()["code"]) == (404, "not-found")


def test_a_body_of_many_small_values_is_read_in_one_go():
    """The garbage collector looks at all of them whenever some hundred were made, if nothing keeps it from that."""
    begun = []

    def note(phase, info):
        begun.append(phase)

    gc.callbacks.append(note)
    try:
        for body in (b"[" + b"[]," * 200_000 + b"[]]", b"[" + b"[]," * 200_000 + b"1e400]"):
            assert len(ingest._array(body)) == 200_001
    finally:
        gc.callbacks.remove(note)
    assert len(begun) < 50
    assert gc.isenabled()


def test_too_many_events_are_refused_before_they_are_looked_at(city):
    for kind, body in (
        ("application/json", b"[" + b"{}," * 200_000 + b"{}]"),
        ("application/x-ndjson", b"{}\n" * 200_000),
    ):
        answer = city.client("ingest").post(EVENTS, content=body, headers={"Content-Type": kind})
        assert problem(answer) == (413, "too-many-events")


@pytest.mark.parametrize("field", ["time", "user", "bin"])
@pytest.mark.parametrize(
    ("strange", "reason"),
    [
        ("1e400", "a number is out of range"),
        ("-1e999", "a number is out of range"),
        *((word, "a number is out of range") for word in ("NaN", "Infinity", "-Infinity")),  # which Python writes
        ("9" * 5_000, "a number is out of range"),
        (r'"\ud800"', "a text has half a character"),
    ],
)
def test_a_number_that_cannot_be_is_refused_alone(city, field, strange, reason):
    good = json.dumps(event("north", "neighbour"))
    parts = {"time": '"2026-01-01T00:00:10Z"', "user": '"a"', "bin": '"north"'} | {field: strange}
    bad = "{" + ", ".join(f'"{name}": {value}' for name, value in parts.items()) + "}"
    for kind, body in (("application/json", f"[{good}, {bad}]"), ("application/x-ndjson", f"{good}\n{bad}")):
        answer = city.client("ingest").post(EVENTS, content=body, headers={"Content-Type": kind})
        assert answer.json()["refused"] == {reason: 1}
        assert (answer.json()["accepted"], answer.json()["events"]) == (1, [{"event": 1, "reason": reason}])
        unread = body.replace(bad, good[:-1] + f', "speed": {strange}}}')
        answer = city.client("ingest").post(EVENTS, content=unread, headers={"Content-Type": kind})
        assert answer.json()["accepted"] == 2  # in a field that nobody reads


def test_by_default_only_this_machine_can_come_in():
    assert Server().host == "127.0.0.1"


def test_an_unexpected_fault_says_nothing(city, caplog):
    stream = city.service.streams["city"]
    before, stream.windows = stream.windows, lambda: {}["anna was in the harbour"]
    try:
        answer = city.client("read").get("/v1/streams/city/ledger")
    finally:
        stream.windows = before
    assert problem(answer) == (500, "unexpected")
    assert "anna" not in answer.text
    wait_until(lambda: "KeyError" in caplog.text)
    assert "anna" not in json.dumps([record.getMessage() for record in caplog.records])
    assert not any(record.exc_info for record in caplog.records)
