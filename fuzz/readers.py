"""Readers of Parquet and Arrow files as forks of this process, which has imported pyarrow.

The library starts a new Python for each file, which is safe beside threads, and slow for a million
files.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from typing import IO, Any


@dataclass
class Forked:
    """A forked process, with what `fdgnn.datasets.arrow` uses of `subprocess.Popen`."""

    pid: int
    stdin: IO[bytes]
    stdout: IO[bytes]
    returncode: int | None = None

    def wait(self) -> int:
        """Wait for its end; a negative number is a signal."""
        if self.returncode is None:
            self.returncode = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.returncode

    def kill(self) -> None:
        """End it, if it runs."""
        if self.returncode is None:
            os.kill(self.pid, signal.SIGKILL)


def start_forked_reader(complaints: Any) -> Forked:
    """Do what `fdgnn.datasets.arrow.start_reader` does, by a fork."""
    from fdgnn.datasets import arrow_child

    told, tell = os.pipe()
    hear, answer = os.pipe()
    pid = os.fork()
    if pid:
        os.close(told)
        os.close(answer)
        return Forked(pid, os.fdopen(tell, "wb"), os.fdopen(hear, "rb"))
    code = 1
    try:
        signal.setitimer(signal.ITIMER_PROF, 0)
        os.close(tell)
        os.close(hear)
        os.dup2(complaints.fileno(), 2)
        with os.fdopen(told, "rb") as a, os.fdopen(answer, "wb") as b, os.fdopen(2, "wb") as c:
            code = arrow_child.main(a, b, c)
    finally:
        os._exit(code)
