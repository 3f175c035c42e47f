"""Takes batches of events: each is answered when it is durable, or refused with a sentence that says what to do.

A batch arrives when its body is complete, and is stamped then, before it is read; sent again with its key, it counts
once. Well-formed batches are read as columns. Only where something is wrong are events looked at one by one, and what
cannot be read is refused event by event, with a reason and no data. A body has a largest size and a longest time.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import json
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any, NamedTuple

import orjson
import pyarrow as pa
import pyarrow.compute as pc
from anyio import CapacityLimiter, to_thread
from fastapi import APIRouter, Depends, Header, Request
from starlette.requests import ClientDisconnect

from eventide.errors import StateError
from eventide.events.reader import EventReader, Events
from eventide.service.config.settings import Limits
from eventide.service.http import models
from eventide.service.http.problems import MEDIA_TYPE, Problem, refusals
from eventide.service.http.reading_routes import Name
from eventide.service.http.tokens import Token
from eventide.service.pushed_feed import Busy, Halted, Receipt
from eventide.service.service import Service

JSON, NDJSON = "application/json", "application/x-ndjson"
MEGABYTE = 1 << 20
LONGEST_FIELD = 1_000  # characters
LONGEST_NUMBER = len(str(-(2**63)))
MOST_TOLD = 100  # refused events that an answer names
NOT_AN_OBJECT = "not a JSON object"
WITHOUT_TIME = "no time in the field {!r}"
WITHOUT_BIN = "no bin in the field {!r}"
TOO_LARGE = "a field is too long"
OUT_OF_RANGE = "a number is out of range"
NOT_UNICODE = "a text has half a character"
KEY = re.compile(r"[\x21-\x7e]{1,200}")
BODIES_AT_ONCE = 1  # read at a time: more would be no faster, and keep the loop from stamping what arrives meanwhile

_KEY = Header(
    description="A name for the batch, so that it counts once however often it is sent. 1 to 200 visible characters.",
    json_schema_extra={"pattern": f"^{KEY.pattern}$"},
)
_ONE_EVENT = {"type": "object", "additionalProperties": True}
_BODY = {
    "requestBody": {
        "description": (
            "The events: a JSON array of objects, or one object a line. Each has the fields that the stream is set up "
            'with, such as `{"time": "2026-01-01T10:20:00Z", "user": "17", "bin": "harbour"}`.'
        ),
        "required": True,
        "content": {
            JSON: {"schema": {"type": "array", "items": _ONE_EVENT}},
            NDJSON: {"schema": {"type": "string"}},
        },
    }
}

_ALL_REFUSED: dict[int | str, dict[str, Any]] = {
    422: {
        "description": "Every event of the batch was refused, for the reasons in `refused`; nothing of it counts.",
        "model": models.RefusedBatch,
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/RefusedBatch"}}},
    }
}


def add_ingest(router: APIRouter, service: Service) -> None:
    """The operation that takes events."""
    may_ingest = Depends(service.doorkeeper.needs("ingest"))
    reading = CapacityLimiter(BODIES_AT_ONCE)

    @router.post(
        "/streams/{name}/events",
        tags=["ingest"],
        summary="Send events",
        response_description="What became of the batch.",
        openapi_extra=_BODY,
        responses=refusals(400, 401, 403, 404, 408, 413, 415, 429, 503) | _ALL_REFUSED,
    )
    async def events(
        request: Request,
        name: Name,
        token: Token = may_ingest,
        idempotency_key: Annotated[str | None, _KEY] = None,
    ) -> models.ReceiptAnswer:
        """Take a batch of events. The answer comes when the batch is durable.

        Events that cannot be read, come too late or name no known bin are refused one by one; the others count. If not
        one is left, the answer is 422.
        If no answer comes, send the batch again with the same `Idempotency-Key`: it counts once.
        """
        stream = service.stream(name)
        batch = batch_name(idempotency_key, token)
        if batch is not None and not stream.feed.takes_keys:
            raise Problem(400, "no-keys", "this stream remembers no batch; send it without Idempotency-Key, once")
        body, media_type = await read_body(request, service.config.limits), request.headers.get("content-type", "")
        try:
            with stream.feed.arrivals.stamp() as arrival:
                most = service.config.limits.events_per_request
                read = await to_thread.run_sync(read_events, body, media_type, stream.reader, most, limiter=reading)
                receipt = await asyncio.wrap_future(stream.feed.submit(read.events, arrival, batch))
        except Busy:
            title = "too many batches wait to be made durable; send this one again in a second"
            raise Problem(429, "busy", title, Retry_After="1") from None
        except Halted:
            title = "the stream's store cannot be used now; send this batch again later with the same key"
            raise Problem(503, "store-unavailable", title, Retry_After="5") from None
        except StateError:
            title = "the stream takes no events now; send this batch again later with the same key"
            raise Problem(503, "closed", title, Retry_After="5") from None
        return _answer(receipt, [models.RefusedEvent(event=place, reason=reason) for place, reason in read.told])


def _answer(receipt: Receipt, told: list[models.RefusedEvent]) -> models.ReceiptAnswer:
    """What became of a batch, for its sender alone; a problem where not one of its events was taken."""
    counters = receipt.counters
    refused = dict(counters.refused) | ({"late": counters.late} if counters.late else {})
    if refused and not (counters.accepted or receipt.duplicate):
        title = (
            "no event of this batch was taken; `refused` says why: correct the fields, or the sender's clock and zone; "
            "late events cannot count any more (if this batch was sent before, what was accepted then did count)"
        )
        problem = Problem(422, "all-refused", title)
        problem.document = models.RefusedBatch(**problem.document.model_dump(), refused=refused, events=told)
        raise problem
    return models.ReceiptAnswer(accepted=counters.accepted, duplicate=receipt.duplicate, refused=refused, events=told)


async def read_body(request: Request, limits: Limits) -> bytes:
    """The body of a request, unless it is too large, too slow or compressed."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise Problem(415, "compressed", "compressed bodies are not read; send it as it is", Connection="close")
    largest = limits.body_megabytes * MEGABYTE
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > largest:
        raise _too_large(limits)
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > largest:
                    raise _too_large(limits)
    except TimeoutError:
        raise Problem(408, "too-slow", "the body took too long to arrive", Connection="close") from None
    except ClientDisconnect:
        raise Problem(400, "broken-off", "the body ended early", Connection="close") from None
    return bytes(body)


