"""Streams about the same people, whose shares change from one start of the service to the next: what windows hold.

Every test serves real stores and adds up what all of them were charged, on one clock; W is the window, epsilon 1.
"""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing
from fractions import Fraction

import pytest
from click.testing import CliRunner
from live_stores import listing
from population_lives import BOTH, CHANGED, charges, fullest, fullest_of, live, people
from running_service import MINUTE, START, wait_until

from eventide.cli import main
from eventide.errors import InputError, StoreError
from eventide.events.clock import ManualClock
from eventide.events.timeline import Timeline
from eventide.live.stores.open_store import open_store
from eventide.service.live_stream import USUAL, Circumstances
from eventide.service.populations.population import Population
from eventide.service.service import Service
from eventide.windows.workload import Query

W = 5
SAMPLE = {"mechanism": "sample"}  # charges its whole share at one step of each window


def sampled(epsilon, **changed):
    return SAMPLE | {"epsilon": epsilon} | changed


def epochs(path):
    with closing(open_store(path, read_only=True)) as store:
        return store.epochs()


# minutes   0 1 2 3 4 5 6 7 8 9
# a         3 . . . . 7                the old code measured here: 4 times 0.14 and 0.7 in one window
# b         x x x x x . . . . x
def test_streams_that_swap_their_shares(tmp_path):
    live(people(tmp_path, {"a": sampled(0.3), "b": 0.7}), 5)
    assert live(people(tmp_path, {"a": sampled(0.7), "b": 0.3}), 30) == {"a": 9, "b": 9}
    assert fullest(tmp_path, W) == 1


def test_a_stream_that_is_cut_beside_a_new_one(tmp_path):
    live(people(tmp_path, {"a": 1}), 10)
    assert live(people(tmp_path, {"a": 0.5, "b": 0.5}), 30) == {"a": 14, "b": 14}
    assert fullest(tmp_path, W) == 1


def test_a_stream_that_is_taken_out_and_another_that_is_raised(tmp_path):
    live(people(tmp_path, {"a": sampled(0.5), "b": 0.5}), 5)
    assert live(people(tmp_path, {"a": sampled(1)}), 30) == {"a": 9}
    assert fullest(tmp_path, W) == 1


def test_a_stream_in_the_place_of_the_only_one(tmp_path):
    live(people(tmp_path, {"a": 1}), 7)
    assert live(people(tmp_path, {"b": 1}), 30) == {"b": 11}
    assert fullest(tmp_path, W) == 1


def test_a_stream_that_is_taken_out_is_remembered_over_other_starts(tmp_path):
    live(people(tmp_path, {"a": 0.6, "b": 0.4}), 10)
    live(people(tmp_path, {"b": 0.4}), 11)
    (tmp_path / "a.store").rename(tmp_path / "elsewhere.store")  # it was read when it was taken out
    live(people(tmp_path, {"b": 0.4}), 12)
    assert live(people(tmp_path, {"b": 0.4, "c": 0.6}), 30) == {"b": 0, "c": 14}
    assert fullest(tmp_path, W) == 1


def test_a_store_in_another_folder_is_remembered_there(tmp_path):
    (tmp_path / "far").mkdir()
    far = {"store": tmp_path / "far" / "b.store"}
    live(people(tmp_path, {"a": 0.5, "b": sampled(0.5, **far)}), 5)
    assert live(people(tmp_path, {"b": sampled(1, **far)}), 30) == {"b": 9}
    assert fullest(tmp_path, W, "**/*.store") == 1


def test_streams_with_other_starts_are_compared_by_time(tmp_path):
    """Minute 20 is step 20 of one stream and step 0 of the other."""
    late = {"start": START.replace("00:00:00", "00:20:00")}
    live(people(tmp_path, {"a": 1}), 22)
    assert live(people(tmp_path, {"b": late | {"epsilon": 1}}), 30) == {"b": 6}
    assert fullest(tmp_path, W) == 1


