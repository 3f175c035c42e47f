"""The page for people who must sign: what it says of a store and of an account, and that it is verified."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from account_lives import forge_weight
from click.testing import CliRunner

import eventide as ev
from eventide.cli import main
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.windows import Terms
from eventide.live.guarantee.promise import part_of_stream
from eventide.live.stores.open_store import open_store


def written(place: Path, out: Path) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["guarantee", str(place), "--out", str(out)])
    return result.exit_code, out.read_text(encoding="utf-8") if out.exists() else result.stderr


def test_a_store_is_described_and_its_promise_is_the_stored_one(tmp_path: Path) -> None:
    mechanism = ev.Uniform(epsilon=1, window=3, bins=["<north>", "south"])
    with ev.Publisher(
        ev.MemoryFeed([[3, 5]] * 4), mechanism, tmp_path / "city.db", population="<visitors>"
    ) as publisher:
        publisher.run()
        sentence = str(publisher.guarantee)
    code, page = written(tmp_path / "city.db", tmp_path / "page.html")
    assert code == 0
    assert sentence in page
    assert "in 2 bins (&lt;north&gt;, south), by the mechanism uniform" in page
    promise = "one person among &lt;visitors&gt; did inside any 3 consecutive steps had been left out."
    assert promise in page
    assert "everything that is published would be at most 2.72 times more likely or less likely (epsilon 1)" in page
    assert "the fullest held 1. Digest of settings and charges: sha256:" in page
    assert "its owner alone (mode 600)" in page
    assert "taken on trust" in page
    assert ('<path class="line"' in page, "<script" in page) == (True, False)
    assert "<visitors>" not in page


RIDES = "timestamp,user,bin,fare\n2026-01-01T08:10,anna,north,12\n2026-01-01T09:10,ben,south,7\n"
HOURS = (
    "--step",
    "1h",
    "--start",
    "2026-01-01T08:00",
    "--until",
    "2026-01-01T10:00",
    "--epsilon",
    "1",
    "--window",
    "4",
)


def published(folder: Path, *told: str) -> Path:
    (folder / "rides.csv").write_text(RIDES)
    (folder / "bins.txt").write_text("north\nsouth\n")
    files = (str(folder / "rides.csv"), "--bins", str(folder / "bins.txt"), "--out", str(folder / "out.jsonl"))
    whole = ("--mechanism", "uniform", "--user", "user", "--store", str(folder / "rides.db"))
    done = CliRunner().invoke(main, ["publish", *files, *HOURS, *whole, *told])
    assert done.exit_code == 0, done.output
    return folder / "rides.db"


def test_it_says_where_the_page_is(tmp_path: Path) -> None:
    store = published(tmp_path)
    told = CliRunner().invoke(main, ["guarantee", str(store), "--out", str(tmp_path / "page.html")])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "What is promised to the people in these data" in page
    assert "What is published about the people in these data" in page
    assert told.output == f"The page is in {tmp_path / 'page.html'}; it needs no network.\n"


def test_the_page_of_one_store_of_several_states_what_all_of_them_may_tell(tmp_path: Path) -> None:
    """The people are in both streams, so the share of one of them bounds nothing that they could rely on."""
    mechanism = ev.Uniform(epsilon=0.7, window=3, bins=2)
    with ev.Publisher(
        ev.MemoryFeed([[3, 5]] * 4), mechanism, tmp_path / "wards.db", population="patients"
    ) as publisher:
        publisher.run()
        part = part_of_stream(0.7, "pharmacy")
        promised = dataclasses.replace(publisher.guarantee, epsilon=1, assumptions=(part,))
        publisher.store.promise(str(promised))
    page = written(tmp_path / "wards.db", tmp_path / "page.html")[1]
    assert "all streams about them release would be at most 2.72 times more likely or less likely (epsilon 1)" in page
    assert "with other streams about them: this one has epsilon 0.7 of 1<" in page
    assert "(epsilon 0.7)" not in page


def test_the_largest_epsilon_in_the_shortest_window_is_promised_for_all_that_was_ever_published(tmp_path: Path) -> None:
    """The newest promise is none about the steps before it; each is told with its time, and the picture has both."""
    for epsilon, window, steps in ((2, 3, 6), (0.5, 4, 14), (0.5, 4, 18)):
        mechanism = ev.Uniform(epsilon=epsilon, window=window, bins=2)
        feed = ev.MemoryFeed([[3, 5]] * steps)
        with ev.Publisher(feed, mechanism, tmp_path / "city.db", new_epoch=True) as publisher:
            publisher.run()
    page = written(tmp_path / "city.db", tmp_path / "page.html")[1]
    assert "inside any 3 consecutive steps had been left out" in page
    assert "at most 7.39 times more likely or less likely (epsilon 2)" in page
    assert "of steps 0 to 5 (before step 6): epsilon 2 inside any 3 consecutive steps" in page
    assert "from step 6 on (step 6): epsilon 0.5 inside any 4 consecutive steps" in page
    assert "no window was over the epsilon of its time, and the fullest held 2 of 2." in page
    assert page.count('<line class="limit"') == 2
    mechanism = ev.Uniform(epsilon=3, window=4, bins=2)
    with ev.Publisher(ev.MemoryFeed([[3, 5]] * 18), mechanism, tmp_path / "city.db", new_epoch=True) as publisher:
        publisher.run()  # nothing: so what was published is bounded by what was promised before, and now by epsilon 3
    assert "(epsilon 3)" in written(tmp_path / "city.db", tmp_path / "page.html")[1]


def test_an_epoch_that_measured_nothing_promised_nothing(tmp_path: Path) -> None:
    for epsilon, steps in ((9, 0), (1, 6)):
        mechanism = ev.Uniform(epsilon=epsilon, window=3, bins=2)
        feed = ev.MemoryFeed([[3, 5]] * steps)
        with ev.Publisher(feed, mechanism, tmp_path / "city.db", new_epoch=True) as publisher:
            publisher.run()
    page = written(tmp_path / "city.db", tmp_path / "page.html")[1]
    assert ("(epsilon 1)" in page, "epsilon 9" in page) == (True, False)


def test_spare_bins_are_listed_by_the_names_that_they_got(tmp_path: Path) -> None:
    store = published(tmp_path, "--spare-bins", "1")
    assert CliRunner().invoke(main, ["bins", str(store), "--name", "harbour"]).exit_code == 0
    assert "in 3 bins (north, south, harbour), by the mechanism uniform" in written(store, tmp_path / "page.html")[1]


def test_of_several_statistics_the_mechanism_that_measures_them_is_named(tmp_path: Path) -> None:
    told = ("--statistic", "people", "--statistic", "mean:fare", "--between", "fare=0,120")
    store = published(tmp_path, *told)
    assert "by the mechanism uniform" in written(store, tmp_path / "page.html")[1]
    assert "from step 0: uniform, epsilon 1" in CliRunner().invoke(main, ["ledger", str(store)]).stdout


def test_an_account_is_described_and_one_that_is_over_says_so(tmp_path: Path) -> None:
    path, hour = tmp_path / "people.account", 3_600_000_000
    create_account(path, "patients", 1, "1d")
    with open_account(path) as account:
        seat = account.join("hourly", Terms(5 * 10**8, window=25, length=hour), 0)
        account.charge(seat, 0, hour)
    code, page = written(path, tmp_path / "page.html")
    assert (code, "did inside any 1 day had been left out" in page, "hourly holds 0.5" in page) == (0, True, True)
    forge_weight(path, 2 * 10**9)
    code, page = written(path, tmp_path / "page.html")
    assert (code, "NOT KEPT" in page) == (4, True)


def test_nothing_there_is_bad_input(tmp_path: Path) -> None:
    assert written(tmp_path / "nowhere", tmp_path / "page.html")[0] == 2
    assert not (tmp_path / "page.html").exists()


def test_a_digest_is_that_of_the_ledger(tmp_path: Path) -> None:
    for name, epsilon in (("one", 1), ("same", 1), ("other", 2)):
        mechanism = ev.Uniform(epsilon=epsilon, window=3, bins=2)
        with ev.Publisher(ev.MemoryFeed([[3, 5]] * 4), mechanism, tmp_path / name) as publisher:
            publisher.run()
    digests = [written(tmp_path / name, tmp_path / "page.html")[1].split("sha256:")[1][:64] for name in ("one", "same")]
    assert digests[0] == digests[1]
    assert digests[0] not in written(tmp_path / "other", tmp_path / "page.html")[1]


CONFIG = """
[access]
log = "access.jsonl"