def _too_large(limits: Limits) -> Problem:
    title = f"the body is larger than {limits.body_megabytes} MB; send smaller batches"
    return Problem(413, "too-large", title, Connection="close")


class Read(NamedTuple):
    """The events of a body, and the places of some that were refused, with the reason."""

    events: Events
    told: list[tuple[int, str]]


def batch_name(key: str | None, token: Token) -> str | None:
    """What the store knows a batch by: the sender's key, apart from the same key of another sender."""
    if key is None:
        return None
    if not KEY.fullmatch(key):
        raise Problem(400, "bad-key", "Idempotency-Key is 1 to 200 visible ASCII characters without blanks")
    return hashlib.blake2b(f"{token.name} {key}".encode(), digest_size=20).hexdigest()


def read_events(body: bytes, media_type: str, reader: EventReader, most: int) -> Read:
    """The events of a JSON array of objects, or of one object a line; no more than `most`."""
    kind = media_type.partition(";")[0].strip().lower()
    if kind == JSON:
        rows = _array(body)
    elif kind == NDJSON:
        rows = [line for line in body.splitlines() if line.strip()]
    else:
        raise Problem(415, "wrong-type", f"send {JSON} (an array of events) or {NDJSON} (one event a line)")
    if len(rows) > most:
        raise Problem(413, "too-many-events", f"the batch has more than {most:,} events; send smaller batches")
    if kind == NDJSON:
        rows = [_line(line) for line in rows]
    columns = _columns(rows, reader)
    if columns is not None:
        events = reader.read(columns)
        return Read(events, list(_faults(columns, reader)) if events.refused else [])
    return _one_by_one(rows, reader)


