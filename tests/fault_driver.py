"""Run one command again and again, each time with a fault at another of its writes.

`started` is a process that imports the library once and runs `drive` for whoever asks. A write is
one of three moments: a file is opened to be written, its content goes to the disk, or it is moved
to its place. A child runs the command with a fault at the moment number `first`; then the next
child runs it with one at `first` + `step`, and so on, until a child has no such moment any more.
The answer has an entry for each child: its exit code, what it told, and the hash of the watched
file afterwards.
"""

from __future__ import annotations

import builtins
import errno
import fcntl
import hashlib
import io
import json
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

# Slow to import: here, so that not every child has to.
import scipy.stats  # noqa: F401
import sklearn.model_selection  # noqa: F401

import fdgnn.cli
import fdgnn.evaluation.comparison
import fdgnn.html.report
import fdgnn.kernels
import fdgnn.prediction.explanation
import fdgnn.prediction.predictor
import fdgnn.selection.search
import fdgnn.training
from fdgnn.evaluation import comparison, timing
from fdgnn.evaluation.protocol import PROTOCOLS, Protocol
from methods_here import run_here

for _library in ("jinja2", "pydantic.fields"):
    with suppress(ImportError):  # not every installation has them
        import_module(_library)

KINDS = ("disk full", "permission lost", "killed")
CLOCK = "clock moved"  # it ends nothing: ten years back, and at the next fault ten years ahead
TEN_YEARS = 10 * 365 * 86400.0
MOST = 200  # children, so that a command that never ends is noticed
Found = dict[str, list]


class Faults:
    """Counts the moments at which something is written, and makes one of them fail."""

    def __init__(self, kind: str, at: int) -> None:
        self.kind, self.at, self.n = kind, at, 0
        self.open, self.fsync, self.replace = io.open, os.fsync, os.replace

    def moment(self, path: object) -> None:
        if str(path).startswith("/dev/") or isinstance(path, int):
            return
        self.n += 1
        if self.n == self.at + 1:
            self._fail(path)

    def _fail(self, path: object) -> None:
        os.close(os.open("happened", os.O_CREAT | os.O_WRONLY))
        if self.kind == CLOCK:
            shift, now = TEN_YEARS if self.at % 2 else -TEN_YEARS, time.time
            time.time = lambda: now() + shift
            time.time_ns = lambda: int((now() + shift) * 1e9)
            return
        if self.kind == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        number = errno.ENOSPC if self.kind == "disk full" else errno.EACCES
        raise OSError(number, os.strerror(number), str(path))

    def install(self) -> None:
        def opened(file, mode="r", *more, **options):
            if set(mode) & set("wax+"):
                self.moment(file)
            return self.open(file, mode, *more, **options)

        def synced(descriptor):
            if self.n == self.at and self.kind != CLOCK and not _appends(descriptor):
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)  # half is on the disk
            self.moment("content")
            return self.fsync(descriptor)

        def moved(source, target, **options):
            self.moment(target)
            return self.replace(source, target, **options)

        io.open = builtins.open = opened
        os.fsync, os.replace = synced, moved


def _appends(descriptor: int) -> bool:
    return bool(fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND)


def run(kind: str, at: int, words: list[str], log: Path) -> int:
    """Run the command in a child with a fault at one moment; its exit code, or minus its signal."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            told = log.open("w")
            os.dup2(told.fileno(), 1)
            os.dup2(told.fileno(), 2)
            Faults(kind, at).install()
            sys.argv = ["fdgnn", *words]
            fdgnn.cli.main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status)


def state(path: Path) -> str | None:
    """What is in a file, as a hash; "half" if it should be JSON or a page and is not."""
    if not path.exists():
        return None
    content = path.read_bytes()
    if path.suffix == ".html" and not content.rstrip().endswith(b"</html>"):
        return "half"
    if path.suffix == ".json":
        try:
            json.loads(content)
        except ValueError:
            return "half"
    return hashlib.sha256(content).hexdigest()


@cache
def warm_up(command: str, *words: str) -> None:
    """Run the command here once, in a folder of its own: children need not import it all again."""
    sys.argv = ["fdgnn", command, *words]
    with (
        TemporaryDirectory() as folder,
        chdir(folder),
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
        suppress(SystemExit),
    ):
        fdgnn.cli.main()


def drive(folder: str, kind: str, first: int, step: int, watched: str, words: list[str]) -> Found:
    """Run the command in a folder with one fault after the other."""
    warm_up(*words)
    os.chdir(folder)
    happened, log = Path("happened"), Path("told")
    found: Found = {"codes": [], "told": [], "states": []}
    for at in range(first, MOST, step):
        happened.unlink(missing_ok=True)
        found["codes"].append(run(kind, at, words, log))
        found["told"].append(log.read_text()[-300:])
        found["states"].append(state(Path(watched)))
        if not happened.exists():
            break
    return found


@contextmanager
def started() -> Iterator[Callable[..., Found]]:
    """Start this file as a process, which runs `drive` with what it is given."""
    process = subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(*arguments: object) -> Found:
        print(json.dumps(arguments, default=str), file=process.stdin, flush=True)
        return json.loads(process.stdout.readline())

    with process:
        yield ask
        process.stdin.close()


if __name__ == "__main__":
    comparison.run_in_process = run_here  # in the child, where its writes fail as well
    timing.MOST_REPETITIONS = 1
    PROTOCOLS["quick"] = Protocol("quick", n_configurations=1, n_initializations=1)  # of `compare`
    for line in sys.stdin:
        print(json.dumps(drive(*json.loads(line))), flush=True)
