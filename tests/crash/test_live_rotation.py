"""A log that logrotate rotates while it is followed: killed on both sides, each event still counts once.

The twin reads the same events from one file that nobody rotates.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import threading
import time
from collections import Counter

import pytest
from publisher_lives import FOLLOWED, KILLED, PRODUCED, Producer, check_like_twin, followed, new_life

PATH = "/usr/sbin:" + os.environ["PATH"]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("logrotate", path=PATH) is None, reason="needs logrotate"),
]
HOW = {
    "renamed": "create",
    "renamed and compressed": "create\ncompress\ndelaycompress",
    "dated": "create\ndateext\ndateformat -%Y%m%d-%s\ncompress",
    "copied": "copytruncate",
}


class Rotation:
    """Rotates a log, and is killed in the middle now and then where nothing is lost by that."""

    def __init__(self, folder, log, how, chance):
        self.configuration, self.state = folder / "logrotate.conf", folder / "logrotate.state"
        self.configuration.write_text(f"{log} {{\nsu root root\nrotate 1000\n{HOW[how]}\n}}\n")
        self.configuration.chmod(0o600)
        self.chance, self.how = chance, how

    def __call__(self):
        command = ["logrotate", "--force", "--state", self.state, self.configuration]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, env={"PATH": PATH}, **quiet) as process:
            if self.how == "renamed" and self.chance.random() < 0.3:
                threading.Event().wait(self.chance.uniform(0, 0.005))
                process.kill()


@pytest.mark.parametrize("how", HOW)
def test_a_log_is_followed_over_rotations_and_deaths(lives, tmp_path, how):
    folder = tmp_path / "logs"
    folder.mkdir()
    log, everything = folder / "events.jsonl", tmp_path / "everything.jsonl"
    log.touch()
    begin = time.time()
    life, twin = new_life(tmp_path, log, mechanism="uniform", **followed(begin))
    chance, writing = random.Random(6), threading.Lock()
    rotate = Rotation(tmp_path, log, how, chance)

    def append(event):
        line = json.dumps(event) + "\n"
        with writing, log.open("a") as file:
            file.write(line)
        with everything.open("a") as file:
            file.write(line)

    producer = Producer(begin + PRODUCED, append)
    over = threading.Event()

    def rotate_again_and_again():
        while not over.wait(chance.uniform(0.05, 0.6)):
            with writing if how == "copied" else threading.Lock():  # or lines are lost, as logrotate warns
                rotate()

    rotating = threading.Thread(target=rotate_again_and_again)
    producer.start()
    rotating.start()
    ends = Counter()
    while producer.is_alive():
        ends[lives(life, kill_after=chance.uniform(0.1, 1.2))] += 1
    over.set()
    rotating.join()
    producer.join()
    assert set(ends) == {KILLED}
    assert len(list(folder.iterdir())) > 4
    assert lives(life) == 0
    complete = twin["feed"] | {"follow": False, "late": None}
    twin |= {"feed": complete, "source": str(everything)}
    releases = check_like_twin(lives, life, twin, tmp_path, FOLLOWED)
    assert sum(sum(json.loads(release)["values"]) for _, release in releases) > 20