def _array(body: bytes) -> list[Any]:
    try:
        rows = _value(body)
    except ValueError:
        raise Problem(400, "malformed", "the body is not JSON") from None
    if not isinstance(rows, list):
        raise Problem(400, "malformed", "the body is not an array of events")
    return rows


def _line(line: bytes) -> Any:
    try:
        return _value(line)
    except ValueError:
        return None


def _value(text: bytes) -> Any:
    """What is written in JSON, also where it has numbers or characters that cannot be: their event is refused alone."""
    with _nothing_collected():
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            pass
        try:
            return json.loads(text.decode(), parse_int=_whole_number)  # which also takes NaN and Infinity for numbers
        except RecursionError:
            raise ValueError("too deep") from None


@contextmanager
def _nothing_collected() -> Iterator[None]:
    """Python's search for garbage put off: while millions of values are made it would look at them again and again."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _whole_number(text: str) -> int | float:
    """As the usual reader has it: those of more than 64 bits are rounded."""
    if len(text) <= LONGEST_NUMBER and -(2**63) <= (number := int(text)) < 2**64:
        return number
    return float(text)


def _columns(rows: list[Any], reader: EventReader) -> Any:
    """The rows as a table, if all are objects with a time and a bin, whose fields have one type and no great length."""
    try:
        table = pa.table({name: pa.array([row.get(name) for row in rows]) for name in reader.wanted})
    except (AttributeError, pa.ArrowException, OverflowError, UnicodeEncodeError):
        return None
    if table[reader.columns.time].null_count or (reader.other is None and table[reader.columns.bin].null_count):
        return None
    for column in table.columns:
        if pa.types.is_nested(column.type) or pa.types.is_null(column.type):
            return None
        if pa.types.is_string(column.type) and (pc.max(pc.binary_length(column)).as_py() or 0) > LONGEST_FIELD:
            return None
        if pa.types.is_floating(column.type) and not pc.all(pc.is_finite(column)).as_py():
            return None
    return table


def _one_by_one(rows: list[Any], reader: EventReader) -> Read:
    """The same where some rows are not as they should be."""
    faults = {place: reason for place, row in enumerate(rows) if (reason := _fault(row, reader))}
    good = [place for place in range(len(rows)) if place not in faults]
    kept = [rows[place] for place in good]
    events = reader.read(kept)
    for reason in faults.values():
        events.refused[reason] += 1
    told = list(faults.items())[:MOST_TOLD]
    if events.refused and len(told) < MOST_TOLD:
        told += [(good[place], reason) for place, reason in _faults(kept, reader)]
    return Read(events, sorted(told)[:MOST_TOLD])


def _fault(row: Any, reader: EventReader) -> str | None:
    if not isinstance(row, dict):
        return NOT_AN_OBJECT
    if row.get(reader.columns.time) is None:
        return WITHOUT_TIME.format(reader.columns.time)
    if reader.other is None and row.get(reader.columns.bin) is None:
        return WITHOUT_BIN.format(reader.columns.bin)
    for value in map(row.get, reader.wanted):
        if isinstance(value, str) and len(value) > LONGEST_FIELD:
            return TOO_LARGE
        if isinstance(value, float) and not math.isfinite(value):
            return OUT_OF_RANGE
        if isinstance(value, str) and not value.isascii() and any(map(_is_half, value)):
            return NOT_UNICODE
    return None


def _is_half(character: str) -> bool:
    """Whether it is half of a character, which stands for nothing alone."""
    return "\ud800" <= character <= "\udfff"


def _faults(rows: Any, reader: EventReader) -> Iterator[tuple[int, str]]:
    """The first rows that the reader refuses, found by halving what holds any, a thousand after the other."""
    pending, found = [(place, rows[place : place + 1000]) for place in range(0, len(rows), 1000)][::-1], 0
    while pending and found < MOST_TOLD:
        place, part = pending.pop()
        if refused := reader.read(part).refused if len(part) else None:
            if len(part) == 1:
                found += 1
                yield place, next(iter(refused))
            else:
                half = len(part) // 2
                pending += [(place + half, part[half:]), (place, part[:half])]
