"""Workers: processes of this machine, its threads, or the workers of a Dask cluster.

Every pool of the library is made here. Worker processes end with the process that started them,
however that process ends, so that no worker outlives a command that was killed.
"""

from __future__ import annotations

import _thread
import os
import pickle
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait as wait_for
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import DupFd
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self, TypeVar
from weakref import WeakSet

import joblib

from fdgnn.context import Context, connected
from fdgnn.exceptions import StudyError
from fdgnn.threads import interruptible_threads, one_blas_thread

R = TypeVar("R")
Item = TypeVar("Item")

TERMINATED = 128 + signal.SIGTERM  # exit status, as shells report it
_SECONDS_TO_CLEAN_UP = 5.0
_SECONDS_TO_UNWIND = 15.0
_SECONDS_BETWEEN_CHECKS = 0.5
_SECONDS_BETWEEN_LOOKS = 1.0
_pools: WeakSet[WorkerPool] = WeakSet()


@dataclass(frozen=True)
class Workers:
    """Processes and threads of this machine, or a Dask cluster.

    Attributes
    ----------
    n_processes : int
        For work that holds Python's lock: reading and encoding.
    n_threads : int
        For passes over chunks that are in the memory of this process.
    client : distributed.Client, optional
        Of the cluster that does both.
    """

    n_processes: int = 1
    n_threads: int = 1
    client: Any = None

    @property
    def n_readers(self) -> int:
        """The number of shards, or pieces of one, that are read at the same time."""
        if self.client is None:
            return self.n_processes
        return max(int(sum(self.client.nthreads().values())), 1)

    def check_sees(self, folder: Path) -> None:
        """Raise StudyError unless all workers of a cluster see a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        if self.client is not None and not all(self.client.run(folder.is_dir).values()):
            raise StudyError(
                f"{folder}: not all workers of the cluster see this directory; give one that they "
                "share by `work_dir`"
            )

    @classmethod
    @contextmanager
    def of(cls, cluster: str | None, n_processes: int, context: Context) -> Iterator[Self]:
        """Return this machine, or the Dask cluster with this address, as long as it is needed."""
        if cluster is None:
            yield cls(n_processes, int(joblib.effective_n_jobs(context.n_jobs)))
            return
        with connected(cluster, context, n_workers=1) as client:
            yield cls(client=client)

    def run(
        self,
        function: Callable[[Item], R],
        items: Iterable[Item],
        watch: Callable[[], None] = lambda: None,
    ) -> Iterator[R]:
        """Yield the results of items in their order, by processes; `watch` is called meanwhile.

        The function is sent to each process of this machine once. Of an iterator, twice as many
        items as there are processes are read ahead.
        """
        n, ahead = self.n_processes, 2 * self.n_processes
        if isinstance(items, Sequence):
            n, ahead = min(n, len(items)), len(items)
        submit: Callable[[Item], Future[R]]
        if self.client is not None:
            submit = partial(self.client.get_executor(pure=False).submit, partial(_call, function))
            yield from self._in_order(submit, items, ahead, watch)
        elif n <= 1:
            yield from map(partial(_call, function), items)
        else:
            with WorkerPool(n, function) as pool:
                try:
                    yield from self._in_order(pool.call, items, ahead, watch)
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise

    def over(self, function: Callable[[Item], R], items: Sequence[Item]) -> Iterator[R]:
        """Yield the results of items in their order, by threads, which share this memory."""
        n = min(self.n_threads, len(items))
        if self.client is not None:
            yield from self.run(function, items)
        elif n <= 1:
            yield from map(partial(_call, function), items)
        else:
            with interruptible_threads(n) as pool:
                yield from pool.map(partial(_call, function), items)

    def _in_order(
        self,
        submit: Callable[[Item], Future[R]],
        items: Iterable[Item],
        ahead: int,
        watch: Callable[[], None],
    ) -> Iterator[R]:
        left = iter(items)
        waiting = deque(map(submit, islice(left, ahead)))
        try:
            while waiting:
                while not wait([waiting[0]], timeout=_SECONDS_BETWEEN_LOOKS).done:
                    watch()
                    if self.client is not None and not self.client.nthreads():
                        raise StudyError("all workers of the cluster have disconnected")
                result = waiting.popleft().result()
                waiting.extend(map(submit, islice(left, 1)))
                yield result
        except Exception as error:
            if type(error).__name__ == "KilledWorker":  # of Dask, which need not be installed
                raise StudyError(
                    "workers of the cluster were killed repeatedly by the same task, perhaps "
                    "because memory ran out; give them more memory, or split the data into "
                    "smaller files"
                ) from error
            raise
        finally:
            for future in waiting:
                future.cancel()


def _call(function: Callable[[Item], R], item: Item) -> R:
    with one_blas_thread():
        return function(item)


def parallel(n_jobs: int | None, **options: Any) -> joblib.Parallel:
    """Return a `joblib.Parallel` whose local worker processes end with this one."""
    return joblib.Parallel(n_jobs=n_jobs, initializer=end_with_parent, **options)


# ---------------------------------------------------------------------- a pool of processes


class WorkerPool(ProcessPoolExecutor):
    """A `ProcessPoolExecutor` of new processes, all for one task, that end with this one.

    Started anew, a process has none of the threads of this one, nor their locks. A worker that is
    terminated unwinds its task first, so that the files it was writing are removed.
    """

    def __init__(self, n_workers: int, task: Callable[[Any], Any]) -> None:
        self._setup = _Setup(task)
        super().__init__(n_workers, get_context("spawn"), _start, (self._setup,))
        self._launching = threading.RLock()  # workers are launched by the first task
        self._terminated: list[BaseProcess] | None = None
        _pools.add(self)

    def terminate(self) -> None:
        """Terminate all workers now; the tasks that are left fail."""
        with self._launching:  # else another thread may launch some that are not terminated
            self._terminated = list((self._processes or {}).values())
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
        for process in self._terminated or ():
            if not wait_for([process.sentinel], max(0.0, end - time.monotonic())):
                process.kill()
        super().shutdown(wait, cancel_futures=cancel_futures)
        if wait:  # else a worker may still be about to read it
            self._setup.close()

    def call(self, item: Any) -> Future[Any]:
        """Schedule a call of the task, in a thread of its own.

        An interrupt of the main thread in the middle of a launch would leave a process that nobody
        knows, and so terminates.
        """
        scheduled: Future[Future[Any]] = Future()

        def schedule() -> None:
            try:
                with self._launching:
                    if self._terminated is not None:
                        raise BrokenProcessPool("the worker processes were terminated")
                    scheduled.set_result(self.submit(_run, item))
            except BaseException as error:  # raised where the call is scheduled
                scheduled.set_exception(error)

        threading.Thread(target=schedule, daemon=True).start()
        return scheduled.result()


def terminate_workers() -> None:
    """Terminate the workers of every `WorkerPool`; joblib kills its own when it is interrupted."""
    for pool in list(_pools):
        pool.terminate()


def end_for_certain(status: int) -> None:
    """End this process, which is terminated, some seconds from now even if it cannot unwind.

    What it waits for may be a library, or the end of the interpreter.
    """

    def end_later() -> None:
        import psutil

        time.sleep(_SECONDS_TO_UNWIND)
        for process in psutil.Process().children(recursive=True):  # also one just being launched
            with suppress(psutil.Error):
                process.kill()
        os._exit(status)

    _thread.start_new_thread(end_later, ())  # needs no lock that this thread may hold


class _Setup:
    """The task of a pool, in a file without a name.

    As an argument of a new process, it would be written to a pipe: a launch would wait until that
    process had imported all that it needs to read it, which takes seconds, and for ever if it dies.
    """

    def __init__(self, task: Callable[[Any], Any]) -> None:
        self._file = TemporaryFile(prefix="fdgnn-")  # noqa: SIM115 - as long as the pool
        self._file.write(pickle.dumps(task))
        self._file.flush()

    def close(self) -> None:
        """Close the file, once all workers have ended."""
        self._file.close()

    def __getstate__(self) -> Any:
        return DupFd(self._file.fileno())

    def __setstate__(self, state: Any) -> None:
        self._descriptor = state.detach()

    def read(self) -> Any:
        """Return the task, in a worker."""
        size = os.fstat(self._descriptor).st_size
        task = pickle.loads(os.pread(self._descriptor, size, 0))
        os.close(self._descriptor)
        return task


# ---------------------------------------------------------------------- in the workers

_task: list[Callable[[Any], Any]] = []  # of this worker process
_running = False  # whether a task of a `WorkerPool` is running in this process


def end_with_parent() -> None:
    """End this worker process when its parent ends, or when it is interrupted or terminated."""
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, _end)
    watch_parent()


def watch_parent() -> None:
    """Send SIGTERM to this worker process when its parent ends, and end it some seconds later."""

    def watch() -> None:
        parent = parent_process()
        if parent is None:
            return
        while os.getppid() == parent.pid:
            time.sleep(_SECONDS_BETWEEN_CHECKS)
        os.kill(os.getpid(), signal.SIGTERM)  # which the main thread handles
        time.sleep(_SECONDS_TO_CLEAN_UP)
        os._exit(TERMINATED)

    # PR_SET_PDEATHSIG would not do: it follows the thread that started the worker.
    threading.Thread(target=watch, daemon=True).start()


def _end(*_: object) -> None:
    """Unwind the task that is running, if any; end the process otherwise."""
    if not _running:
        os._exit(TERMINATED)
    raise SystemExit(TERMINATED)


def _start(setup: _Setup) -> None:
    end_with_parent()
    _task.append(setup.read())


def _run(item: Any) -> Any:
    global _running
    try:
        _running = True
        return _call(_task[0], item)
    except SystemExit:
        os._exit(TERMINATED)  # an executor would go on to the next task
    finally:
        _running = False
