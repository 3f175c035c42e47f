"""Addresses of Kafka topics, shared by source and sink.

An option that is not known is refused.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from eventide.errors import InputError

PATIENCE = 10.0  # seconds until an answer is no longer waited for
OPTIONS = {"group": "eventide", "arrival": "append"}


class KafkaAddress(NamedTuple):
    """Brokers, a topic, the group to read it as, and whether arrival is the broker's `append` time or our `read`."""

    brokers: str
    topic: str
    group: str
    arrival: str


def parse_address(url: str) -> KafkaAddress:
    """Read kafka://host:port[,host:port]/topic?group=NAME&arrival=append.

    >>> parse_address("kafka://127.0.0.1:9092/visits")
    KafkaAddress(brokers='127.0.0.1:9092', topic='visits', group='eventide', arrival='append')
    """
    parts = urlsplit(url)
    topic = parts.path.strip("/")
    asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
    options = OPTIONS | asked
    if not parts.netloc or not topic or "/" in topic or set(asked) - set(OPTIONS):
        raise InputError("a Kafka address reads kafka://host:port/topic, perhaps with ?group=NAME; correct it")
    if options["arrival"] not in ("append", "read"):
        raise InputError("the arrival of a Kafka message is its append time or when it is read; write arrival=read")
    return KafkaAddress(parts.netloc, topic, options["group"], options["arrival"])


def confluent_kafka() -> Any:
    """The client library, or how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise InputError("Kafka needs the extra kafka; install it with: pip install 'eventide[kafka]'") from None
    return confluent_kafka
