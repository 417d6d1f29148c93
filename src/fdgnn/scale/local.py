"""The machine we are on: processes read and encode, threads go over parts, files keep them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import joblib

from fdgnn.context import Context
from fdgnn.encoders import Encoder
from fdgnn.exceptions import StudyError
from fdgnn.linear.blocks import Totals, in_strips
from fdgnn.scale.executors import (
    Found,
    Loader,
    Result,
    Tell,
    Watch,
    Work,
    bytes_of_arrays,
    encode_parts,
)
from fdgnn.scale.parts import Block, Parts, Report, in_row_order, parse_block
from fdgnn.scale.shards import ShardRequest
from fdgnn.threads import one_blas_thread
from fdgnn.workers import WorkerPool

Item = TypeVar("Item")


@dataclass
class Local:
    """The machine we are on: processes for molecules, threads for kernels, parts in a folder.

    Attributes
    ----------
    folder : Path
    cache_bytes : int
        Memory in which loaded parts are kept; the others are read again in each pass.
    solver_bytes : int, optional
        Memory of a solver, beside that.
    n_processes : int, optional
        At most so many processes read and encode.
    """

    folder: Path
    cache_bytes: int
    context: Context = field(default_factory=Context)
    solver_bytes: int | None = None
    n_processes: int | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)
    _kept_bytes: int = 0
    _kept_for: Loader | None = None

    @property
    def n_workers(self) -> int:
        """Processes, and threads."""
        n_jobs = int(joblib.effective_n_jobs(self.context.n_jobs))
        return n_jobs if self.n_processes is None else min(n_jobs, self.n_processes)

    @property
    def n_places(self) -> int:
        """The one that we are in, with all of its threads."""
        return 1

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Parts]:
        """Read blocks; gives each part, in the order of the rows."""
        found = []
        counter = _Counter.new(watch.rows)
        for parts, report in self._each(
            partial(_parse_counted, asked, self.folder), blocks, counter
        ):
            watch.block(report)
            found.append(parts.files)
        return [Parts(files=[path]) for path in in_row_order(blocks, found)]

    def encode(self, handles: Sequence[Parts], encoder: Encoder, name: str) -> list[Parts]:
        """Encode parts."""
        work = partial(encode_parts, encoder, self.folder, name)
        return list(self.context.track(self._each(work, handles), len(handles), "encoding"))

    def total(self, step: Any, handles: Sequence[Parts], loader: Loader) -> Totals:
        """Add up a step over all parts, by threads."""
        refs = [path for parts in handles for path in parts.files]
        with one_blas_thread():
            return in_strips(step, refs, partial(self._load, loader), self.context.n_jobs)

    def gather(
        self, function: Callable[[Any], Result], handles: Sequence[Parts], loader: Loader
    ) -> list[Result]:
        """Collect what a function says of each part, in their order."""
        refs = [path for parts in handles for path in parts.files]
        with one_blas_thread(), ThreadPoolExecutor(self.n_workers) as pool:
            return list(pool.map(lambda ref: function(self._load(loader, ref)), refs))

    def whole(
        self,
        function: Callable[[Any], Found],
        handles: Sequence[Parts],
        loader: Loader,
        works: Sequence[Work[Found, Result]],
        tell: Tell,
    ) -> list[Result]:
        """Collect what a function says of each part, and do each work with all of that."""
        found = self.gather(function, handles, loader)
        return [work(found, self.context.n_jobs, tell) for work in works]

    def _load(self, loader: Loader, ref: Path) -> Any:
        """Load a part, or take it from what is kept for this loader."""
        if loader is self._kept_for and ref in self._kept:
            return self._kept[ref]
        part = loader.load(ref)
        if not loader.kept:
            return part
        if loader is not self._kept_for:  # from here on its parts are kept, no other's
            self._kept, self._kept_bytes, self._kept_for = {}, 0, loader
        size = bytes_of_arrays(part)
        if self._kept_bytes + size <= self.cache_bytes:
            self._kept_bytes += size
            self._kept[ref] = part
        return part

    def _each(
        self,
        work: Callable[[Item], Result],
        items: Sequence[Item],
        counter: _Counter | None = None,
    ) -> Iterator[Result]:
        """Do the work in processes, in the order of the items."""
        n = min(self.n_workers, len(items))
        if n <= 1:
            _count_in(counter)
            yield from map(work, items)
            return
        shared = None if counter is None else replace(counter, tell=None)
        pool = WorkerPool(n, _count_in, (shared,))
        with _told_of_dead_processes(), pool:
            try:
                yield from _ahead(pool, work, items, 4 * n, counter)
            except BaseException:
                pool.shutdown(wait=True, cancel_futures=True)
                raise


@dataclass(frozen=True)
class _Counter:
    """How many rows all processes have read; `tell` is for the process that shows it."""

    value: Any
    tell: Callable[[int], None] | None

    @classmethod
    def new(cls, tell: Callable[[int], None]) -> _Counter:
        return cls(get_context("spawn").Value("q", 0), tell)

    def add(self, n: int) -> None:
        with self.value.get_lock():
            self.value.value += n
        self.look()

    def look(self) -> None:
        if self.tell is not None:
            self.tell(self.value.value)


_counter: _Counter | None = None  # of this process


def _count_in(counter: _Counter | None) -> None:
    """Let this process count what it reads."""
    global _counter
    _counter = counter


def _ahead(
    pool: WorkerPool,
    work: Callable[[Item], Result],
    items: Iterable[Item],
    most: int,
    counter: _Counter | None,
) -> Iterator[Result]:
    """Give results in order, with at most so many items ahead."""

    def look() -> None:
        if counter is not None:
            counter.look()

    def first() -> Result:
        while not wait([waiting[0]], timeout=1.0).done:
            look()
        look()
        result: Result = waiting.pop(0).result()
        return result

    waiting: list[Any] = []
    for item in items:
        waiting.append(pool.submit(work, item))
        if len(waiting) >= most:
            yield first()
    while waiting:
        yield first()


@contextmanager
def _told_of_dead_processes() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise StudyError(
            "a process was killed, perhaps because memory ran out; what is finished is kept, so "
            "run the same command again, if need be with fewer processes"
        ) from error


def _parse_counted(asked: ShardRequest, folder: Path, block: Block) -> tuple[Parts, Report]:
    """Read a block, and count its rows."""
    counter = _counter
    return parse_block(asked, block, folder, counter.add if counter else lambda n_rows: None)
