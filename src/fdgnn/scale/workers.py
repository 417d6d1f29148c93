"""Processes, threads or the workers of a Dask cluster, all by way of `concurrent.futures`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self, TypeVar

import joblib

from fdgnn.context import Context, connected
from fdgnn.exceptions import StudyError
from fdgnn.threads import interruptible_threads, one_blas_thread
from fdgnn.workers import WorkerPool, run_task, start_task

Item = TypeVar("Item")
Result = TypeVar("Result")

_SECONDS_BETWEEN_LOOKS = 1.0


def _call(function: Callable[[Item], Result], item: Item) -> Result:
    with one_blas_thread():
        return function(item)


@dataclass(frozen=True)
class Workers:
    """Who carries work out: this machine, or a Dask cluster.

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
        function: Callable[[Item], Result],
        items: Sequence[Item],
        watch: Callable[[], None] = lambda: None,
    ) -> Iterator[Result]:
        """Yield the results of items in their order, by processes; `watch` is called meanwhile.

        The function is sent to each process of this machine once.
        """
        n = min(self.n_processes, len(items))
        if self.client is not None:
            pool, call = self.client.get_executor(pure=False), partial(_call, function)
            yield from self._in_order([pool.submit(call, item) for item in items], watch)
        elif n <= 1:
            yield from map(partial(_call, function), items)
        else:
            with WorkerPool(n, start_task, (function,)) as pool:
                try:
                    yield from self._in_order([pool.submit(run_task, i) for i in items], watch)
                except BaseException:
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise

    def over(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield the results of items in their order, by threads, which share this memory."""
        if self.client is not None:
            yield from self.run(function, items)
        elif min(self.n_threads, len(items)) <= 1:
            yield from map(function, items)
        else:
            with interruptible_threads(min(self.n_threads, len(items))) as pool:
                yield from pool.map(function, items)

    def _in_order(
        self, waiting: list[Future[Result]], watch: Callable[[], None]
    ) -> Iterator[Result]:
        try:
            while waiting:
                while not wait(waiting[:1], timeout=_SECONDS_BETWEEN_LOOKS).done:
                    watch()
                    if self.client is not None and not self.client.nthreads():
                        raise StudyError("all workers of the cluster are gone")
                yield waiting.pop(0).result()
        except BrokenProcessPool as error:
            raise StudyError(
                "a process was killed, perhaps because memory ran out; what is finished is kept, "
                "so run the same command again, if need be with fewer processes"
            ) from error
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
