"""The API in words: every operation, parameter, answer and field is described, and the page at /docs shows them all."""

from __future__ import annotations

import re

import pytest
from running_service import configuration, running

from eventide.service.http.guard import CONTENT_SECURITY_POLICY

SENTENCE = re.compile(r"[A-Z`].*\.", re.DOTALL)


@pytest.fixture(scope="module")
def up(tmp_path_factory):
    with running(configuration(tmp_path_factory.mktemp("docs")), truth=lambda first: []) as up:
        yield up


@pytest.fixture(scope="module")
def description(up):
    return up.client().get("/openapi.json").json()


@pytest.fixture(scope="module")
def page(up):
    return up.client().get("/docs")


def operations(description):
    return [(f"{kind} {path}", each) for path, kinds in description["paths"].items() for kind, each in kinds.items()]


def test_every_operation_has_a_summary_and_a_description(description):
    told = operations(description)
    assert len(told) >= 15
    for where, operation in told:
        words = operation["summary"].split()
        assert 1 < len(words) <= 7, where
        assert operation["summary"] != operation["operationId"].replace("_", " ").title(), where  # made by nobody
        assert SENTENCE.fullmatch(operation["description"]), where
        assert operation["description"] != operation["summary"], where


def test_every_parameter_body_and_answer_is_described(description):
    for where, operation in operations(description):
        for parameter in operation.get("parameters", []):
            assert SENTENCE.fullmatch(parameter["description"]), (where, parameter["name"])
        if "requestBody" in operation:
            assert SENTENCE.fullmatch(operation["requestBody"]["description"]), where
        for status, answer in operation["responses"].items():
            assert SENTENCE.fullmatch(answer["description"]), (where, status)
            assert answer["description"] != "Successful Response", where


def test_every_document_and_each_of_its_fields_is_described(description):
    for name, schema in description["components"]["schemas"].items():
        assert SENTENCE.fullmatch(schema["description"]), name
        for field, each in schema["properties"].items():
            assert SENTENCE.fullmatch(each["description"]), (name, field)


def test_the_page_tells_everything_and_loads_only_our_own_files(page, description):
    assert page.status_code == 200
    assert page.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    for where, operation in operations(description):
        assert f'id="{operation["operationId"]}"' in page.text, where
    for name in description["components"]["schemas"]:
        assert f'id="document-{name}"' in page.text
    loaded = re.findall(r'(?:src|<link[^>]* href)="([^"]+)"', page.text)
    assert set(loaded) == {"/assets/icon.svg", "/assets/style.css", "/assets/docs.css", "/assets/theme.js"}


def test_every_link_of_the_page_leads_somewhere(page):
    there = set(re.findall(r'id="([^"]+)"', page.text))
    assert set(re.findall(r'href="#([^"]+)"', page.text)) <= there


def test_the_example_asks_where_the_page_was_asked_for(up, page):
    assert f"{up.address}/v1/streams</pre>" in page.text
    odd = up.client().get("/docs", headers={"Host": 'a"<b>'}).text
    assert '"<b>' not in odd
