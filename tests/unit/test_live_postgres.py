"""A store in a real PostgreSQL server keeps the promises of one in a file, also when the server is killed."""

import json
import threading
import time

import psycopg
import pytest
from live_stores import SETTING, a_commit, changes
from postgres_server import PostgresServer

import eventide as ev
from eventide.errors import InputError, StateError, StoreError
from eventide.live import answering
from eventide.live.memory_feed import MemoryFeed
from eventide.live.open_store import open_store
from eventide.live.verification import verify

pytestmark = pytest.mark.database


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = PostgresServer(tmp_path_factory.mktemp("postgres")).start()
    yield running
    running.kill()


@pytest.fixture
def address(server, request):
    """A store of its own for each test."""
    return f"{server.address}#s{abs(hash(request.node.name))}"


@pytest.fixture
def opened(address):
    stores = []

    def open_again(**options):
        stores.append(open_store(address, **options))
        return stores[-1]

    yield open_again
    for store in stores:
        store.close()


def test_what_was_committed_is_there_again(opened):
    store = opened()
    standing = store.begin(SETTING)
    assert (standing.next_step, standing.snapshot, standing.last_release) == (0, None, None)
    for step in range(5):
        store.commit(a_commit(step, snapshot=b"state" if step == 2 else None))
    store.deliver("a sink", 3)
    store.deliver("a sink", 4)
    key = standing.key
    store.close()
    again = opened()
    standing = again.begin(SETTING)
    assert (standing.next_step, standing.key, standing.snapshot) == (5, key, b"state")
    assert standing.tapes == [b"tape 3", b"tape 4"]
    assert standing.position == {"offset": 4}
    assert [step for step, _ in again.releases()] == [0, 1, 2, 3, 4]
    assert [entry.amount for entry in again.entries()] == [100] * 5
    assert again.delivered("a sink") == 4
    again.verify()


def test_events_are_kept_once_and_erased_with_their_step(opened):
    store = opened()
    store.begin(SETTING)
    assert store.keep([(0, b"one"), (1, b"two")], "first")
    assert not store.keep([(0, b"one")], "first")
    assert store.keep([(1, b"three")])
    store.commit(a_commit(0))
    assert store.kept() == [(1, b"two"), (1, b"three")]


def test_a_second_writer_is_refused_and_a_taken_over_one_commits_nothing(opened):
    first, second = opened(), opened()
    first.begin(SETTING)
    first.commit(a_commit(0))
    with pytest.raises(StoreError, match="another process"):
        second.begin(SETTING)
    assert second.begin(SETTING, take_over=True).next_step == 1
    for change in changes(first):
        with pytest.raises(StoreError, match="taken over"):
            change()
    second.commit(a_commit(1))


def test_another_setting_is_refused_or_a_new_epoch_that_waits(opened):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    store.close()
    store = opened()
    with pytest.raises(InputError, match="window"):
        store.begin(SETTING._replace(window=5))
    standing = store.begin(SETTING._replace(window=5), new_epoch=True)
    assert (standing.next_step, standing.measured_from) == (1, 5)
    with pytest.raises(StateError, match="nothing may be measured"):
        store.commit(a_commit(1))


def test_after_a_restore_the_last_window_counts_as_spent(opened):
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    standing = store.after_restore(7)
    assert (standing.next_step, standing.measured_from) == (7, 9)


def test_readers_change_nothing(opened, address):
    with pytest.raises(InputError, match="there is no store"):
        open_store(address, read_only=True)
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    reader = opened(read_only=True)
    assert reader.release(0) == b'{"step": 0}'
    with pytest.raises(StateError, match="only the writer"):
        reader.commit(a_commit(1))


def test_a_changed_row_is_found(opened, address, server):
    store = opened()
    store.begin(SETTING)
    for step in range(3):
        store.commit(a_commit(step))
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute(f"UPDATE {address.partition('#')[2]}.step SET release = 'x' WHERE step = 1")
    with pytest.raises(StoreError, match="step 1"):
        store.verify()


@pytest.mark.parametrize(
    ("url", "error", "message"),
    [
        ("postgresql://nobody@127.0.0.1:1/none", StoreError, "cannot be opened"),
        ("postgresql://h/d#a;b", InputError, "letters and digits"),
        ("mysql://h/d", InputError, "postgresql"),
    ],
)
def test_a_wrong_address_is_refused(url, error, message):
    with pytest.raises(error, match=message):
        open_store(url)