def test_a_stream_with_other_steps_waits_until_nothing_is_shared(tmp_path):
    """The last charge is that of minute 21, in windows until minute 25; a window of hours holds three of them."""
    live(people(tmp_path, {"a": 1}), 22)
    hours = {"step": "1h", "window": 3, "epsilon": 1}
    assert live(people(tmp_path, {"b": hours}), 6) == {"b": 3}


# What needs no wait.


def test_a_plain_restart_waits_for_nothing(tmp_path):
    config = people(tmp_path, {"a": sampled(0.3), "b": 0.7})
    live(config, {"a": 5, "b": 7}, USUAL)
    written = (tmp_path / "people.population").stat().st_ino
    assert live(config, 9, USUAL) == {"a": 0, "b": 0}
    assert (tmp_path / "people.population").stat().st_ino == written  # it was not replaced
    assert len(epochs(tmp_path / "a.store")) == len(epochs(tmp_path / "b.store")) == 1


def test_a_restart_after_a_change_waits_no_longer(tmp_path):
    live(people(tmp_path, {"a": sampled(0.3), "b": 0.7}), 5)
    config = people(tmp_path, {"a": sampled(0.7), "b": 0.3})
    for until in (6, 9, 10, 11):
        assert live(config, until) == {"a": 9, "b": 9}
    assert len(epochs(tmp_path / "a.store")) == 2


def test_what_leaves_the_shares_as_they_are_concerns_one_stream_alone(tmp_path):
    live(people(tmp_path, {"a": 0.5, "b": 0.5}), 10)
    asked = {"queries": (Query(3, 1),), "queries_epsilon": Fraction(1, 4), "epsilon": 0.5}
    assert live(people(tmp_path, {"a": asked, "b": 0.5}), 12) == {"a": 14, "b": 0}
    more_bins = {"bins": ("north", "south", "harbour", "west"), "epsilon": 0.5}
    assert live(people(tmp_path, {"a": asked, "b": more_bins}), 30) == {"a": 14, "b": 16}
    assert fullest(tmp_path, W) <= 1


def test_a_stream_knows_its_share_as_its_store_does(tmp_path):
    odd = {"queries": (Query(3, 1),), "queries_epsilon": Fraction(1, 7), "epsilon": Fraction(2, 3)}
    config = people(tmp_path, {"a": odd, "b": Fraction(1, 6)})
    live(config, 1)
    stored = [epochs(tmp_path / f"{name}.store")[-1].setting.epsilon for name in "ab"]
    assert [stream.budget for stream in config.streams] == stored


def test_a_new_stream_with_a_share_that_nobody_had_begins_at_once(tmp_path):
    live(people(tmp_path, {"a": 0.5}), 10)
    assert live(people(tmp_path, {"a": 0.5, "b": 0.5}), 20) == {"a": 0, "b": 0}
    assert fullest(tmp_path, W) == 1


def test_a_stream_with_another_name_and_place_is_the_same_by_its_store(tmp_path):
    live(people(tmp_path, {"a": 1}), 10, USUAL)
    for path in tmp_path.glob("a.store*"):
        path.rename(tmp_path / path.name.replace("a.", "b."))
    assert live(people(tmp_path, {"b": 1}), 12, USUAL) == {"b": 0}


def test_a_wait_that_had_begun_is_kept_through_other_changes(tmp_path):
    """Both wait for the stream that was taken out; then both get other bins, for which alone they need not wait."""
    live(people(tmp_path, {"a": 0.5}), 10)
    wait = {"b": 0.5, "c": 0.5}
    assert live(people(tmp_path, wait), 11) == {"b": 14, "c": 14}
    bins = {"bins": ("north",), "epsilon": 0.5}
    assert live(people(tmp_path, dict.fromkeys(wait, bins)), 30) == {"b": 14, "c": 14}
    assert fullest(tmp_path, W) == 1


# The epsilon of all together.


def test_a_window_from_before_a_raise_stays_within_the_smaller_epsilon(tmp_path):
    live(people(tmp_path, {"a": 1}), 10)
    assert live(people(tmp_path, {"a": 1, "b": 1}, total=2), 30) == {"a": 0, "b": 14}
    assert fullest(tmp_path, W) == 2
    assert not charges(tmp_path / "b.store").keys() & set(minutes(0, 14))


