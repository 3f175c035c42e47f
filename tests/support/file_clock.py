"""A clock for publishers in processes of their own: it shows what a test wrote into a file."""

from __future__ import annotations

import time


class FileClock:
    """Never goes back; waiting takes real time."""

    def __init__(self, path):
        self._path, self._latest = path, 0

    def now(self):
        self._latest = max(self._latest, int(self._path.read_text() or 0))
        return self._latest

    certain = now

    def wait(self, seconds):
        time.sleep(seconds)
