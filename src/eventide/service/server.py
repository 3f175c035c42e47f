"""Runs the service until it is told to stop. Imports uvicorn."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from pathlib import Path

import uvicorn

from eventide.errors import InputError
from eventide.service.app import build_app
from eventide.service.config import Config
from eventide.service.connections import PatientProtocol
from eventide.service.service import Service

LOOPBACK = ("127.0.0.1", "::1", "localhost")
LOG = logging.getLogger("eventide.live.service")


def serve(service: Service, told: Callable[[str], None]) -> None:
    """Listen, tell the address, and answer until SIGTERM or SIGINT; the steps in hand are finished."""
    try:
        server, listening = build_server(service), listen(service.config)
    except BaseException:
        service.stop()
        raise
    host, port = listening.getsockname()[:2]
    encrypted = service.config.server.certificate is not None
    if service.config.server.host not in LOOPBACK and not encrypted:
        LOG.warning("others can reach this service and nothing is encrypted: set certificate and key")
    told(f"{'https' if encrypted else 'http'}://{f'[{host}]' if ':' in host else host}:{port}/")
    server.run(sockets=[listening])


def build_server(service: Service) -> uvicorn.Server:
    """The server; requests are not logged, since even how many there are says something about people."""
    config, limits = service.config.server, service.config.limits
    for path in (config.certificate, config.key):
        if path and not Path(path).is_file():
            raise InputError(f"{path} is not there; certificate and key are files in PEM form")
    return uvicorn.Server(
        uvicorn.Config(
            build_app(service),
            http=PatientProtocol,
            ws="none",
            access_log=False,
            log_config=None,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            limit_concurrency=limits.connections,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=16_384,
            ssl_certfile=config.certificate,
            ssl_keyfile=config.key,
        )
    )


def listen(config: Config) -> socket.socket:
    """The socket to listen on, refused in a sentence where it cannot be had."""
    server = config.server
    family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((server.host, server.port))
        listening.listen()  # whoever is told the address finds somebody there
    except OSError as problem:
        listening.close()
        raise InputError(
            f"cannot listen on {server.host} port {server.port}: {problem.strerror}; choose another host or port"
        ) from None
    return listening
