"""Streams of a service that draw from an account: any steps and windows, and one budget with all who have a part."""

from __future__ import annotations

from fractions import Fraction

import pytest
from click.testing import CliRunner
from population_lives import CHANGED, fullest, live, people
from running_service import MINUTE, configuration, event, running, stream

import eventide as ev
from eventide.cli import main
from eventide.errors import StoreError
from eventide.live.accounts.account import AccountFull
from eventide.live.accounts.account_report import account_report
from eventide.live.accounts.open_account import create_account, open_account
from eventide.live.accounts.windows import Terms
from eventide.live.stores.database import Unavailable
from eventide.service.config.config_file import examine
from eventide.service.live_stream import USUAL

LONGER = {"step": "2min", "window": 6}  # ten minutes meet six of its steps
ONLY_ACCOUNT = {"populations": {}}


@pytest.fixture
def account(tmp_path):
    create_account(tmp_path / "people.account", "people", 1, "10min")
    return tmp_path / "people.account"


def accounted(folder, shares, **changed):
    """Streams that draw from the account in a folder; for each its epsilon, or all that it differs in."""
    streams = []
    for name, told in shares.items():
        told = told if isinstance(told, dict) else {"epsilon": told}
        settings = {"population": "people", "window": 11} | changed | told
        settings["epsilon"] = Fraction(str(settings["epsilon"]))
        streams.append(stream(folder, name, **settings))
    return configuration(folder, streams, accounts={"people": folder / "people.account"}, **ONLY_ACCOUNT)


def report(path):
    with open_account(path, read_only=True) as opened:
        return account_report(opened)


def test_streams_with_different_steps_share_it_with_a_program_elsewhere(tmp_path, account):
    with open_account(account) as elsewhere:
        elsewhere.join("elsewhere", Terms(2 * 10**8, window=11, length=MINUTE), 0)
    config = accounted(tmp_path, {"a": 0.5, "b": {"epsilon": 0.3} | LONGER})
    assert live(config, {"a": 20, "b": 10}, USUAL) == {"a": 0, "b": 0}
    found = report(account)
    assert (found.problems, found.worst, found.free) == ([], 8 * 10**8, 0)
    assert [tenure.settled for tenure in found.tenures] == [True] * 3
    with pytest.raises(AccountFull):
        live(accounted(tmp_path, {"a": 0.5, "b": {"epsilon": 0.3} | LONGER, "c": 0.1}), 1, USUAL)


# What was found about populations whose shares change over time, with an account: minutes 0 to 4 are charged, and a
# window of ten minutes that begins behind them ends at minute 15. Charges are added up on one clock.


def sampled(epsilon):
    return {"epsilon": epsilon, "mechanism": "sample"}  # charges its whole part at one step of each window


def test_streams_that_swap_their_parts(tmp_path, account):
    live(accounted(tmp_path, {"a": sampled(0.3), "b": 0.7}), 5, USUAL)
    assert live(accounted(tmp_path, {"a": sampled(0.7), "b": 0.3}), 30, CHANGED) == {"a": 15, "b": 15}
    assert fullest(tmp_path, 10) <= 1
    assert report(account).problems == []


def test_a_stream_that_is_cut_beside_a_new_one(tmp_path, account):
    live(accounted(tmp_path, {"a": 1}), 5, USUAL)
    assert live(accounted(tmp_path, {"b": 0.5, "a": 0.5}), 30, CHANGED) == {"a": 15, "b": 15}
    assert fullest(tmp_path, 10) <= 1
    assert report(account).problems == []


def test_a_stream_that_is_removed_and_another_that_is_raised(tmp_path, account):
    live(accounted(tmp_path, {"a": sampled(0.5), "b": 0.5}), 5, USUAL)
    with pytest.raises(AccountFull):  # nobody has said that the other one has ended
        live(accounted(tmp_path, {"a": sampled(1)}), 20, CHANGED)
    with open_account(account) as opened:
        opened.end(opened.tenures()[1].publication)
    assert live(accounted(tmp_path, {"a": sampled(1)}), 30, CHANGED) == {"a": 15}
    assert fullest(tmp_path, 10) <= 1
    assert report(account).problems == []


def test_what_runs_says_the_promise_and_shows_only_what_is_settled(tmp_path, account):
    with running(accounted(tmp_path, {"city": 1})) as up:
        assert up.post([event()]).status_code == 200
        up.pass_steps(2)
        sentence = up.client("read").get("/v1/streams/city/guarantee").json()["sentence"]
        assert "the account of people, it is at most epsilon 1 inside any 10 minutes" in sentence
        assert report(account).tenures[0].settled_until == up.service.streams["city"].feed.timeline.end(1)