def test_what_fits_into_the_smaller_epsilon_begins_at_once(tmp_path):
    live(people(tmp_path, {"a": 0.5}), 10)
    assert live(people(tmp_path, {"a": 0.5, "b": 0.5}, total=2), 12) == {"a": 0, "b": 0}


def test_a_window_from_before_a_cut_stays_within_the_smaller_epsilon(tmp_path):
    """The stream that stays has the share that it had; but what the other has charged is too much beside it now."""
    live(people(tmp_path, {"a": 0.5, "b": 0.5}), 10)
    config = people(tmp_path, {"a": 0.5}, total=0.5)
    with pytest.raises(InputError, match=r"stream a: .*nothing may be measured before step 14: go on with --new-epoch"):
        live(config, 12, USUAL)
    assert live(config, 12) == {"a": 14}
    assert live(config, 30, USUAL) == {"a": 14}
    assert charges(tmp_path / "a.store").keys() & set(minutes(10, 20)) == set(minutes(14, 20))


def test_a_population_with_another_name_has_the_same_past(tmp_path):
    live(people(tmp_path, {"a": sampled(0.5), "b": 0.5}), 5)
    config = people(tmp_path, {"a": sampled(1, population="persons")})
    config.populations.clear()
    config.populations["persons"] = 1
    assert live(config, 20) == {"a": 9}
    assert fullest(tmp_path, W) == 1


def minutes(first, end):
    start = Timeline(START, "1min").start // MINUTE
    return range(start + first, start + end)


# What cannot be read.


def remove_store(tmp_path):
    for path in tmp_path.glob("a.store*"):
        path.unlink()


def replace_store(tmp_path):
    remove_store(tmp_path)
    open_store(tmp_path / "a.store", for_tests=True).close()


def damage_store(tmp_path):
    with (tmp_path / "a.store").open("r+b") as file:
        file.truncate(5000)


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (remove_store, "there is no store at"),
        (replace_store, "another store is in its place"),
        (damage_store, "is damaged"),
    ],
)
def test_a_store_that_was_charged_and_cannot_be_read_is_refused(tmp_path, happens, said):
    live(people(tmp_path, {"a": 0.5, "b": 0.5}), 10)
    happens(tmp_path)
    clock = ManualClock(Timeline(START, "1min").begin(12))
    config = people(tmp_path, {"b": 1})
    with pytest.raises(StoreError, match=rf"stream 'a' at .*a\.store.*: .*{said}.*Put it back.*--after-restore"):
        live(config, 20, CHANGED, clock)
    assert live(config, 20, BOTH, clock) == {"b": 17}  # as if it had been charged until minute 12
    assert live(config, 30, USUAL) == {"b": 17}


def test_a_new_store_in_the_place_of_one_that_is_served_is_refused(tmp_path):
    live(people(tmp_path, {"a": 1}), 10)
    remove_store(tmp_path)
    clock = ManualClock(Timeline(START, "1min").begin(12))
    with pytest.raises(StoreError, match="another store is in its place"):
        live(people(tmp_path, {"a": 1}), 20, USUAL, clock)
    assert live(people(tmp_path, {"a": 1}), 20, Circumstances(after_restore=True), clock) == {"a": 17}


# minutes   0 1 2 3 4 5 6 7 8 9
# a         x x x x x o o o o          what is o was charged, and is not in the backup
# b         x x x x x x
def test_what_a_restored_store_has_lost_counts_for_the_others(tmp_path):
    before = people(tmp_path, {"a": 0.7, "b": 0.3})
    live(before, 5)
    shutil.copytree(tmp_path, tmp_path / "backup")
    live(before, {"a": 9, "b": 6})
    shutil.copytree(tmp_path, tmp_path / "lost")
    for path in (tmp_path / "backup").glob("a.store*"):
        if path.suffix != ".lock":
            shutil.copy(path, tmp_path)
    swapped = people(tmp_path, {"a": 0.3, "b": sampled(0.7)})
    with pytest.raises(StoreError, match="start it again, with --new-epoch"):
        live(swapped, 20, BOTH)  # only now is it known until when the one was charged that the other waits for
    assert live(swapped, 30) == {"a": 13, "b": 13}
    charged = charges(tmp_path / "a.store") | charges(tmp_path / "lost" / "a.store")
    assert fullest_of(charged + charges(tmp_path / "b.store"), W) == 1


