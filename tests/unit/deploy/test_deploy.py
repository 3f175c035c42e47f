"""The files for operators fit the code: their metrics exist, their paths agree, and their own checkers accept them."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from running_service import configuration, event, running, stream

from eventide.errors import StoreError
from eventide.live.accounts.open_account import create_account
from eventide.live.stores.open_store import open_store
from eventide.service.config.config_file import examine

ROOT = Path(__file__).parents[3]
DEPLOY = ROOT / "deploy"
SHOWING = [DEPLOY / "prometheus" / "alerts.yml", DEPLOY / "grafana" / "eventide.json"]
UNIT = (DEPLOY / "systemd" / "eventide.service").read_text()


def program(name, package):
    if shutil.which(name) is None:
        pytest.skip(f"needs {name}: install Debian's package {package}")
    return name


def checked(*command, cwd=None):
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


def backed_up(*folders):
    command = [sys.executable, str(DEPLOY / "systemd" / "backup.py"), *map(str, folders)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    """The names of all metrics of a service that has a sink and has refused an event."""
    folder = tmp_path_factory.mktemp("metrics")
    with running(configuration(folder, [stream(folder, out=(str(folder / "city.jsonl"),))])) as up:
        up.post([event(), event("atlantis")])
        up.pass_steps()
        text = up.client("operate").get("/metrics").text
    return set(re.findall(r"^(eventide_\w+)[{ ]", text, re.MULTILINE))


@pytest.mark.parametrize("file", SHOWING, ids=lambda path: path.name)
def test_every_metric_that_is_drawn_or_watched_exists(metrics, file):
    named = set(re.findall(r"eventide_\w+", file.read_text()))
    assert len(named) > 3
    assert named <= metrics


def test_every_metric_stands_in_the_reference_and_is_drawn(metrics):
    metrics = {name for name in metrics if not name.endswith("_created")}
    reference = (ROOT / "docs" / "reference" / "metrics.md").read_text()
    assert metrics == set(re.findall(r"^\| `(eventide_\w+)`", reference, re.MULTILINE))
    assert metrics <= set(re.findall(r"eventide_\w+", (DEPLOY / "grafana" / "eventide.json").read_text()))


def test_the_dashboard_says_what_is_raw():
    panels = json.loads((DEPLOY / "grafana" / "eventide.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for panel in panels:
        raw = any("eventide_raw_" in target["expr"] for target in panel["targets"])
        assert panel["title"].startswith("Raw, for operators only") == raw


def selected(document, selector):
    """What a selector of the dashboard gives, which is one of few forms of JSONata: `root.{"name": key[0], ...}[]`."""
    root, fields = re.fullmatch(r"(\$|\w+)\.\{(.*)\}\[\]", selector).groups()
    found = [document] if root == "$" else document[root]
    read = {
        "": lambda each, key: each if key == "$" else each[key],
        "[0]": lambda each, key: each[key][0],
    }
    fields = [re.fullmatch(r'"(\w+)": (\$|\w+)((?:\[0\])?)', field).groups() for field in fields.split(", ")]
    return [{name: read[place](each, key) for name, key, place in fields} for each in found]


def test_the_dashboard_of_releases_reads_what_the_service_answers(tmp_path):
    board = json.loads((DEPLOY / "grafana" / "eventide-releases.json").read_text())
    _, streams, bins = board["templating"]["list"]
    chosen = {"stream": "city", "bin": "north & south"}
    places = ("harbour", chosen["bin"])
    with running(configuration(tmp_path, [stream(tmp_path, bins=places, filter="posterior-median")])) as up:
        up.post([event("harbour"), event(chosen["bin"])])
        up.pass_steps(3)

        def answered(target):
            url = re.sub(r"\$\{(\w+):percentencode\}", lambda found: quote(chosen[found[1]], safe=""), target["url"])
            answer = up.client("read").get(url)
            assert answer.status_code == 200
            rows = selected(answer.json(), target["root_selector"])
            assert rows
            assert all(list(row) == [column["selector"] for column in target["columns"]] for row in rows)
            return rows

        assert answered(streams["query"]["infinityQuery"]) == [{"name": "city"}]
        assert answered(bins["query"]["infinityQuery"]) == [{"name": name} for name in places]
        series, scales, budget, promise = (answered(panel["targets"][0]) for panel in board["panels"])
        assert [row["start"][:16] for row in series] == [f"2026-01-01T00:0{minute}" for minute in range(3)]
        assert all(row["low"] <= row["value"] <= row["high"] for row in series)
        assert len(scales) == 3
        assert 0 < budget[0]["worst"] <= budget[0]["epsilon"]
        assert "epsilon" in promise[0]["sentence"]


def test_no_alert_tells_a_number_of_events():
    assert "$value" not in (DEPLOY / "prometheus" / "alerts.yml").read_text()


def test_everything_is_installed_in_the_same_place():
    container = (DEPLOY / "container" / "Containerfile").read_text()
    for place in ("/usr/local/lib/eventide/compiled", "/etc/eventide/eventide.toml", "/var/lib/eventide"):
        assert place in container
        assert place in UNIT


def test_a_backup_of_stores_in_use_is_whole_and_private(tmp_path):
    target = tmp_path / "backups"
    target.mkdir()
    with running(configuration(tmp_path)) as up:
        up.post([event()])
        up.pass_steps(3)
        for _ in range(2):  # the second replaces the first
            assert backed_up(tmp_path, target).stdout == f"Files that were copied to {target}: 2.\n"
        up.pass_steps()
    copy = open_store(target / "city.store", read_only=True)
    copy.verify()
    assert copy.next_step() == 3
    copy.close()
    names = {path.name for path in target.iterdir()} - {"city.store-wal", "city.store-shm"}
    assert names == {"city.store", "city.population"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in target.iterdir()} == {0o600}
    assert sqlite3.connect(target / "city.store").execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_store_that_cannot_be_copied_holds_up_no_other_file(tmp_path):
    lost, target = tmp_path / "lost", tmp_path / "backups"
    lost.mkdir()
    target.mkdir()
    for name in ("a.store", "z.store"):
        with closing(sqlite3.connect(lost / name)) as store:
            store.execute("CREATE TABLE step (number INTEGER)")
    (lost / "m.store").write_text("what was once a store")
    (target / "m.store").write_text("the copy of before")
    (lost / "city.population").write_text("{}")
    (lost / "eventide.tokens").write_text("# none")
    done = backed_up(lost, target)
    assert done.returncode == 1
    assert done.stderr == f"{lost / 'm.store'} was not copied: file is not a database\n"
    assert done.stdout == f"Files that were copied to {target}: 4.\n"
    names = ["a.store", "city.population", "eventide.tokens", "m.store", "z.store"]
    assert sorted(path.name for path in target.iterdir()) == names
    assert (target / "m.store").read_text() == "the copy of before"


def test_stores_and_accounts_are_backed_up_whatever_their_names_are(tmp_path):
    live, target = tmp_path / "live", tmp_path / "backups"
    live.mkdir()
    target.mkdir()
    open_store(live / "visits.db").close()
    create_account(live / "people", "people", 1, "7d")
    (live / "visits.csv").write_text("step,start,home\n")
    done = backed_up(live, target)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in target.iterdir()) == ["people", "visits.db"]
    open_store(target / "visits.db", read_only=True).close()


def test_a_backup_of_a_wrong_folder_fails(tmp_path):
    (empty := tmp_path / "empty").mkdir()
    done = backed_up(empty, tmp_path)
    assert (done.returncode, done.stderr) == (1, f"There is nothing of eventide in {empty}.\n")
    (tmp_path / "eventide.tokens").write_text("# of a service whose stores are in PostgreSQL")
    assert backed_up(tmp_path, empty).returncode == 0
    done = backed_up(tmp_path, empty / "..")
    assert (done.returncode, "copies would take their places" in done.stderr) == (1, True)
    missing = tmp_path / "missing"
    assert backed_up(missing, tmp_path).stderr == backed_up(tmp_path, missing).stderr == f"{missing} is not a folder\n"
    assert backed_up(tmp_path).stderr == "Usage: backup.py FROM TO\n"


def test_a_backup_that_is_put_back_is_known_for_one(tmp_path):
    """On a new machine nothing but the backup is left: a note that nothing is missing would let steps come again."""
    lost, new = tmp_path / "lost", tmp_path / "new"
    lost.mkdir()
    new.mkdir()
    with running(configuration(lost)) as up:
        up.pass_steps(3)
        assert backed_up(lost, new).returncode == 0
        up.pass_steps()
    shutil.rmtree(lost)
    with pytest.raises(StoreError, match="--after-restore"), running(configuration(new)):
        pass
    (new / "tokens").unlink()
    with running(configuration(new), after_restore=True) as up:
        assert up.service.streams["city"].measured_from == 2 + 5


@pytest.mark.slow
def test_prometheus_accepts_its_files_and_the_alerts_come_when_they_should(tmp_path):
    promtool = program("promtool", "prometheus")
    folder = shutil.copytree(DEPLOY / "prometheus", tmp_path / "prometheus")
    (folder / "operate.token").touch()
    assert "SUCCESS" in checked(promtool, "check", "config", "prometheus.yml", cwd=folder)
    assert "SUCCESS" in checked(promtool, "check", "rules", "alerts.yml", cwd=folder)
    assert "SUCCESS" in checked(promtool, "test", "rules", "alerts_test.yml", cwd=folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["eventide.service", "eventide-backup.service", "eventide-backup.timer"])
def test_systemd_accepts_its_units(tmp_path, name):
    analyze = program("systemd-analyze", "systemd")
    for path in (DEPLOY / "systemd").glob("*.*"):  # the program of a test stands for the one that is installed
        (tmp_path / path.name).write_text(re.sub(r"ExecStart=\S+", f"ExecStart={sys.executable}", path.read_text()))
    assert "eventide" not in checked(analyze, "verify", "--man=no", str(tmp_path / name))
    if name.endswith(".service"):
        said = checked(analyze, "security", "--offline=true", "--threshold=20", str(tmp_path / name))
        assert float(re.search(r"exposure level for \S+: ([\d.]+)", said)[1]) <= 2.0


@pytest.mark.slow
def test_the_manifests_are_those_of_the_image(tmp_path):
    yaml = pytest.importorskip("yaml", reason="needs pyyaml: pip install '.[test-all]'")
    text = (DEPLOY / "kubernetes" / "eventide.yaml").read_text()
    settings, service, stateful = yaml.safe_load_all(text)
    (tmp_path / "eventide.toml").write_text(settings["data"]["eventide.toml"])
    config, mistakes = examine(tmp_path / "eventide.toml")
    assert not mistakes
    pod = stateful["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"http": config.server.port, "health": config.server.health_port}
    assert service["spec"]["ports"][0]["targetPort"] == "http"
    assert stateful["spec"]["replicas"] == 1
    assert container["args"][:2] == ["serve", "/etc/eventide/eventide.toml"]
    places = {mount["mountPath"] for mount in container["volumeMounts"]}
    assert {str(config.streams[0].store.parent), str(config.access.tokens.parent)} <= places
    user = (DEPLOY / "container" / "Containerfile").read_text().partition("\nUSER ")[2].partition(":")[0]
    assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == int(user)
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert {container[probe]["httpGet"]["port"] for probe in ("livenessProbe", "readinessProbe", "startupProbe")} == {
        "health"
    }
