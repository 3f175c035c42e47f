"""operate.md and operate-publish.md, followed as far as a test can: in folders of its own, with a stand-in for systemd.

The first block makes a machine, which test_containerfile.py does in a root of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from documents import ROOT, Reader
from nats_server import free_port

from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.slow

SYSTEMCTL = """#!{python}
# Does what a unit says, for as long as the test goes on.
import os, re, signal, subprocess, sys, time
words = [word for word in sys.argv[1:] if not word.startswith("--")]
if words[0] == "daemon-reload":
    sys.exit()
name = words[1] if "." in words[1] else words[1] + ".service"
if words[0] == "stop":
    process = int(open("{folder}/pid").read())
    os.kill(process, signal.SIGTERM)
    state = ["ps", "-o", "state=", "-p", str(process)]
    while subprocess.run(state, capture_output=True, text=True).stdout.strip() not in ("", "Z"):
        time.sleep(0.1)
    sys.exit()
if name == "prometheus.service":
    sys.exit(subprocess.call(["promtool", "check", "config", "{folder}/etc/prometheus/prometheus.yml"]))
unit = open("{folder}/etc/systemd/system/" + name).read()
if name.endswith(".timer"):
    sys.exit()
command = re.search("^ExecStart=(.*)", unit, re.MULTILINE)[1].split()
if "Type=oneshot" in unit:
    sys.exit(subprocess.call(command))
with open("{folder}/journal", "w") as journal:
    started = subprocess.Popen(command, stdout=journal, stderr=journal, start_new_session=True)
open("{folder}/pid", "w").write(str(started.pid))
"""


@pytest.fixture
def machine(tmp_path):
    """Folders that stand for those of a machine, and a systemctl."""
    for name in ("curl", "promtool", "logrotate"):
        if shutil.which(name) is None:
            pytest.skip(f"needs {name}: install it with the system's package manager")
    for folder in ("etc/systemd/system", "etc/prometheus", "etc/logrotate.d", "usr/local/lib/eventide", "bin"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/local/lib/eventide/bin").symlink_to(Path(sys.executable).parent)
    stand_in = tmp_path / "bin" / "systemctl"
    stand_in.write_text(SYSTEMCTL.format(python=sys.executable, folder=tmp_path))
    stand_in.chmod(0o700)
    yield tmp_path
    if (tmp_path / "pid").exists():
        process = int((tmp_path / "pid").read_text())
        os.kill(process, signal.SIGTERM)


@pytest.fixture
def reader(machine):
    """Somebody who follows a page on that machine, which has no users but this one."""
    here = {f"{place}/": f"{machine}{place}/" for place in ("/etc", "/var", "/usr")}
    here |= {"8710": str(free_port()), "8711": str(free_port()), "runuser -u eventide -- ": ""}
    here |= {" -o eventide -g eventide": "", " -o root -g eventide": "", " -o prometheus -g prometheus": ""}
    here |= {"chgrp eventide": "true"}
    deploy = shutil.copytree(ROOT / "deploy", machine / "deploy")
    reader = Reader(machine, here, PATH=f"{machine}/bin:{Path(sys.executable).parent}:{os.environ['PATH']}")
    for path in [*deploy.glob("systemd/*"), *deploy.glob("prometheus/*"), *deploy.glob("logrotate/*")]:
        path.write_text(re.sub(r"\n *su .*", "", reader._here(path.read_text())))
    return reader


def restored(store):
    with closing(open_store(store, read_only=True)) as opened:
        return [epoch.restored for epoch in opened.epochs()]


def test_from_an_empty_machine_to_a_service(machine, reader, capsys):
    reader.follow((ROOT / "docs" / "how-to" / "operate.md").read_text(encoding="utf-8"))
    assert '"who": "read"' in (machine / "var/lib/eventide/access.jsonl").read_text()
    assert (machine / "var/backups/eventide/city.store").exists()
    assert restored(machine / "var/lib/eventide/city.store") == [False, True]
    assert "Error" not in (machine / "journal").read_text()


def test_one_publication_is_run_and_put_back(machine, reader, capsys):
    """With steps of a second from now on instead of ten minutes, and a mechanism that needs no compiling."""
    now = datetime.now(UTC).isoformat()
    short = f"--step 1s --start {now} --mechanism uniform"
    reader.replaced |= {"--step 10min --late 1min": short, "status 60": "status 20"}
    (machine / "var/log/shop").mkdir(parents=True)
    (machine / "var/log/shop/visits.jsonl").write_text(f'{{"at": "{now}", "visitor": "anna", "page": "home"}}\n')
    reader.follow((ROOT / "docs" / "how-to" / "operate-publish.md").read_text(encoding="utf-8"))
    assert restored(machine / "var/lib/eventide/visits.store") == [False, True]
    assert '"fresh": true' in (machine / "var/lib/eventide/visits.jsonl").read_text()
    assert "Error" not in (machine / "journal").read_text()