def test_a_schema_that_is_something_else_is_left_alone(server):
    with psycopg.connect(server.address, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA someone")
    with pytest.raises(StoreError, match="no store of eventide"):
        open_store(f"{server.address}#someone")


def test_analysts_see_releases_bin_by_bin(opened, address, server):
    store = opened(for_tests=True)
    mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
    with ev.Publisher(MemoryFeed([[3, 5], [4, 4]]), mechanism, store) as publisher:
        publisher.run()
    with psycopg.connect(server.address) as connection:
        query = f"SELECT step, bin, value, scale, fresh FROM {address.partition('#')[2]}.releases ORDER BY step, bin"
        rows = connection.execute(query).fetchall()
    assert rows == [
        (0, "north", 3, 2, True),
        (0, "south", 5, 2, True),
        (1, "north", 4, 2, True),
        (1, "south", 4, 2, True),
    ]


def test_answers_go_on_over_restarts_and_analysts_see_them(opened, address, server, monkeypatch):
    monkeypatch.setattr(answering, "SNAPSHOT_EVERY", 3)
    counts = [[step, 10 * step] for step in range(9)]
    for until in (2, 4, 5, 9):
        mechanism = ev.Uniform(epsilon=1, window=2, bins=["north", "south"], noise=ev.noise.Zero())
        asked = ev.Questions((ev.Query(4, 2, "four"),), 1)
        with ev.Publisher(MemoryFeed(counts), mechanism, opened(for_tests=True), questions=asked) as publisher:
            publisher.run(until=until)
    with psycopg.connect(server.address) as connection:
        columns = "step, query, begin_step, end_step, bin, value"
        query = f"SELECT {columns} FROM {address.partition('#')[2]}.answers ORDER BY step, bin"
        rows = connection.execute(query).fetchall()
    expected = [(begin, size, name) for begin in (0, 2, 4) for size, name in ((1, "north"), (10, "south"))]
    assert rows == [
        (begin + 3, "four", begin, begin + 4, name, size * sum(range(begin, begin + 4)))
        for begin, size, name in expected
    ]


@pytest.mark.parametrize("arrived", [True, False], ids=["answer lost", "commit lost"])
def test_a_commit_whose_answer_was_lost_is_settled_by_reading(opened, monkeypatch, arrived):
    """
    commit sent ──▶ server has it ──✂── answer        the row is there: nothing is written again
    commit sent ──✂── server                          it is not: the same row is written, nothing is drawn
    """
    store = opened()
    store.begin(SETTING)
    store.commit(a_commit(0))
    connection = store._database._connection
    real, cut = connection.transaction, []

    class CutOff:
        def __enter__(self):
            self.inner = real()
            return self.inner.__enter__()

        def __exit__(self, *problem):
            if cut:
                return self.inner.__exit__(*problem)
            cut.append(True)
            if arrived:
                self.inner.__exit__(None, None, None)
            connection.close()
            raise psycopg.OperationalError("the connection was lost")

    monkeypatch.setattr(connection, "transaction", CutOff)
    store.commit(a_commit(1))
    assert cut
    assert [step for step, _ in store.releases()] == [0, 1]
    store.commit(a_commit(2))
    store.verify()


def test_kept_events_whose_answer_was_lost_are_not_doubled(opened, monkeypatch):
    store = opened()
    store.begin(SETTING)
    connection = store._database._connection
    real, cut = connection.transaction, []

    class CutOff:
        def __enter__(self):
            self.inner = real()
            return self.inner.__enter__()

        def __exit__(self, *problem):
            result = self.inner.__exit__(*problem)
            if not cut:
                cut.append(True)
                connection.close()
                raise psycopg.OperationalError("the connection was lost")
            return result

    monkeypatch.setattr(connection, "transaction", CutOff)
    assert store.keep([(0, b"one")], "batch")
    assert store.kept() == [(0, b"one")]


def test_publishing_goes_on_when_the_server_is_killed_and_comes_back(tmp_path):
    server = PostgresServer(tmp_path).start()
    mechanism = ev.BudgetAbsorption(epsilon=1, window=5, bins=3)
    done = threading.Event()
    kills = 0
    with ev.Publisher(MemoryFeed([[5, 6, 7]] * 400), mechanism, f"{server.address}#killed") as publisher:

        def publish():
            publisher.run(stop=lambda: time.sleep(0.005) or False)
            done.set()

        worker = threading.Thread(target=publish)
        worker.start()
        for _ in range(4):
            if done.wait(0.4):
                break
            server.kill()
            server.start()
            kills += 1
        worker.join(120)
        assert done.is_set()
        assert kills >= 2
        steps = [json.loads(release)["step"] for _, release in publisher.store.releases()]
        assert steps == list(range(400))
        found = verify(publisher.store.entries(), publisher.store.epochs(), publisher.store.next_step())
        assert found.holds
        publisher.store.verify()
    server.kill()
