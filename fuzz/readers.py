"""One reader process for many Parquet and Arrow files, forked from this process.

The library starts a new Python for each file, which is safe with threads, but slow for a million
files. Here a process that has imported pyarrow reads one file after the other, by the same code
with the same limits. It is replaced after a crash, and after some files, because its limit
of CPU time counts all files.
"""

from __future__ import annotations

import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, NoReturn

MOST_FILES = 500  # of one process


class Server:
    """A process that reads files; for each it receives three pipes by a socket."""

    def __init__(self) -> None:
        self.n_files, self.is_idle = 0, True
        self._exit_code: int | None = None
        self._socket, other = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            self._socket.close()
            _serve(other)
        other.close()

    def start(self, complaints: IO[bytes]) -> Reader:
        """Start reading a file."""
        told, tell = os.pipe()
        hear, answer = os.pipe()
        socket.send_fds(self._socket, [b"."], [told, answer, complaints.fileno()])
        for theirs in (told, answer):
            os.close(theirs)
        self.n_files, self.is_idle = self.n_files + 1, False
        return Reader(self, os.fdopen(tell, "wb"), os.fdopen(hear, "rb"))

    def wait(self) -> int:
        """Wait for the exit code; a negative number is a signal."""
        found = b"" if self._exit_code is not None else self._socket.recv(1)
        self.is_idle = bool(found)
        return found[0] if found else self.end()

    def end(self) -> int:
        """End the process if it runs."""
        if self._exit_code is None:
            if not self.is_idle and not self._has_ended():
                os.kill(self._pid, signal.SIGKILL)
            self._socket.close()
            self._exit_code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._exit_code

    def _has_ended(self) -> bool:
        return os.waitid(os.P_PID, self._pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None

    @property
    def is_ready(self) -> bool:
        """Return whether it can read another file."""
        return self._exit_code is None and self.is_idle and self.n_files < MOST_FILES


@dataclass
class Reader:
    """Reading one file, with the part of `subprocess.Popen` that `fdgnn.datasets.arrow` uses."""

    server: Server
    stdin: IO[bytes]
    stdout: IO[bytes]
    returncode: int | None = None

    def wait(self) -> int:
        """Wait for the end."""
        if self.returncode is None:
            self.returncode = self.server.wait()
        return self.returncode

    def kill(self) -> None:
        """Do nothing: without its pipes, `arrow_child.main` ends."""


_servers: dict[int, Server] = {}  # that of each process; a fork does not use its parent's


def start_shared_reader(complaints: Any) -> Reader:
    """Replace `fdgnn.datasets.arrow.start_reader` by a process that reads many files."""
    own = _servers.get(os.getpid())
    if own is None or not own.is_ready:
        if own is not None:
            own.end()
        own = _servers[os.getpid()] = Server()
    return own.start(complaints)


def _serve(channel: socket.socket) -> NoReturn:
    """Read files until there are no more requests."""
    from fdgnn.datasets import arrow_child

    try:
        signal.setitimer(signal.ITIMER_PROF, 0)
        while pipes := socket.recv_fds(channel, 1, 3)[1]:
            os.dup2(pipes[2], 2)
            told, answers, complaints = (
                os.fdopen(pipe, mode) for pipe, mode in zip(pipes, ("rb", "wb", "wb"), strict=True)
            )
            with told, complaints:
                code = arrow_child.main(told, answers, complaints)
                with suppress(BrokenPipeError):
                    answers.close()
            channel.send(bytes([code]))
    finally:
        os._exit(0)
