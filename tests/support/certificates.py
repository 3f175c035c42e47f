"""An authority and a certificate for 127.0.0.1, made by openssl: ca.pem, server.pem and server.key in a folder."""

import shutil
import subprocess

import pytest


def make_certificates(folder):
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl: install it with the system's package manager")
    _request(folder, "ca", "/CN=eventide tests", "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign")
    ours = ["-CA", folder / "ca.pem", "-CAkey", folder / "ca.key"]
    _request(folder, "server", "/CN=127.0.0.1", "subjectAltName=IP:127.0.0.1", "basicConstraints=CA:FALSE", *ours)
    return folder


def _request(folder, name, subject, *more):
    extensions = [word for each in more if "=" in str(each) for word in ("-addext", each)]
    signed = [each for each in more if "=" not in str(each)]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"]
    command = ["openssl", "req", "-x509", *curve, "-subj", subject, *files, *extensions, *signed]
    subprocess.run(command, check=True, capture_output=True)
