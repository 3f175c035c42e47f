"""A command that refuses its input ends with its exit code and one sentence, also where Arrow's threads lag behind.

Arrow reads files with threads of its own, and Python does not wait for them when it ends. A thread that still needs
Python then aborts the process: exit code 134 after a message that was right. Here those threads get one core together
with everything else and the lowest priority, so that they lag behind as often as possible.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

RUNS = 40
COMMAND = """
import os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # passed on to the threads that are started now
import pyarrow, pyarrow.csv
pyarrow.set_cpu_count(1)
list(pyarrow.csv.open_csv(pyarrow.BufferReader(b"a\\n1\\n")))
os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
from eventide.cli import main
main(sys.argv[1:], prog_name="eventide")
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs Linux, to choose the core of a process")
def test_a_refused_file_ends_with_its_exit_code_however_far_threads_lag_behind(tmp_path):
    (tmp_path / "counts.csv").write_text("north,south\n" + "3,4\n" * 50 + "3,-4\n" + "3,4\n" * 50)
    command = [sys.executable, "-c", COMMAND, "publish", "counts.csv", "--epsilon", "1", "--window", "7"]
    for _ in range(RUNS):
        run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert "column 'south' in row 51 is negative" in run.stderr
        assert (run.returncode, run.stderr.count("\n")) == (2, 1), run.stderr