def test_a_record_that_is_not_what_was_written_is_refused(tmp_path):
    config, record = people(tmp_path, {"a": 1}), tmp_path / "people.population"
    live(config, 3)
    text = record.read_text()
    assert record.stat().st_mode & 0o777 == 0o600
    for wrong in (text.replace("1000000000", "2000000000", 1), text[:-9], "[]", "{}"):
        record.write_text(wrong)
        with pytest.raises(StoreError, match=r"people\.population .* not what the service wrote: put back a copy"):
            live(config, 4)
    record.write_text(text)
    assert live(config, 4) == {"a": 0}


def test_stores_about_which_nothing_is_written_down_are_told_of(tmp_path, caplog):
    config = people(tmp_path, {"a": 1})
    live(config, 3)
    assert "nothing is written down" not in caplog.text
    (tmp_path / "people.population").unlink()
    assert live(config, 4, USUAL) == {"a": 0}
    assert "people.population is missing" in caplog.text
    caplog.clear()
    live(config, 5)
    assert caplog.text == ""


def test_a_store_that_is_charged_while_the_service_starts_is_noticed(tmp_path, monkeypatch):
    """Somebody else is at work on the stores until their places are taken over."""
    live(people(tmp_path, {"a": sampled(0.3), "b": 0.7}), 5)

    class Overtaken(Population):
        def __init__(self, *given, **told):
            super().__init__(*given, **told)
            monkeypatch.undo()
            live(people(tmp_path, {"a": sampled(0.3), "b": 0.7}), 8)

    monkeypatch.setattr("eventide.service.populations.population.Population", Overtaken)
    config = people(tmp_path, {"a": sampled(0.7), "b": 0.3})
    with pytest.raises(StoreError, match="start it again, with --new-epoch"):
        live(config, 20)
    assert live(config, 30) == {"a": 12, "b": 12}
    assert fullest(tmp_path, W) == 1


# What people are told.


def test_the_operator_is_told_from_when_on_a_stream_measures(tmp_path, caplog):
    live(people(tmp_path, {"a": 1}), 10)
    assert caplog.text == ""
    live(people(tmp_path, {"a": 0.5, "b": 0.5}), 11)
    for name in "ab":
        assert f"stream {name} measures nothing before step 14 (2026-01-01T00:14:00+00:00)" in caplog.text


CONFIG = """
[[populations]]
name = "people"
epsilon = {epsilon}
"""
STREAM = """
[[streams]]
name = "{name}"
population = "people"
epsilon = {share}
window = 5
step = "1min"
start = 2026-01-01T00:00:00Z
bins = ["north", "south", "harbour"]
user = "user"
mechanism = "uniform"
store = "{name}.store"
"""


def checked(folder, shares, epsilon=1.0, *options, code=0):
    text = CONFIG.format(epsilon=epsilon) + "".join(STREAM.format(name=name, share=shares[name]) for name in shares)
    (folder / "eventide.toml").write_text(text)
    result = CliRunner().invoke(main, ["config", "check", str(folder / "eventide.toml"), *options])
    assert result.exit_code == code, result.output
    return result.stdout


