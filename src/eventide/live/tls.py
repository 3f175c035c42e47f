"""TLS as settings describe it: `ca`, `certificate` and `key` are PEM files; `tls` alone trusts what the system does."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any

from eventide.errors import InputError

TLS = ("tls", "ca", "certificate", "key")


def tls_context(settings: Mapping[str, Any]) -> ssl.SSLContext | None:
    """What a connection is secured with, the server's certificate and name checked; None where nothing asks for it."""
    if not any(settings.get(key) for key in TLS):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.get("ca"))
        if "certificate" in settings:
            context.load_cert_chain(settings["certificate"], settings["key"], password="")  # which asks nobody for one
    except OSError as problem:
        raise InputError(
            f"the files of TLS (ca, certificate, key) cannot be used ({type(problem).__name__}); give PEM files that "
            "belong together, the key without a passphrase"
        ) from None
    return context
