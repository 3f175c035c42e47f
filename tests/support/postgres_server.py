"""A real PostgreSQL server on a free loopback port, for tests: started, killed and started again.

PostgreSQL refuses to run as root, so that as root it runs as the user `postgres` that its package makes.
"""

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import time
from pathlib import Path

from nats_server import free_port


def program(name):
    """Where Debian keeps it, or wherever the path says; None where it is not installed."""
    kept = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return str(kept[-1]) if kept else shutil.which(name)


class PostgresServer:
    """The server, whose rows outlive it in `folder`."""

    def __init__(self, folder):
        self.folder, self.port = Path(folder) / "data", free_port()
        self.user = {"user": "postgres"} if os.geteuid() == 0 else {}
        if self.user:
            for parent in (Path(folder), *Path(folder).parents[:3]):
                parent.chmod(parent.stat().st_mode | 0o011)  # so that the other user may pass
            owner = pwd.getpwnam("postgres")
            os.chown(folder, owner.pw_uid, owner.pw_gid)
        self._run(program("initdb"), "-D", self.folder, "-U", "eventide", "-A", "trust")
        self.address = f"postgresql://eventide@127.0.0.1:{self.port}/postgres"

    def start(self):
        """Start it, again if need be: it refuses while a process of the one before is still ending."""
        import psycopg

        self._launch()
        until = time.monotonic() + 120
        while True:
            try:
                psycopg.connect(self.address, connect_timeout=2).close()
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
        while any(Path(f"/proc/{process}").exists() for process in family[1:]):
            time.sleep(0.01)

    def _run(self, *command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", **self.user)
