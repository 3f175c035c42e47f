"""A web address to which each release is posted: the stored bytes, with the step as key, so that repeats are harmless.

The receiver answers 2xx when it has the step, whether for the first time or again, and 409 when it holds another
release of that step: then it is ahead of the store. Anything else is tried again later. The address may hold a secret,
so messages name the host only. Headers from a file of client settings, such as a token, go over TLS alone.
"""

from __future__ import annotations

import hashlib
import http.client
import ipaddress
from pathlib import Path
from urllib.parse import urlsplit

from eventide.errors import InputError, StoreError
from eventide.live.client_settings import settings_of
from eventide.live.sinks.base import Sink
from eventide.live.tls import tls_context

TIMEOUT = 10.0  # seconds until an answer is no longer waited for


class Webhook(Sink):
    """Posts releases to an http or https address; clients: a file of client settings."""

    def __init__(self, url: str, timeout: float = TIMEOUT, *, clients: str | Path | None = None) -> None:
        if not _is_address(url):
            raise InputError(
                "a webhook is an address that begins with http:// or https://, with a host that can be, a port up to "
                "65535, and no blanks or special letters (write %20 for a blank); correct it"
            )
        self._address = urlsplit(url)
        if self._address.username is not None:
            raise InputError(
                "a webhook's address takes no user name or password; put a token into a file of client settings"
            )
        settings = settings_of(url, clients)
        self._headers = settings.get("headers", {})
        if self._headers and self._address.scheme == "http" and not _is_here(self._address.hostname or ""):
            raise InputError(
                f"the headers for {self._address.hostname} would go unprotected; write its address with https://"
            )
        self._tls = tls_context(settings)
        self._timeout = timeout
        self.name = f"webhook {self._address.hostname} {hashlib.blake2b(url.encode(), digest_size=4).hexdigest()}"

    def send(self, step: int, release: bytes) -> None:
        """Post a release and wait for the answer."""
        headers = {**self._headers, "Content-Type": "application/json", "Idempotency-Key": str(step)}
        connection = self._connection()
        target = self._address._replace(scheme="", netloc="", fragment="").geturl() or "/"
        try:
            connection.request("POST", target, release, headers)
            status = connection.getresponse().status
        except http.client.HTTPException as problem:
            raise OSError(f"no answer that can be understood ({type(problem).__name__})") from None
        finally:
            connection.close()
        if status == http.client.CONFLICT:
            raise StoreError(
                f"{self._address.hostname} holds another release of step {step}: the store was restored from a backup, "
                "or is not the one it follows; go on with --after-restore"
            )
        if not 200 <= status < 300:
            raise OSError(f"answered with status {status}")

    def _connection(self) -> http.client.HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=self._timeout, context=self._tls)
        return http.client.HTTPConnection(host, port, timeout=self._timeout)


def _is_here(host: str) -> bool:
    """Whether what is sent to a host stays on this machine."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(url: str) -> bool:
    try:
        address = urlsplit(url)
        host, port = (address.hostname or "").encode("idna"), address.port
    except ValueError:
        return False
    plain = url.isascii() and url.isprintable() and " " not in url
    return address.scheme in ("http", "https") and bool(host) and port != 0 and plain
