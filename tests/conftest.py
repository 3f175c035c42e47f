"""What every test shares: repeatable examples, what a marked test needs, and when a skip is a failure.

Plain `pytest` leaves out all marked tests: they are long, or need a program. Asked for by a mark, a test whose program
is missing is skipped with a sentence. With EVENTIDE_REQUIRE_ALL=1 a skipped test fails: where everything is installed,
nothing may go untested unnoticed.
"""

from __future__ import annotations

import gc
import importlib.util
import os
import shutil
import signal
from pathlib import Path

import hypothesis
import pytest

BY_THE_CLOCK = [hypothesis.HealthCheck.too_slow]  # a machine that is slow or stands still is no fault of a test
ANY_PROFILE = {"deadline": None, "suppress_health_check": BY_THE_CLOCK}
hypothesis.settings.register_profile("eventide", derandomize=True, max_examples=35, **ANY_PROFILE)
hypothesis.settings.register_profile("random", max_examples=200, print_blob=True, **ANY_PROFILE)
hypothesis.settings.load_profile("eventide")

SHELVES = ("slow", "browser", "database", "engine", "nightly")

PROGRAMS = {"browser": "chromium", "database": "postgres", "engine": "java"}
MODULES = {"browser": "playwright", "database": "psycopg", "engine": "pyspark"}


class SkipsFail:
    """Turns each skipped test, and each skipped file of tests, into a failed one."""

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self):
        return _fail_if_skipped((yield))

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self):
        return _fail_if_skipped((yield))


def _fail_if_skipped(report):
    if report.skipped and not hasattr(report, "wasxfail"):
        *_, reason = report.longrepr
        report.outcome, report.longrepr = "failed", f"{reason} (with EVENTIDE_REQUIRE_ALL=1 a skip is a failure)"
    return report


def pytest_configure(config):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # children of a run in the background would ignore it
    if os.environ.get("EVENTIDE_REQUIRE_ALL") == "1":
        config.pluginmanager.register(SkipsFail())


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Thousands of tests and all libraries stay to the end: nobody need look among them for what to free."""
    gc.disable()
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


def pytest_ignore_collect(collection_path, config):
    """A folder named like a mark holds marked tests only; where no mark is named, they are not even imported."""
    return True if collection_path.name in PROGRAMS and not config.option.markexpr else None


def pytest_collection_modifyitems(config, items):
    items.sort(key=lambda item: "crash" in item.path.parts)  # last: their processes find compiled what others needed
    if config.option.markexpr:
        return
    marked = {item for item in items if any(item.get_closest_marker(shelf) for shelf in SHELVES)}
    config.hook.pytest_deselected(items=list(marked))
    items[:] = [item for item in items if item not in marked]


def pytest_runtest_setup(item):
    for mark in PROGRAMS.keys() & {mark.name for mark in item.iter_markers()}:
        if not _installed(PROGRAMS[mark]):
            pytest.skip(f"needs {PROGRAMS[mark]}: install it with the system's package manager")
        if importlib.util.find_spec(MODULES[mark]) is None:
            pytest.skip(f"needs {MODULES[mark]}: pip install '.[test-all]'")


def _installed(program):
    """Whether it is on the path, or where Debian keeps PostgreSQL's."""
    return shutil.which(program) is not None or any(Path("/usr/lib/postgresql").glob(f"*/bin/{program}"))
