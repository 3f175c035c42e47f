"""A PostgreSQL server that asks for a password over TLS: stores, verbs and populations, and no secret left anywhere."""

import dataclasses
import json
import os
import pwd
import shutil
from contextlib import closing

import psycopg
import pytest
from certificates import make_certificates
from click.testing import CliRunner
from population_lives import live, people
from postgres_server import PostgresServer

from eventide.cli import main
from eventide.errors import StoreError
from eventide.live.stores.open_store import open_store
from eventide.service.config.settings import Server

pytestmark = pytest.mark.database

CANARY = "canary-2d8"
RULES = """
host    all eventide 127.0.0.1/32 trust
hostssl all client   127.0.0.1/32 scram-sha-256
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """It knows a client by a password, over TLS only."""
    running = PostgresServer()
    certificates = make_certificates(tmp_path_factory.mktemp("authority"))
    for name in ("server.pem", "server.key"):
        shutil.copy(certificates / name, running.folder / name)
        if running.user:
            os.chown(running.folder / name, pwd.getpwnam("postgres").pw_uid, -1)
    (running.folder / "server.key").chmod(0o600)
    (running.folder / "pg_hba.conf").write_text(RULES)
    with (running.folder / "postgresql.conf").open("a") as settings:
        settings.write("ssl = on\nssl_cert_file = 'server.pem'\nssl_key_file = 'server.key'\n")
    running.start()
    with psycopg.connect(running.address) as connection:
        connection.execute(f"CREATE ROLE client LOGIN PASSWORD '{CANARY}'")
        connection.execute("GRANT CREATE ON DATABASE postgres TO client")
    running.authority = certificates / "ca.pem"
    yield running
    running.kill()


@pytest.fixture
def address(server):
    return server.address.replace("eventide@", "client@")


@pytest.fixture
def clients(server, tmp_path, monkeypatch):
    """A file of client settings, whose password is in the environment."""
    monkeypatch.setenv("CITY_PASSWORD", CANARY)
    path = tmp_path / "clients.toml"
    path.write_text(
        "[postgres]\npassword = { env = 'CITY_PASSWORD' }\nsslmode = 'verify-full'\n"
        f"sslrootcert = '{server.authority}'\nrequire_auth = 'scram-sha-256'\n"
    )
    path.chmod(0o600)
    return path


def everything(server, schema):
    """All that a schema holds, as text; binary columns in hexadecimal digits."""
    with psycopg.connect(server.address) as connection:
        tables = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s AND table_type = 'BASE TABLE'",
            (schema,),
        ).fetchall()
        assert tables
        rows = [connection.execute(f'SELECT t::text FROM "{schema}"."{name}" t').fetchall() for (name,) in tables]
    return str(rows)


def holds_canary(text):
    return CANARY in text or CANARY.encode().hex() in text


def test_a_store_behind_a_password_and_tls(address, clients):
    with pytest.raises(StoreError, match=r"cannot be opened.*the password or TLS in the settings of its client"):
        open_store(f"{address}#alone")
    open_store(f"{address}#alone", clients=clients).close()
    with closing(open_store(f"{address}#alone", read_only=True, clients=clients)) as store:
        assert store.next_step() == 0


def test_another_authority_is_not_trusted(address, clients, tmp_path):
    make_certificates(tmp_path)
    clients.write_text(f"[postgres]\npassword = '{CANARY}'\nsslmode = 'verify-full'\nsslrootcert = 'ca.pem'\n")
    with pytest.raises(StoreError, match="cannot be opened") as problem:
        open_store(f"{address}#mistrusted", clients=clients)
    assert not holds_canary(str(problem.value))


def publishing(store, *more):
    words = ["publish", "counts.csv", "--epsilon", "1", "--window", "2", "--mechanism", "uniform", "--json"]
    return [*words, "--store", store, "--out", "out.jsonl", "--log", "json", *more]


@pytest.mark.parametrize("way", ["option", "variable"])
def test_verbs_take_the_file_and_leave_no_secret(server, address, clients, tmp_path, monkeypatch, way):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("a,b\n1,2\n3,4\n")
    store, runner = f"{address}#run_{way}", CliRunner()
    more = ["--clients", str(clients)] if way == "option" else []
    if way == "variable":
        assert runner.invoke(main, publishing(store)).exit_code == 5
        monkeypatch.setenv("EVENTIDE_CLIENTS", str(clients))
    done = runner.invoke(main, publishing(store, *more))
    assert done.exit_code == 0, done.output
    monkeypatch.setenv("EVENTIDE_CLIENTS", str(clients))
    ledger = runner.invoke(main, ["ledger", store, "--json"])
    export = runner.invoke(main, ["export", store, "--out", "all.csv"])
    assert (ledger.exit_code, export.exit_code) == (0, 0)
    said = done.output + ledger.output + export.output
    assert "Warning" not in said
    written = [file.read_bytes().decode("latin-1") for file in tmp_path.iterdir()]
    assert not any(map(holds_canary, [said, everything(server, f"run_{way}"), *written]))


def test_a_password_in_an_address_still_works_and_is_warned_of(server, address, tmp_path, monkeypatch):
    """Also where it stands among the options of the address."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "counts.csv").write_text("a,b\n1,2\n3,4\n")
    runner = CliRunner()
    for store in (address.replace("@", f":{CANARY}@") + "#shown", f"{address}?password={CANARY}#shown"):
        done, ledger = runner.invoke(main, publishing(store)), runner.invoke(main, ["ledger", store])
        assert (done.exit_code, ledger.exit_code) == (0, 0), done.output
        for said in (done, ledger):
            assert "Warning: the postgresql:// address holds a password" in said.stderr
            assert not holds_canary(said.output)
        assert json.loads(done.stdout)["store"] == f"{address}#shown"
    assert not holds_canary(everything(server, "shown"))


def test_a_population_in_a_database_with_a_password(server, address, clients, tmp_path):
    """Its record is read and written with the settings, and a store that is gone is read with them as well."""
    streams = {name: {"store": f"{address}#secured_{name}", "epsilon": 0.5, "mechanism": "uniform"} for name in "ab"}
    secured = Server(clients=str(clients))
    both = dataclasses.replace(people(tmp_path, streams), server=secured)
    live(both, 5)
    alone = dataclasses.replace(people(tmp_path, {"b": streams["b"]}), server=secured)
    live(alone, 6)
    record = everything(server, "eventide_populations")
    assert "secured_a" in record
    assert not holds_canary(record)


def test_a_password_among_options_is_not_written_down_with_a_population(server, address, tmp_path):
    store = f"{address}?password={CANARY}#optional"
    live(people(tmp_path, {"a": {"store": store, "epsilon": 1, "mechanism": "uniform"}}), 3)
    record = everything(server, "eventide_populations")
    assert "optional" in record
    assert not holds_canary(record)
