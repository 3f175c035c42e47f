"""A real PostgreSQL server on a free loopback port, for tests: started, killed and started again.

PostgreSQL refuses to run as root, so that as root it runs as the user `postgres` that its package makes.
"""

import atexit
import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from nats_server import PATIENCE, free_port


def program(name):
    """Where Debian keeps it, or wherever the path says; None where it is not installed."""
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(kept[-1]) if kept else shutil.which(name)


class PostgresServer:
    """The server, whose rows outlive it in a folder of its own: pytest closes its folders to other users."""

    def __init__(self):
        folder = tempfile.mkdtemp(prefix="eventide-postgres-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        self.folder, self.port = Path(folder) / "data", free_port()
        self.user = {"user": "postgres"} if os.geteuid() == 0 else {}
        if self.user:
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._run(program("initdb"), "-D", self.folder, "-U", "eventide", "-A", "trust")
        self.address = f"postgresql://eventide@127.0.0.1:{self.port}/postgres"

    def start(self):
        """Start it, again if need be: it refuses while a process of the one before is still ending."""
        import psycopg

        self._launch()
        until = time.monotonic() + PATIENCE
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=20).close()
                return self
            except psycopg.OperationalError:
                assert time.monotonic() < until, "the PostgreSQL server does not answer"
                time.sleep(0.1)
            if self.process.poll() is not None:
                self._launch()

    def _launch(self):
        command = [program("postgres"), "-D", self.folder, "-p", str(self.port), "-h", "127.0.0.1", "-k", ""]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **self.user
        )

    def kill(self):
        """kill -9 of the server and all its processes, each of which has a session of its own."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, text=True)
        family = [self.process.pid, *map(int, listed.stdout.split())]
        for process in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        while any(map(_runs, family[1:])):
            time.sleep(0.01)

    def _run(self, *command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)


def _runs(process):
    """Whether a process has not ended yet; one that nobody has asked after has."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
