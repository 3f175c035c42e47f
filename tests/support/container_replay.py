"""Does what a container file says in folders instead of images: each stage in a root that mmdebstrap has made.

Needs root and Debian's mirrors. What it does not do: layers, image formats and the isolation of a container's runtime,
of which it has mounts, a user and a root that cannot be written.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path

CERTIFICATES = "/run/builder.crt"  # copied: nothing of this machine is ever mounted where a package could write


def instructions(text):
    """The instructions of a container file with their arguments."""
    joined = text.replace("\\\n", " ")
    lines = [line.strip() for line in joined.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


class Replay:
    """The last stage of a container file, built in `folder` from the project in `context`."""

    def __init__(self, text, context, folder):
        self.folder, self.context = Path(folder), Path(context)
        self.environment, self.user, self.entry, self.command, self.health, self.volume = {}, "0:0", [], [], [], None
        self._stages = {}
        for instruction, argument in instructions(text):
            getattr(self, f"_{instruction.lower()}")(argument)

    def _from(self, argument):
        image, _, name = argument.partition(" AS ")
        suite = image.removeprefix("debian:").removesuffix("-slim")
        base = self.folder / f"{suite}.tar"
        if not base.exists():
            subprocess.run(["mmdebstrap", "--variant=minbase", "--quiet", suite, str(base)], check=True)
        self.root = self.folder / f"stage-{len(self._stages)}"
        self._stages[name or str(len(self._stages))] = self.root
        self.root.mkdir()
        subprocess.run(["tar", "--extract", "--file", base, "--directory", self.root], check=True)
        self.environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}

    def _run(self, argument):
        known = {name: value for name, value in os.environ.items() if name.startswith("PIP_")}
        known |= dict.fromkeys(("PIP_CERT", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"), CERTIFICATES)
        shutil.copyfile("/etc/resolv.conf", self.root / "etc/resolv.conf")
        shutil.copyfile("/etc/ssl/certs/ca-certificates.crt", self.root / CERTIFICATES.lstrip("/"))
        self.inside(["sh", "-ec", argument], environment=known)

    def _copy(self, argument):
        source, target = shlex.split(argument)[-2:]
        stage = argument.removeprefix("--from=").split()[0] if argument.startswith("--from=") else None
        source = self._stages[stage] / source.lstrip("/") if stage else self.context / source
        unwanted = shutil.ignore_patterns(".git", "__pycache__", ".*_cache")
        shutil.copytree(source, self.root / target.lstrip("/"), symlinks=True, ignore=unwanted, dirs_exist_ok=True)

    def _env(self, argument):
        name, value = argument.split("=", 1)
        self.environment[name] = value

    def _user(self, argument):
        self.user = argument

    def _workdir(self, argument):
        self.workdir = argument

    def _volume(self, argument):
        self.volume = argument

    def _healthcheck(self, argument):
        self.health = json.loads(argument.partition("CMD ")[2])

    def _entrypoint(self, argument):
        self.entry = json.loads(argument)

    def _cmd(self, argument):
        self.command = json.loads(argument)

    def _expose(self, argument):
        pass

    def _stopsignal(self, argument):
        assert argument == "SIGTERM"

    def inside(self, command, *, environment=None, binds=(), read_only=False, user=None, start=False):
        """Run a command in the root, alone with its mounts, which end with it; `binds` are what it may see of here."""
        root, lines = self.root, []
        if read_only:
            lines += [f"mount --bind {root} {root}", f"mount -o remount,ro,bind {root}"]
        for source, target in binds:
            lines.append(f"mount --bind {shlex.quote(str(source))} {root / target.lstrip('/')}")
        lines += [f"mount -t tmpfs tmpfs {root}/dev/shm", f"mount -t proc proc {root}/proc"]
        known = [f"{name}={value}" for name, value in {**(environment or {}), **self.environment}.items()]
        into = ["chroot", *([f"--userspec={user}"] if user else []), str(root), "env", "-i", *known, *command]
        script = "\n".join(["set -e", *lines, f"exec {shlex.join(into)}"])
        alone = ["unshare", "--mount", "--propagation", "private", "bash", "-c", script]
        if start:
            return subprocess.Popen(alone, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        done = subprocess.run(alone, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def place(self, source, target):
        """Make the folder or file in the root that something is mounted on."""
        place = self.root / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.mkdir(exist_ok=True) if Path(source).is_dir() else place.touch()
