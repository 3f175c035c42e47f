"""The OpenAPI description keeps its word: whatever is asked, the answer is one it names, and never a fault."""

from __future__ import annotations

from fractions import Fraction

import hypothesis
import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck
from running_service import ALL_REFUSED, PATIENCE, configuration, running, stream

from eventide.service.config.settings import Limits
from eventide.windows.workload import Query

schemathesis = pytest.importorskip("schemathesis", reason="needs schemathesis: pip install '.[test-all]'")
from schemathesis.specs.openapi.checks import positive_data_acceptance  # noqa: E402

pytestmark = pytest.mark.slow

EXAMPLES = 60


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("described")
    asked = stream(folder, queries=(Query(2, 1),), queries_epsilon=Fraction(1, 2))
    with running(configuration(folder, [asked], limits=Limits(requests_per_second=100_000))) as up:
        up.pass_steps(3)
        yield up


@pytest.mark.parametrize("role", ["ingest", "read", "operate", None])
def test_no_request_leads_to_a_fault(city, role):
    description = schemathesis.openapi.from_url(f"{city.address}/openapi.json")
    headers = {"Authorization": f"Bearer {city.tokens[role]}"} if role else {}
    tried = 0
    for result in description.get_all_operations():
        operation = result.ok()
        if operation.path.endswith("/stream"):
            continue  # it never ends

        @hypothesis.settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        @hypothesis.given(case=operation.as_strategy(), known=st.booleans())
        def ask(case, known):
            if known and case.path_parameters:
                case.path_parameters = {"name": "city"}
            answer = case.call(headers=headers, timeout=PATIENCE)
            assert answer.status_code < 500
            refused = answer.status_code == ALL_REFUSED and answer.json()["code"] == "all-refused"  # for what it says
            case.validate_response(answer, excluded_checks=[positive_data_acceptance] if refused else [])

        ask()
        tried += 1
    assert tried >= 12
