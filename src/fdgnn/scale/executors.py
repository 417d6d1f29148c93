"""Who does the work: this process with threads and processes beside it, or a Dask cluster.

An executor knows blocks of parts by *handles*. It can read and encode them, add up a step over all
of their parts, and collect what a function says of each part. What is asked is the same for both,
and so is the answer, but for the order of sums.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar

import joblib

from fdgnn.context import Context
from fdgnn.encoders import Encoder
from fdgnn.exceptions import StudyError
from fdgnn.readout.passes import SamplePart, Step, Totals, added, in_strips
from fdgnn.scale.coding import Coding
from fdgnn.scale.parts import (
    Block,
    ParsedPart,
    Parts,
    PartTargets,
    Report,
    encode_block,
    load_answers,
    load_encoded,
    load_parsed,
    parse_block,
)
from fdgnn.scale.shards import ShardRequest
from fdgnn.threads import one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")
Found = TypeVar("Found")


class Loader(Protocol):
    """How a part is brought into the form that a step takes."""

    kept: ClassVar[bool]  # whether loaded parts are kept in memory, as far as there is some

    def load(self, part: Any) -> Any:
        """Load a part from its file, or take it as it is; a loaded part stays as it is."""


@dataclass(frozen=True)
class AsSamples:
    """Encoded parts, with targets and folds as the solver takes them."""

    coding: Coding
    kept: ClassVar[bool] = True

    def load(self, part: Any) -> SamplePart:
        """Load an encoded part."""
        if isinstance(part, SamplePart):
            return part
        return self.coding.samples(load_encoded(part) if isinstance(part, Path) else part)


@dataclass(frozen=True)
class AsGraphs:
    """Parts as they were read: graphs take more memory than what is made of them."""

    kept: ClassVar[bool] = False

    def load(self, part: Any) -> ParsedPart:
        """Load a part."""
        return load_parsed(part) if isinstance(part, Path) else part


@dataclass(frozen=True)
class AsTargets:
    """What is known of parts beside the graphs."""

    kept: ClassVar[bool] = False

    def load(self, part: Any) -> PartTargets:
        """Load the targets of a part."""
        return load_answers(part) if isinstance(part, Path) else part.answers


Tell = Callable[[int, int], None]  # is called with steps that are done, and systems left
# What is done in one place with what was collected there, by so many threads.
Work = Callable[[Sequence[Found], int | None, Tell], Result]


class Watch(Protocol):
    """Somebody who is told how far reading is."""

    def block(self, report: Report) -> None:
        """Hear what is said of a block that was read."""

    def rows(self, n_rows: int) -> None:
        """Hear how many rows were read until now."""


class Executor(Protocol):
    """Somebody who does the work."""

    solver_bytes: int | None  # memory of this process for a solver, beside parts

    @property
    def n_workers(self) -> int:
        """How many do the work."""

    @property
    def n_places(self) -> int:
        """In how many places something can be done that cannot be cut into parts."""

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Any]:
        """Read blocks; gives their handles."""

    def encode(self, handles: Sequence[Any], encoder: Encoder, name: str) -> list[Any]:
        """Encode blocks by an encoder with sparse features; gives their handles."""

    def total(self, step: Any, handles: Sequence[Any], loader: Loader) -> Totals:
        """Add up a step over all parts."""

    def gather(
        self, function: Callable[[Any], Result], handles: Sequence[Any], loader: Loader
    ) -> list[Result]:
        """Collect what a function says of each part, in their order."""

    def whole(
        self,
        function: Callable[[Any], Found],
        handles: Sequence[Any],
        loader: Loader,
        works: Sequence[Work[Found, Result]],
        tell: Tell,
    ) -> list[Result]:
        """Collect what a function says of each part, and do each work with all of that."""


@dataclass(frozen=True)
class ExecutedPasses:
    """Parts of an executor, as a solver knows them."""

    executor: Executor
    handles: Sequence[Any]
    loader: Loader
    n_columns: int

    def total(self, step: Step) -> Totals:
        """Go over all parts, and add up what the step says."""
        return self.executor.total(step, self.handles, self.loader)

    def gather(self, function: Callable[[SamplePart], Result]) -> list[Result]:
        """Collect what a function says of each part."""
        return self.executor.gather(function, self.handles, self.loader)


# ---------------------------------------------------------------------- this machine


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
    """

    folder: Path
    cache_bytes: int
    context: Context = field(default_factory=Context)
    solver_bytes: int | None = None
    _kept: dict[Any, Any] = field(default_factory=dict)
    _kept_bytes: int = 0
    _kept_for: Loader | None = None

    @property
    def n_workers(self) -> int:
        """Processes, and threads."""
        return int(joblib.effective_n_jobs(self.context.n_jobs))

    @property
    def n_places(self) -> int:
        """The one that we are in, with all of its threads."""
        return 1

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Parts]:
        """Read blocks; gives their parts."""
        handles = []
        counter = _Counter.new(watch.rows)
        for parts, report in self._each(partial(parse_parts, asked, self.folder), blocks, counter):
            watch.block(report)
            handles.append(parts)
        return handles

    def encode(self, handles: Sequence[Parts], encoder: Encoder, name: str) -> list[Parts]:
        """Encode blocks; gives their parts."""
        singles = [Parts(files=[path]) for parts in handles for path in parts.files]
        work = partial(encode_parts, encoder, self.folder, name)
        return list(self.context.track(self._each(work, singles), len(singles), "encoding"))

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
        pool = ProcessPoolExecutor(n, get_context("spawn"), _count_in, (shared,))
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
    pool: ProcessPoolExecutor,
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


def parse_parts(asked: ShardRequest, folder: Path | None, block: Block) -> tuple[Parts, Report]:
    """Read a block, as a function of the block alone."""
    counter = _counter
    return parse_block(asked, block, folder, counter.add if counter else lambda n_rows: None)


def encode_parts(encoder: Encoder, folder: Path | None, name: str, parts: Parts) -> Parts:
    """Encode a block, as a function of its parts alone."""
    with one_blas_thread():
        return encode_block(parts, encoder, folder, name)


def bytes_of_arrays(part: Sequence[Any]) -> int:
    """Memory of the arrays of a part."""
    return sum(getattr(array, "nbytes", 0) for array in part)


def loaded_of(loader: Loader, parts: Parts) -> Parts:
    """Load the parts of one block."""
    return Parts([loader.load(part) for part in (*parts.held, *parts.files)])


def total_of(step: Any, loader: Loader, parts: Parts) -> Totals:
    """Add up the parts of one block."""
    with one_blas_thread():
        return added(step, map(loader.load, [*parts.held, *parts.files]))


def gathered_of(function: Callable[[Any], Result], loader: Loader, parts: Parts) -> list[Result]:
    """Collect what a function says of each part of one block."""
    with one_blas_thread():
        return [function(loader.load(part)) for part in (*parts.held, *parts.files)]


def memory_of(text: str) -> int:
    """Read an amount of memory such as 2GB, in bytes."""
    units = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
    cleaned = text.strip().upper().replace(" ", "")
    for unit, size in sorted(units.items(), key=lambda each: -len(each[0])):
        number = cleaned.removesuffix(unit)
        if number != cleaned:
            try:
                return _positive(int(float(number) * size))
            except (ValueError, OverflowError):
                break
    raise ValueError(f"`memory`: expected an amount such as 2GB or 500MB, got {text!r}")


def _positive(number: int) -> int:
    if number <= 0:
        raise ValueError(f"{number} is not positive")
    return number


def all_memory() -> int:
    """Bytes of memory that this machine has."""
    return int(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
