"""The runbook knows every code that the service or the command line can end with, and every alert."""

from __future__ import annotations

import re

import pytest
from documents import ROOT, generator

from eventide.cli import EXIT_CODES, GUARANTEE_VIOLATED, INTERRUPTED
from eventide.service.http.problems import CODES

RUNBOOK = (ROOT / "docs" / "how-to" / "runbook.md").read_text(encoding="utf-8")
ROWS = "\n".join(line.split("|")[1] for line in RUNBOOK.splitlines() if line.startswith("| "))
REFUSALS = {code for _, code, _ in generator("generate_reference").problems()} | {*CODES.values(), "refused"}
ALERTS = re.findall(r"alert: (\w+)", (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text())


@pytest.mark.parametrize("code", sorted(REFUSALS))
def test_every_refusal_of_the_service_is_explained(code):
    assert f"`{code}`" in ROWS


def test_nothing_else_is_explained():
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", ROWS)) == REFUSALS


@pytest.mark.parametrize("code", sorted({0, 1, *EXIT_CODES.values(), GUARANTEE_VIOLATED, INTERRUPTED}))
def test_every_exit_code_is_explained(code):
    assert f" {code} " in ROWS.splitlines()


@pytest.mark.parametrize("alert", ALERTS)
def test_every_alert_has_a_section_that_its_note_leads_to(alert):
    assert f"### {alert}\n" in RUNBOOK
    notes = (ROOT / "deploy" / "prometheus" / "alerts.yml").read_text()
    assert f"runbook: docs/how-to/runbook.md#{alert.lower()}\n" in notes