def test_a_stream_waits_for_an_account_that_cannot_be_used(tmp_path, account, monkeypatch):
    with running(accounted(tmp_path, {"city": 1})) as up:
        up.pass_steps()
        one = up.service.streams["city"]
        database, waited = one.publisher.account.database, []

        def away():
            if not waited:
                waited.append(one.health)
                raise Unavailable("the account went away", "start again")
            return type(database).transaction(database)

        monkeypatch.setattr(database, "transaction", away)
        up.pass_steps()
        assert (waited, one.failed, one.health) == (["running"], False, "running")


def test_people_who_were_served_without_the_account_are_refused_in_either_order(tmp_path, account):
    live(people(tmp_path, {"a": {"epsilon": 0.5, "store": tmp_path / "old.store"}}), 3)
    with pytest.raises(StoreError, match="served without this account"):
        live(accounted(tmp_path, {"a": 0.5}), 1, USUAL)
    (tmp_path / "people.population").unlink()
    live(accounted(tmp_path, {"a": 0.5}), 3, USUAL)
    with pytest.raises(StoreError, match="have drawn from an account"):
        live(people(tmp_path, {"b": 0.5}), 1)


CONFIG = """
[[populations]]
name = "people"
account = "people.account"
{more}
"""
STREAM = """
[[streams]]
name = "{name}"
population = "people"
epsilon = 0.5
window = {window}
step = "{step}"
start = 2026-01-01T00:00:00Z
bins = ["north", "south"]
{user}
mechanism = "uniform"
store = "{name}.store"
"""


def written(folder, *, more="", user='user = "user"'):
    cut = (("a", 11, "1min"), ("b", 6, "2min"))
    streams = [STREAM.format(name=name, window=window, step=step, user=user) for name, window, step in cut]
    path = folder / "eventide.toml"
    path.write_text(CONFIG.format(more=more) + "".join(streams))
    return path


def test_a_configuration_names_an_account_instead_of_an_epsilon(tmp_path, account):
    config, mistakes = examine(written(tmp_path))
    assert (mistakes, config.accounts, config.populations) == ([], {"people": account}, {})
    assert "leave one of the two out" in examine(written(tmp_path, more="epsilon = 1.0"))[1][0]
    assert len(examine(written(tmp_path, user=""))[1]) == 2
    with open_account(account) as elsewhere:
        elsewhere.join("elsewhere", Terms(2 * 10**8, window=11, length=MINUTE), 0)
    said = CliRunner().invoke(main, ["config", "check", str(written(tmp_path))]).stdout
    assert "needs 0.5" in said
    with open_account(account) as elsewhere:
        elsewhere.end("elsewhere")
    assert (
        CliRunner()
        .invoke(main, ["config", "check", str(written(tmp_path))])
        .stdout.splitlines()[0]
        .endswith("is right.")
    )
    with open_account(account) as elsewhere:
        elsewhere.join("elsewhere", Terms(1 * 10**8, window=11, length=MINUTE), 0)
    said = CliRunner().invoke(main, ["config", "check", str(written(tmp_path))]).stdout
    assert "stream b would be refused: " in said
    assert "has 0.4 of its epsilon 1 left, and this one needs 0.5" in said  # of the second: the first has its part
    assert not list(tmp_path.glob("*.store"))
    assert report(account).entries == 5


def test_a_frame_draws_from_an_account(tmp_path, account):
    visits = {"timestamp": ["2026-01-01T09:10", "2026-01-01T09:12"], "user": [1, 2], "bin": ["north", "south"]}
    how = {"step": "1min", "window": 11, "bins": ["north", "south"], "mechanism": "uniform", "population": "people"}
    ev.publish(visits, epsilon=0.6, store=tmp_path / "frame.db", account=account, user="user", **how)
    assert report(account).free == 4 * 10**8
    with pytest.raises(ev.BudgetExceeded):
        ev.publish(visits, epsilon=0.6, store=tmp_path / "second.db", account=account, user="user", **how)
    with pytest.raises(ev.InputError, match="user="):
        ev.publish(visits, epsilon=0.1, store=tmp_path / "third.db", account=account, **how)
    with pytest.raises(ev.InputError, match="store="):
        ev.publish(visits, epsilon=0.1, account=account, user="user", **how)