[[populations]]
name = "patients"
account = "people.account"

[[streams]]
name = "wards"
population = "patients"
epsilon = 0.5
window = 25
step = "1h"
start = 2026-01-01T00:00:00Z
late = "10min"
bins = ["north", "south"]
user = "patient"
mechanism = "uniform"
cap = "2/1d"
store = "wards.store"
out = ["wards.jsonl"]
"""


def test_a_configuration_is_described_with_who_may_read_what(tmp_path: Path) -> None:
    create_account(tmp_path / "people.account", "patients", 1, "1d")
    (tmp_path / "eventide.toml").write_text(CONFIG)
    for role, name in (("read", "office"), ("operate", "ward-desk")):
        CliRunner().invoke(main, ["config", "token", role, str(tmp_path / "eventide.toml"), "--name", name])
    code, page = written(tmp_path / "eventide.toml", tmp_path / "page.html")
    assert code == 0, page
    for sentence in (
        "did inside any 1 day had been left out. Then each possible result of everything that all these",
        "inside any 25 hours (25 consecutive steps of 1 hour)",
        "everything that this publication alone releases would be at most 1.65 times more likely or less likely",
        "read releases: office, ward-desk; see raw figures: ward-desk",
        "send events: nobody",
        "until the step is over and 10min more have passed, for events that come late\nkeyed hashes of the people",
        "the person in &#x27;patient&#x27;",
        "wards.jsonl",
        "Nothing was published yet.",
    ):
        assert sentence in page
    (tmp_path / "eventide.toml").write_text(CONFIG.replace("epsilon = 0.5", "epsilom = 0.5"))
    assert written(tmp_path / "eventide.toml", tmp_path / "other.html")[0] == 2


def test_nothing_is_promised_where_nothing_holds_and_less_where_events_are_people(tmp_path: Path) -> None:
    open_store(tmp_path / "tests.db", for_tests=True).close()
    mechanism = ev.Uniform(epsilon=1, window=3, bins=2, noise=ev.noise.Zero())
    with ev.Publisher(ev.MemoryFeed([[3, 5]] * 4), mechanism, tmp_path / "tests.db") as publisher:
        publisher.run()
    page = written(tmp_path / "tests.db", tmp_path / "page.html")[1]
    assert ("Nothing is promised: NOT PRIVATE" in page, "changes the chance" in page) == (True, False)
    (tmp_path / "events.csv").write_text("timestamp,bin\n2024-03-01T00:10,north\n")
    mechanism = ev.Uniform(epsilon=1, window=3, bins=["north"])
    cut = {"step": "1h", "start": "2024-03-01", "until": "2024-03-02"}
    with ev.Publisher(tmp_path / "events.csv", mechanism, tmp_path / "events.db", **cut) as publisher:
        publisher.run()
    page = written(tmp_path / "events.db", tmp_path / "page.html")[1]
    assert "Suppose one event about everybody had been left out" in page
    assert "loses several times epsilon" in page


def test_the_page_of_a_pan_private_stream_speaks_of_one_unit(tmp_path):
    """With a bound that is taken on trust it is a person, and with none every event is one of its own."""
    for most, told, other in ((2, "one person among", "one event about"), (1, "one event about", "one person among")):
        config = tmp_path / f"{most}.toml"
        config.write_text(PAN_PRIVATE.format(most=most))
        page = tmp_path / "pan.html"
        assert CliRunner().invoke(main, ["guarantee", str(config), "--out", str(page)]).exit_code == 0
        text = page.read_text()
        assert (told in text, other in text) == (True, False)
        assert ("taken on trust" in text) == (most == 2)
        assert all(word in text for word in ("Name", "Date", "Signature"))


PAN_PRIVATE = """
[[streams]]
name = "wards"
epsilon = 1
window = 12
step = "10s"
start = 2026-01-01T00:00:00Z
bins = 3
store = "wards-{most}.store"
max_per_step = {most}
mechanism = "ba"
parameters = {{ pan_private = "announced" }}
"""
