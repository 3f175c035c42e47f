"""What a role without any grant sees of a store in PostgreSQL, that the operator is warned, and the way out that the
documents teach: analysts on a server of their own."""

import re
from pathlib import Path

import psycopg
import pytest
from postgres_server import PostgresServer
from running_service import configuration, event, running, stream

from eventide.live.stores.postgres_onlookers import onlookers
from eventide.service.config.start_check import remarks

pytestmark = pytest.mark.database

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "postgres.md"
RULES = "host all shown 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
ROWS = "SELECT n_tup_ins FROM pg_stat_all_tables WHERE schemaname = 'visits' AND relname = 'kept'"


@pytest.fixture(scope="module")
def servers():
    """That of the store, with a database of its own for it, and that of the analysts."""
    store, analysts = PostgresServer(), PostgresServer()
    (store.folder / "pg_hba.conf").write_text(RULES)
    yield store.start(), analysts.start()
    store.kill()
    analysts.kill()


def run(server, statements, database="postgres", user="eventide"):
    address = server.address.replace("eventide@", f"{user}@").replace("/postgres", f"/{database}")
    with psycopg.connect(address, autocommit=True) as connection:
        for statement in filter(str.strip, statements.split(";")):
            answer = connection.execute(statement)
    return answer.fetchall() if answer.description else None


def transaction(server, user):
    """The number that a row of one's own has, in whatever database one may use."""
    return run(server, "SELECT pg_current_xact_id()::text::bigint", "elsewhere", user)[0][0]


def test_every_role_of_the_server_counts_batches_until_it_may_not_connect(servers, tmp_path, caplog):
    server, analysts = servers
    run(server, "CREATE DATABASE city; CREATE DATABASE elsewhere; CREATE ROLE guest LOGIN")
    place = server.address.replace("/postgres", "/city#visits")
    config = configuration(tmp_path, [stream(tmp_path, store=place)])
    with running(config) as up:
        assert "may connect to city, elsewhere, postgres, template1" in caplog.text
        before = transaction(server, "guest")
        for number in range(5):
            up.post([event(user=str(number))])
        assert run(server, f"SELECT pg_stat_clear_snapshot(); {ROWS}", "city", "guest")
        assert transaction(server, "guest") >= before + 6  # this is what no REVOKE helps against
        up.pass_steps()
        assert remarks(config) == [onlookers(place)]
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(server, "SELECT * FROM visits.releases", "city", "guest")
        run(server, "REVOKE CONNECT ON DATABASE city, elsewhere, postgres, template1 FROM PUBLIC")
        for database in ("city", "elsewhere"):
            with pytest.raises(psycopg.OperationalError, match="permission denied"):
                run(server, "SELECT 1", database, "guest")
        assert onlookers(place) is None
        assert remarks(config) == []
        check_the_way_out(server, analysts)


def check_the_way_out(server, analysts):
    """What the page says, word for word: analysts see releases from their own server, and nothing of the store's."""
    of_store, of_analysts = (
        block for block in re.findall(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL) if "CREATE ROLE" in block
    )
    run(server, of_store.replace("'...'", "'secret'"), "city")
    made, of_analysts = of_analysts.split("\\connect analysis")
    run(analysts, made)
    of_analysts = of_analysts.replace("host 'store.example.org'", f"host '127.0.0.1', port '{server.port}'")
    run(analysts, of_analysts.replace("'...'", "'secret'"), "analysis")
    (found,) = run(analysts, "SELECT value FROM visits.releases WHERE bin = 'north'", "analysis", "anna")
    assert found == (5.0,)
    for closed in ("CREATE FOREIGN TABLE head (step bigint) SERVER store", "SELECT umoptions FROM pg_user_mapping"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            run(analysts, closed, "analysis", "anna")
    assert run(analysts, "SELECT umoptions FROM pg_user_mappings", "analysis", "anna") == [(None,)]
