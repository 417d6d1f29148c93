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
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
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
        self._launching = threading.RLock()  # workers are launched by the first task
        self._terminated: list[BaseProcess] | None = None
        _pools.add(self)

    def terminate(self) -> None:
        """Terminate all workers now; the tasks that are left fail."""
        with self._launching:  # else another thread may launch some that are not terminated
            # An interrupted launch leaves a process that only `active_children` has.
            self._terminated = [*(self._processes or {}).values(), *active_children()]
            # A thread of this pool may be writing to a full queue, or reading a result of which a
            # worker has sent a part. It blocks forever while this process holds the other end.
            for queue, end in (("_call_queue", "_reader"), ("_result_queue", "_writer")):
                if (made := getattr(self, queue, None)) is not None:
                    getattr(made, end).close()
        for process in self._terminated:
            process.terminate()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for the workers to end; kill those that do not end some seconds after `terminate`.

        A library may catch the exception by which a terminated worker ends, as imports with a bare
        `except` do. The worker would then wait forever for its next task.
        """
        end = time.monotonic() + _SECONDS_TO_CLEAN_UP
        left = {process.sentinel: process for process in self._terminated or ()}
        while left and (seconds := end - time.monotonic()) > 0:
            for ended in wait_for(list(left), seconds):
                del left[ended]  # type: ignore[arg-type]
        for process in left.values():
            process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)

    def submit(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> Future[R]:
        """Schedule a call."""
        with self._launching:
            if self._terminated is not None:
                raise BrokenProcessPool("the worker processes were terminated")
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
        wait_for([sentinel])
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
