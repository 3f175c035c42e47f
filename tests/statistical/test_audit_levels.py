"""The auditor attacks levels as one mechanism: what charges each level as if it were the only one is found."""

import pytest
from broken import ChargesTheLargestLevelOnly

from eventide.audit import audit_mechanism, neighbouring_pairs
from eventide.mechanisms.budget_absorption import BudgetAbsorption
from eventide.mechanisms.uniform import Uniform

SETTING = {"window": 1, "bins": 2, "parameters": {"levels": {}}}
FOUND = {"window": 2, "bins": 4, "parameters": {"levels": {"half": list("aabb")}}}


@pytest.mark.parametrize("setting", [SETTING, pytest.param(FOUND, marks=pytest.mark.slow)])
def test_a_version_that_charges_only_the_largest_level_is_found(setting):
    verdict = audit_mechanism(ChargesTheLargestLevelOnly, 1.0, **setting, runs=20_000)
    print(verdict)
    assert verdict.broken, str(verdict)


@pytest.mark.parametrize("cls", [Uniform, pytest.param(BudgetAbsorption, marks=pytest.mark.slow)])
def test_levels_that_share_one_ledger_pass_the_same_attacks(cls):
    pairs = list(neighbouring_pairs(1, 2, sensitivity=1, jumps=()))[::3]
    verdict = audit_mechanism(cls, 1.0, **SETTING, runs=8_000, alpha=1e-6, pairs=pairs)
    assert not verdict.broken, str(verdict)
