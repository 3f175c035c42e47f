"""The page at /docs: the OpenAPI description of the service, written out for people.

It is made here, from the description alone, and has no script that draws it: the browser asks for nothing from
elsewhere, and the content security policy holds as it is. Every text is escaped.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eventide.display.pages import filled

Schema = Mapping[str, Any]
TYPES = {"boolean": "true or false", "integer": "whole number", "string": "text", "null": "null"}
LIMITS = {"minimum": "at least {}", "maximum": "at most {}", "maxLength": "at most {} characters"}
NO_LIMIT = 2**53  # which no number reaches


class Operation(NamedTuple):
    """One operation of the description."""

    method: str
    path: str
    told: Schema


def docs_page(description: Schema, address: str = "http://127.0.0.1:8710") -> str:
    """The whole page; `address` is where the service was asked for it."""
    info, operations = description["info"], list(_operations(description))
    tags = {tag["name"]: tag["description"] for tag in description["tags"]}
    groups = {name: [each for each in operations if name in each.told["tags"]] for name in tags}
    parts = {
        "title": html.escape(f"The API of {info['title']} {info['version']}"),
        "address": html.escape(address),
        "about": _words(info["description"]),
        "contents": "".join(_contents(name, each) for name, each in groups.items()),
        "groups": "".join(_group(name, tags[name], each) for name, each in groups.items()),
        "documents": "".join(_document(*each) for each in description["components"]["schemas"].items()),
    }
    return filled("eventide.service", "static/docs.html", parts)


def _operations(description: Schema) -> Iterator[Operation]:
    for path, kinds in description["paths"].items():
        for method, told in kinds.items():
            yield Operation(method.upper(), path, told)


def _contents(name: str, operations: Sequence[Operation]) -> str:
    lines = (
        f'<li><a href="#{each.told["operationId"]}">{_words(each.told["summary"])}</a></li>' for each in operations
    )
    return f"<li>{html.escape(name)}<ul>{''.join(lines)}</ul></li>"


def _group(name: str, about: str, operations: Sequence[Operation]) -> str:
    return (
        f'<section aria-labelledby="tag-{name}"><h2 id="tag-{name}">{html.escape(name)}</h2>'
        f"<p>{_words(about)}</p>{''.join(map(_operation, operations))}</section>"
    )


def _operation(operation: Operation) -> str:
    told = operation.told
    return _article(
        told["operationId"],
        told["summary"],
        f'<p class="call"><strong>{operation.method}</strong> <code>{html.escape(operation.path)}</code></p>'
        f"{_paragraphs(told['description'])}{_parameters(told.get('parameters', []))}{_body(told)}"
        f"{_answers(told['responses'])}",
    )


def _parameters(parameters: Sequence[Schema]) -> str:
    rows = [
        (
            f"<code>{html.escape(each['name'])}</code>",
            f"{html.escape(each['in'])}, {_kind(each['schema'])}{_limits(each['schema'])}",
            _words(each["description"]) + ("" if each.get("required") else _default(each["schema"])),
        )
        for each in parameters
    ]
    return _table("Parameters", ("name", "where and what", "meaning"), rows)


def _body(told: Schema) -> str:
    if "requestBody" not in told:
        return ""
    body = told["requestBody"]
    return f"<h4>Body</h4><p>{_words(body['description'])} {_media_types(body['content'])}</p>"


def _answers(responses: Schema) -> str:
    """What comes back; refusals, which are much alike everywhere, are folded up."""
    rows = {
        status: (
            f"<code>{html.escape(status)}</code>",
            _words(answer["description"]) + (f" {_media_types(answer['content'])}" if status == "200" else ""),
            ", ".join(sorted({_kind(each["schema"]) for each in answer["content"].values() if each.get("schema")})),
        )
        for status, answer in responses.items()
    }
    heads = ("status", "meaning", "document")
    good, refused = _table("Answer", heads, [rows.pop("200")]), _table("Refusals", heads, [*rows.values()])
    folded = f"<details><summary>Refusals: {', '.join(rows)}</summary>{refused}</details>" if rows else ""
    return good + folded


def _document(name: str, schema: Schema) -> str:
    needed = schema.get("required", [])
    rows = [
        (
            f"<code>{html.escape(field)}</code>",
            _kind(each) + ("" if field in needed else ", may be left out"),
            _words(each.get("description", "")),
        )
        for field, each in schema.get("properties", {}).items()
    ]
    fields = _table("Fields", ("field", "what", "meaning"), rows)
    return _article(_anchor(name), name, _paragraphs(schema.get("description", "")) + fields)


def _article(anchor: str, title: str, body: str) -> str:
    return (
        f'<article id="{anchor}" aria-labelledby="{anchor}-title"><h3 id="{anchor}-title">{_words(title)}</h3>'
        f"{body}</article>"
    )


def _kind(schema: Schema) -> str:
    """What a value is, in words; a document of its own is a link to where it is described."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f'<a href="#{_anchor(name)}">{html.escape(name)}</a>'
    if "anyOf" in schema:
        return " or ".join(map(_kind, schema["anyOf"]))
    if values := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return " or ".join(f"<code>{html.escape(str(value))}</code>" for value in values)
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    if isinstance(inside := schema.get("additionalProperties"), Mapping):
        return f"for each name {_kind(inside)}"
    kind = str(schema.get("type", "anything"))
    return TYPES.get(kind, kind)


def _limits(schema: Schema) -> str:
    """The limits of a parameter that may well be reached."""
    parts = [schema, *schema.get("anyOf", [])]
    told = [
        text.format(f"{part[name]:,}")
        for part in parts
        for name, text in LIMITS.items()
        if part.get(name) not in (None, 0, NO_LIMIT)
    ]
    return "".join(f", {each}" for each in told)


def _default(schema: Schema) -> str:
    default = schema.get("default")
    return "" if default is None else f" Left out: <code>{html.escape(str(default))}</code>."


def _media_types(content: Iterable[str]) -> str:
    return " ".join(f"<code>{html.escape(kind)}</code>" for kind in content)


def _table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table whose cells are HTML already; none where there are no rows."""
    if not rows:
        return ""
    head = "".join(f'<th scope="col">{each}</th>' for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _anchor(name: str) -> str:
    return f"document-{name}"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{_words(each)}</p>" for each in text.split("\n\n") if each)


def _words(text: str) -> str:
    """A text with what stands between backticks as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
