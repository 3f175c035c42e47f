"""Kills a pan-private publisher of a followed file at every point at which it writes, in forks of this process.

`python noisy_deaths.py FOLDER STORE` prints what came of it, and of a twin that nobody kills; STORE has {} where a name
goes.
"""

import json
import os
import signal
import sys
from pathlib import Path

from noisy_lives import Life, moment

from eventide.live import faults
from eventide.live.stores.open_store import open_store
from eventide.live.stores.verification import verify

POINTS = (
    *("inside-epoch", "after-epoch", "before-draw", "after-draw", "before-snapshot", "after-snapshot"),
    *("before-commit", "inside-transaction", "after-commit"),
)
SLOTS = 40  # of a quarter of a minute
EVENTS = {3: "a", 5: "b", 6: "b", 9: "a", 14: "b", 15: "b", 16: "a", 21: "a", 22: "a", 27: "b"}
INTRUSION = 18  # the slot after which somebody has seen the memory


def live(folder, store, point, intruded):
    """One life, from the slot that the last one came to; killed at a point, if it comes there."""
    faults._point, faults._passings_left = point, 1
    slot = folder / "slot"
    begin = int(slot.read_text()) if slot.exists() else 1
    options = {"given": (("epsilon", 1000), ("window", 4)), "now": (begin - 1) / 4, "late": "1min"}
    life = Life(folder, open_store(store, for_tests=True), **options)
    for number in range(begin, SLOTS + 1):
        sent = folder / f"sent {number}"
        if number in EVENTS and not sent.exists():
            life.write((number / 4 - 0.1, EVENTS[number]))
            sent.touch()
        if intruded and number == INTRUSION and not (folder / "announced").exists():
            (folder / "announced").touch()
            life.publisher.store.announce_intrusion(moment(number / 4))
        life.go_to(number / 4)
        slot.write_text(str(number + 1))
    life.close()


def in_a_fork(*given):
    """Whether a life was killed."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            live(*given)
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or os.WEXITSTATUS(status) == 0, "a life failed"
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def outcome(folder, place, points, intruded):
    """What a store holds after a publisher was killed at each of these points and came to its end."""
    folder.mkdir()
    store = place.format(folder.name)
    for point in points:
        assert in_a_fork(folder, store, point, intruded), f"{point} was never passed"
    assert not in_a_fork(folder, store, "none", intruded)
    opened = open_store(store, read_only=True)
    opened.verify()
    found = verify(opened.entries(), opened.epochs(), opened.next_step())
    told = {
        "problems": found.problems,
        "lines": [line.decode() for _, line in opened.releases()],
        "position": opened._database.all("SELECT position FROM head")[0][0],
        "kept": len(opened.kept()),
        "intrusions": len(opened.intrusions()),
    }
    opened.close()
    return told


def main(folder, store):
    ways = {"twin": ((), False), "killed": (POINTS, False), "seen": ((), True), "seen_and_killed": (POINTS, True)}
    print(json.dumps({name: outcome(folder / name, store, *way) for name, way in ways.items()}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
