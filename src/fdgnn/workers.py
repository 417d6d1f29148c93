"""Worker processes that end with the process that started them, however that process ends.

Every pool of the library is made here, so that no worker outlives a command that was killed.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from typing import Any, ParamSpec, TypeVar
from weakref import WeakSet

import joblib

P = ParamSpec("P")
R = TypeVar("R")

TERMINATED = 128 + signal.SIGTERM  # exit status, as shells report it
_SECONDS_TO_CLEAN_UP = 5.0
_SECONDS_BETWEEN_CHECKS = 0.5
_pools: WeakSet[WorkerPool] = WeakSet()


class WorkerPool(ProcessPoolExecutor):
    """A `ProcessPoolExecutor` of new processes that end with this one.

    Started anew, a process has none of the threads of this one, nor their locks. A worker that is
    terminated unwinds its task first, so that the files it was writing are removed.
    """

    def __init__(
        self, n_workers: int, initializer: Callable[..., None], initargs: tuple[Any, ...]
    ) -> None:
        super().__init__(n_workers, get_context("spawn"), _start, (initializer, initargs))
        _pools.add(self)

    def terminate(self) -> None:
        """Terminate all workers now; the tasks that are left fail."""
        for process in list((self._processes or {}).values()):
            process.terminate()

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Schedule a call."""
        return super().submit(_run, function, *args, **kwargs)


def terminate_workers() -> None:
    """Terminate the workers of every `WorkerPool`; joblib kills its own when it is interrupted."""
    for pool in list(_pools):
        pool.terminate()


def parallel(n_jobs: int | None, **options: Any) -> joblib.Parallel:
    """Return a `joblib.Parallel` whose local worker processes end with this one."""
    return joblib.Parallel(n_jobs=n_jobs, initializer=end_with_parent, **options)


# ---------------------------------------------------------------------- in the workers

_running = False  # whether a task of a `WorkerPool` is running in this process


def end_with_parent() -> None:
    """End this worker process when its parent ends, or when it is interrupted or terminated."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _end)
    # PR_SET_PDEATHSIG would not do: it follows the thread that started the worker.
    threading.Thread(target=_watch_parent, daemon=True).start()


def _watch_parent() -> None:
    parent = parent_process()
    sentinel = getattr(parent, "sentinel", None)
    if sentinel is not None:
        wait([sentinel])
    elif parent is not None:  # workers of loky have no sentinel
        while os.getppid() == parent.pid:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
    else:
        return
    os.kill(os.getpid(), signal.SIGTERM)  # which the main thread handles
    time.sleep(_SECONDS_TO_CLEAN_UP)
    os._exit(TERMINATED)


def _end(*_: object) -> None:
    """Unwind the task that is running, if any; end the process otherwise."""
    if not _running:
        os._exit(TERMINATED)
    raise SystemExit(TERMINATED)


def _start(initializer: Callable[..., None], initargs: tuple[Any, ...]) -> None:
    end_with_parent()
    initializer(*initargs)


def _run(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    global _running
    try:
        _running = True
        return function(*args, **kwargs)
    except SystemExit:
        os._exit(TERMINATED)  # an executor would go on to the next task
    finally:
        _running = False
