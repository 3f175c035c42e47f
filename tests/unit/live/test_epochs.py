"""Settings that change, epochs that wait, and backups that were put back."""

import shutil

import pytest
from live_stores import SETTING, a_commit, filled

from eventide.errors import InputError, StateError, StoreError
from eventide.live.stores.epochs import refuse_other_steps
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify
from eventide.privacy.amounts import NANO

# Settings and epochs.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"people": "drivers"}, ["people (riders before, drivers now)"]),
        ({"epsilon": NANO // 2}, ["epsilon (1.0 before, 0.5 now)"]),
        ({"window": 5, "sensitivity": 2}, ["window (3 before, 5 now)", "sensitivity (1 before, 2 now)"]),
        ({"bins": ("south", "north")}, ["bins (the same 2 in another order)"]),
        ({"bins": ("north", "west")}, ["bins (north, south before, north, west now)"]),
        ({"bins": tuple(map(str, range(88_762)))}, ["bins (2 before, 88,762 now: 88,762 new and 2 gone)"]),
        (
            {"mechanism": {"name": "ba", "parameters": {"shift_budget": True}}},
            ["parameters.shift_budget (False before"],
        ),
        ({"mechanism": {"name": "bd"}}, ["mechanism.name (ba before, bd now)", "mechanism.parameters"]),
        ({"cap": {"events": 2, "block": 24}}, ["cap (nothing before, block 24 and events 2 now)"]),
        ({"noise": "opendp"}, ["noise (secure before, opendp now)"]),
    ],
)
def test_another_setting_is_refused_and_every_difference_named(tmp_path, change, said):
    filled(tmp_path / "city.db").close()
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="--new-epoch") as refusal:
        store.begin(SETTING._replace(**change))
    window = change.get("window", 3)
    for words in [*said, f"before step {4 + max(3, window)} repeats"]:
        assert words in str(refusal.value)
    assert len(str(refusal.value)) < 600
    assert store.begin(SETTING).next_step == 5  # nothing happened, and the place is free
    store.close()


@pytest.mark.parametrize(
    ("before", "now", "says"),
    [
        ({"account": "a1"}, {}, "draws from one account for ever; give the address of that one, as --account"),
        ({"account": "a1"}, {"account": "a2"}, "draws from one account for ever"),
        ({}, {"account": "a1"}, "was used without an account.*publish to another store, or leave --account out"),
    ],
)
def test_another_account_is_refused_by_its_name(before, now, says):
    stored, wanted = (SETTING._replace(steps=SETTING.steps | each) for each in (before, now))
    with pytest.raises(InputError, match=says):
        refuse_other_steps(stored, wanted)


def test_events_in_a_store_of_counts_are_refused_though_counts_have_no_length():
    events = SETTING._replace(steps=SETTING.steps | {"length": 3_600_000})
    with pytest.raises(InputError, match=r"steps\.length \(nothing before, 1 hour now\)"):
        refuse_other_steps(SETTING, events)
    with pytest.raises(InputError, match=r"steps\.length \(1 hour before, nothing now\)"):
        refuse_other_steps(events, SETTING)


def test_other_steps_and_statistics_are_told_in_words():
    stored, wanted = (
        SETTING._replace(steps=SETTING.steps | each)
        for each in ({"length": 3_600_000}, {"length": 86_400_000, "statistic": "people"})
    )
    with pytest.raises(
        InputError, match=r"length \(1 hour before, 1 day now\).*statistic \(events before, people now\)"
    ):
        refuse_other_steps(stored, wanted)


@pytest.mark.parametrize("new_epoch", [True, False])
def test_steps_are_cut_in_one_way_for_ever(tmp_path, new_epoch):
    filled(tmp_path / "city.db").close()
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match=r"steps\.step \(10min before, 5min now\).*can never change") as told:
        store.begin(SETTING._replace(steps=SETTING.steps | {"step": "5min"}), new_epoch=new_epoch)
    assert "--start" not in str(told.value)
    with pytest.raises(InputError, match=r"steps\.start .*for more days leave --start as it is, and move --until"):
        store.begin(SETTING._replace(steps=SETTING.steps | {"start": "2026-01-02"}), new_epoch=new_epoch)
    store.close()


