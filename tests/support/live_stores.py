"""Stores for tests: a setting, steps to commit, and what only a writer may do."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys

from eventide.live.stores.base import Commit, StoreSetting
from eventide.live.stores.open_store import open_store
from eventide.privacy.amounts import NANO
from eventide.privacy.ledger import Entry

SETTING = StoreSetting(
    people="riders",
    mechanism={"name": "ba", "parameters": {"shift_budget": False}},
    epsilon=NANO,
    window=3,
    sensitivity=1,
    bins=("north", "south"),
    steps={"step": "10min", "start": "2026-01-01T00:00:00Z"},
    noise="secure",
)


def a_commit(step, charge=100, snapshot=None, position=None):
    entries = [Entry(step, "point", "", charge)] if charge else []
    return Commit(step, entries, b'{"step": %d}' % step, b"tape %d" % step, snapshot, position or {"offset": step})


def filled(path, steps=5, snapshots=(), setting=SETTING, **options):
    store = open_store(path, **options)
    store.begin(setting)
    for step in range(steps):
        store.commit(a_commit(step, snapshot=b"state %d" % step if step in snapshots else None))
    return store


def make_twin(path, twin):
    """A second store with the same key and the same steps, so that both count the same; it does not know the first."""
    shutil.copy(path, twin)
    with contextlib.closing(sqlite3.connect(twin)) as connection:
        connection.execute("DROP TABLE home")


def changes(store):
    """Whatever only a writer may do."""
    return (
        lambda: store.commit(a_commit(5)),
        lambda: store.keep([(5, b"x")]),
        lambda: store.deliver("x", 1),
        lambda: store.promise("x"),
        lambda: store.after_restore(9),
        store.withdraw,
    )


def check_withdrawal(opened):
    """A writer that withdraws leaves the store as it found it: without an epoch, or with what others kept."""
    store = opened()
    store.begin(SETTING)
    store.keep([(0, b"mine")])
    store.withdraw()
    assert (store.epochs(), store.kept(), store.next_step()) == ([], [], 0)
    store.close()
    other = SETTING._replace(bins=("west",), steps={"step": "1h"})
    for tally in (b"first", b"second"):
        store = opened()
        store.begin(other)
        store.keep([(3, tally)])
        if tally == b"second":
            store.withdraw()
        store.close()
    store = opened()
    store.begin(other)
    assert ([epoch.setting for epoch in store.epochs()], store.kept()) == ([other], [(3, b"first")])
    store.verify()
    store.close()


def listing(folder):
    """The files of a folder, but for those that come and go."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.endswith((".lock", "-shm"))}


def in_a_child(code, path, dies=0):
    """What a process prints that runs `code` with the names of this module and `path`."""
    preamble = "import os, resource\nfrom eventide.errors import StoreError\nfrom live_stores import *\n"
    preamble += "path = os.environ['STORE']\n"
    modules = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"STORE": str(path), "PYTHONPATH": modules}
    child = subprocess.run([sys.executable, "-c", preamble + code], env=environment, capture_output=True, text=True)
    assert child.returncode == dies, child.stderr
    return child.stdout
