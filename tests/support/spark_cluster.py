"""A standalone Spark cluster on loopback, one master and two workers, each a process of its own; and drivers for it."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from nats_server import free_port

PATIENCE = 900  # seconds
SHORT_LIVED = {"JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}  # half the work of starting
DRIVER = Path(__file__).with_name("spark_driver.py")


def environment(**more):
    """What Spark needs to stay on loopback and with this Python, and for Javas that live only seconds to start soon."""
    return os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1", **SHORT_LIVED} | more


def wait_for(happens, what):
    until = time.monotonic() + PATIENCE
    while not (found := happens()):
        assert time.monotonic() < until, f"{what} does not happen"
        time.sleep(0.1)
    return found


def children(process):
    """The processes that a process has started, and those that they have started."""
    found, todo, ended = [], [process], contextlib.suppress(FileNotFoundError, ProcessLookupError)
    while todo:
        with ended:
            for task in Path(f"/proc/{todo.pop()}/task").iterdir():
                with ended:  # a thread that ends meanwhile hides no other's children
                    todo += (begun := [int(child) for child in (task / "children").read_text().split()])
                    found += begun
    return found


def born(process):
    """When a process began, by which it is told from a later one of the same number; None when it has ended."""
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        state, *rest = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return None if state == "Z" else rest[18]
    return None


def kill_whole(process):
    """kill -9 of a process and of everything below it."""
    for each in [process, *children(process)]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def answers(port):
    """Whether somebody listens at a port of loopback."""
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


class Cluster:
    """The cluster; `folder` is for logs and scratch files."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.address = f"spark://127.0.0.1:{self.port}"
        self.processes = {}

    def start(self):
        self._start("master", "master.Master", "--port", str(self.port))
        wait_for(lambda: answers(self.port), "the start of the master")
        self.start_workers("first", "second")
        return self

    def start_workers(self, *names):
        expected = self._registered() + len(names)
        for name in names:
            work = str(self.folder / name)
            self._start(name, "worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", work, self.address)
        wait_for(lambda: self._registered() >= expected, "the registration of workers")

    def kill_worker(self, name):
        kill_whole(self.processes[name].pid)
        self.processes[name].wait()

    def stop(self):
        for process in self.processes.values():
            kill_whole(process.pid)
            process.wait()

    def _start(self, name, role, *arguments):
        import pyspark

        program = Path(pyspark.__file__).parent / "bin" / "spark-class"
        command = [program, f"org.apache.spark.deploy.{role}", "--host", "127.0.0.1", "--webui-port", "0", *arguments]
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(command, stdout=log, stderr=log, env=environment())

    def _registered(self):
        return (self.folder / "master.log").read_text().count("Registering worker")


class ConnectServer:
    """A Spark Connect server on loopback, a process of its own with two cores; `folder` is for its log."""

    def __init__(self, folder):
        self.folder, self.port = folder, free_port()
        self.address = f"sc://127.0.0.1:{self.port}"

    def start(self):
        import pyspark

        settings = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": self.port,
            "spark.driver.host": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.log.level": "ERROR",
        }
        command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
        command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
        command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment())
        wait_for(lambda: answers(self.port), "the start of the Connect server")
        return self

    def kill(self):
        kill_whole(self.process.pid)
        self.process.wait()


class Driver:
    """A publisher in a process of its own, which lives as `life` says and dies at `fault`."""

    def __init__(self, life, log, fault="none"):
        with log.open("ab") as file:
            self.process = subprocess.Popen(
                [sys.executable, DRIVER, json.dumps(life)],
                stdout=file,
                stderr=file,
                env=environment(EVENTIDE_FAULT=fault),
            )
        self._below = {}

    def end(self):
        """Its exit code, when everything that it had started is gone too."""
        try:
            wait_for(self._ended, "the end of a driver")
            wait_for(lambda: all(born(each) != when for each, when in self._below.items()), "the end of its Spark")
        finally:
            if self.process.poll() is None:
                kill_whole(self.process.pid)
                self.process.wait()
        return self.process.returncode

    def _ended(self):
        self._below |= {child: when for child in children(self.process.pid) if (when := born(child))}
        return self.process.poll() is not None