# steps      0 1 2 3 4 | 5 6 7 8 9
# charges    x x x x x | . . . . x    the last is at 4 and the longer window has 5 steps
def test_a_new_epoch_waits_until_no_window_holds_both(tmp_path):
    filled(tmp_path / "city.db", snapshots=[2]).close()
    store = open_store(tmp_path / "city.db")
    new = SETTING._replace(window=5, bins=("west",))
    standing = store.begin(new, new_epoch=True)
    assert (standing.next_step, standing.origin, standing.measured_from) == (5, 9, 9)
    assert (standing.snapshot, standing.recorded, standing.last_release) == (None, [], b'{"step": 4}')
    with pytest.raises(StateError, match="before 9"):
        store.commit(a_commit(5))
    for step in range(5, 9):
        store.commit(a_commit(step, charge=0)._replace(recorded=b""))
    store.commit(a_commit(9, charge=NANO))
    store.commit(a_commit(10))
    assert verify(store.entries(), store.epochs(), 11).problems == [
        "the window that ends at step 10 was charged 1 of 1"  # 100 nano too many, as the test charged it
    ]
    store.close()
    store = open_store(tmp_path / "city.db")
    standing = store.begin(new, new_epoch=True)  # a flag left in place begins no other epoch
    assert (standing.next_step, standing.origin, standing.recorded) == (11, 9, [b"tape 9", b"tape 10"])
    assert len(store.epochs()) == 2
    store.close()


def test_kept_events_of_the_epoch_before_go(tmp_path):
    store = filled(tmp_path / "city.db")
    store.keep([(5, b"tally of other bins")])
    store.close()
    store = open_store(tmp_path / "city.db")
    store.begin(SETTING._replace(bins=("west",)), new_epoch=True)
    assert store.kept() == []
    store.close()


def test_an_epoch_that_never_charged_does_not_hide_the_one_before(tmp_path):
    filled(tmp_path / "city.db", setting=SETTING._replace(window=10)).close()
    for window in (2, 3):
        store = open_store(tmp_path / "city.db")
        assert store.begin(SETTING._replace(window=window), new_epoch=True).measured_from == 14
        store.close()


@pytest.mark.parametrize("noise", ["seeded", "zero", "unit", "mine"])
def test_noise_that_is_not_private_needs_a_store_for_tests(tmp_path, noise):
    store = open_store(tmp_path / "city.db")
    with pytest.raises(InputError, match="private noise only"):
        store.begin(SETTING._replace(noise=noise))
    store.close()
    with pytest.raises(InputError, match="store for real data"):
        open_store(tmp_path / "city.db", for_tests=True)
    filled(tmp_path / "test.db", for_tests=True, setting=SETTING._replace(noise=noise)).close()
    store = open_store(tmp_path / "test.db")
    assert store.for_tests  # for ever
    store.close()


# Backups.


def test_a_restored_backup_is_noticed_by_the_file_beside_it(tmp_path):
    path, backup = tmp_path / "city.db", tmp_path / "backup.db"
    filled(path, 3).close()
    shutil.copy(path, backup)
    store = open_store(path)
    store.begin(SETTING)
    store.commit(a_commit(3))
    store.commit(a_commit(4))
    store.close()
    shutil.copy(backup, path)
    store = open_store(path)
    with pytest.raises(StoreError, match=r"ends at step 2 but had come to step 4.*--after-restore"):
        store.begin(SETTING)
    store.begin(SETTING, after_restore=True)
    standing = store.after_restore(3)
    assert (standing.next_step, standing.measured_from, standing.origin) == (5, 7, 7)
    assert (standing.snapshot, standing.recorded, standing.last_release) == (None, [], b'{"step": 2}')
    for step in (5, 6):
        store.commit(a_commit(step, charge=0))
    store.commit(a_commit(7))
    assert [step for step, _ in store.releases()] == [0, 1, 2, 5, 6, 7]
    assert verify(store.entries(), store.epochs(), store.next_step()).holds
    assert store.epochs()[-1].restored
    store.verify()
    store.close()
    store = open_store(path)
    assert store.begin(SETTING).next_step == 8
    store.close()


def test_after_a_restore_and_a_longer_window_the_lost_steps_still_count(tmp_path):
    store = filled(tmp_path / "city.db", 3)
    assert store.after_restore(20).measured_from == 22
    store.close()
    store = open_store(tmp_path / "city.db")
    standing = store.begin(SETTING._replace(window=10), new_epoch=True)
    assert (standing.next_step, standing.measured_from) == (20, 29)
    store.close()