def test_a_check_of_the_configuration_says_what_a_start_would_do(tmp_path):
    private = {"parameters": {}}  # the noise of real stores, so that the configuration in a file is the same
    assert checked(tmp_path, {"a": 1.0}).splitlines()[0].endswith("is right.")
    assert not list(tmp_path.glob("*.store"))
    service = Service(people(tmp_path, {"a": private | {"epsilon": 1}}), ManualClock())
    for step in range(10):
        service.streams["a"].publisher.publish(step, [0, 0, 0])
    service.stop()
    assert checked(tmp_path, {"a": 1.0}).splitlines()[0].endswith("is right.")
    before = listing(tmp_path)
    refused = checked(tmp_path, {"a": 0.5, "b": 0.5}, code=2).splitlines()
    assert refused[0].endswith("has no mistakes, but a start would be refused:")
    said = checked(tmp_path, {"a": 0.5, "b": 0.5}, 1.0, "--new-epoch")
    assert "stream a begins a new epoch, which `serve` does only with --new-epoch: epsilon (1.0 before, 0.5" in said
    assert "stream a measures nothing before step 14 (2026-01-01T00:14:00+00:00)" in said
    assert "stream b measures nothing before step 14 (2026-01-01T00:14:00+00:00)" in said
    told = json.loads(checked(tmp_path, {"a": 0.5, "b": 0.5}, 1.0, "--new-epoch", "--json"))
    assert (len(told["outlook"]), told["refused"]) == (4, [])  # the fourth: there are no tokens yet
    assert {name for name, data in listing(tmp_path).items() if data != before.get(name)} == {"eventide.toml"}
    shutil.move(tmp_path / "a.store", tmp_path / "lost")
    assert "cannot be read: there is no store" in checked(tmp_path, {"b": 1.0}, code=5)


def test_what_stops_a_population_hides_no_obstacle_of_its_streams(tmp_path):
    """Everybody is named who would be refused, and the account has the name of its people in the advice."""
    streams = [STREAM.format(name=name, share=0.3) for name in "abc"]
    streams[0] += 'out = ["missing/a.jsonl"]\n'
    (tmp_path / "b.store").write_text("what was once a store")
    (tmp_path / "eventide.toml").write_text(
        '[[populations]]\nname = "people"\naccount = "no.account"\n' + "".join(streams)
    )
    command = ["config", "check", str(tmp_path / "eventide.toml"), "--json"]
    refused = json.loads(CliRunner().invoke(main, command).stdout)["refused"]
    assert len(refused) == 3
    assert refused[0].startswith("population people: there is no account at ")
    assert "if there was one, put it back or restore a backup" in refused[0]
    assert "--population people --epsilon" in refused[0]
    assert refused[1].startswith("stream a would be refused: cannot write ")
    assert refused[2].startswith(f"stream b would be refused: {tmp_path / 'b.store'} is no store of eventide")
    (tmp_path / "eventide.toml").write_text(CONFIG.format(epsilon=1.0) + "".join(streams))
    refused_again = json.loads(CliRunner().invoke(main, command).stdout)["refused"]
    assert refused_again == refused[1:]  # and the store that cannot be read is named once


def test_a_stream_that_waits_answers_all_the_same(tmp_path):
    """The threads of the service at work: steps repeat nothing, without a scale, until the new stream may measure."""
    live(people(tmp_path, {"a": 1}), 3)
    service = Service(people(tmp_path, {"b": 1}), clock := ManualClock(), for_tests=True)
    try:
        service.start()
        stream = service.streams["b"]
        clock.set(stream.feed.timeline.end(9))
        wait_until(lambda: stream.notices.last >= 9)
        fresh = [json.loads(line)["fresh"] for _, line in stream.lines(0, 10)]
        assert fresh == [False] * 7 + [True] * 3
        assert service.ledger(stream).verified
    finally:
        service.stop()


# Random histories.


@pytest.mark.parametrize("seed", range(4))
def test_no_window_of_a_random_history_holds_too_much(tmp_path, seed):
    dice = random.Random(seed)
    until = 0
    for _ in range(5):
        names = dice.sample("abc", dice.choice([1, 2, 2, 3]))
        cuts = sorted(dice.sample(range(1, 10), len(names) - 1))
        shares = [(high - low) / 10 for low, high in zip([0, *cuts], [*cuts, 10], strict=True)]
        kinds = [dice.choice([{}, SAMPLE]) for _ in names]
        config = {name: kind | {"epsilon": share} for name, kind, share in zip(names, kinds, shares, strict=True)}
        until += dice.randint(1, 4)
        live(people(tmp_path, config, window=3), {name: until + dice.choice([0, 0, 1]) for name in names})
    assert 0 < fullest(tmp_path, 3) <= 1
