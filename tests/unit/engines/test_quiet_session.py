"""A session that `eventide publish --engine spark` starts: what counts events is off, unless somebody asks for it."""

from __future__ import annotations

import os
import shutil
import subprocess
from unittest.mock import MagicMock

import pytest

from eventide.engines.spark_session import quiet_session

pytestmark = pytest.mark.slow  # imports pyspark


def options_of_java(monkeypatch, environment):
    monkeypatch.setattr(pytest.importorskip("pyspark.sql"), "SparkSession", MagicMock())
    monkeypatch.setattr(os, "environ", environment)
    quiet_session()
    return environment["SPARK_SUBMIT_OPTS"].split()


def test_the_web_page_is_off_and_errors_alone_are_logged(monkeypatch):
    page, log = sorted((each for each in options_of_java(monkeypatch, {}) if each.startswith("-D")), key=len)
    assert page == "-Dspark.ui.enabled=false"
    assert log.endswith("quiet_log4j2.properties")


def test_a_java_without_one_of_the_options_starts_as_well(monkeypatch):
    options = [each for each in options_of_java(monkeypatch, {}) if each.startswith("-XX:")]
    assert options[0] == "-XX:+IgnoreUnrecognizedVMOptions"
    assert len(options) == 5
    java = shutil.which("java")
    if java is None:
        pytest.skip("java is missing")
    subprocess.run([java, *options, "-XX:NoSuchOption=1", "-version"], check=True, capture_output=True)


def test_options_of_the_user_are_kept(monkeypatch):
    assert options_of_java(monkeypatch, {"SPARK_SUBMIT_OPTS": "-Xmx1g"}) == ["-Xmx1g"]
