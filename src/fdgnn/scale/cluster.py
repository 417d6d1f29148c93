"""A Dask cluster as an executor: workers read their own shards, and answer with sums.

Blocks of parts are futures. They stay in the memory of the workers, which spill to disk by Dask's
own rules; a block that is lost with its worker is read again by another one. Parts that many passes
go over are brought into the form that these take once, and blocks that lie on the same worker are
put together, since each task of a pass takes Dask some time. For each pass the step goes from
worker to worker, and their sums are added two by two, so that the driver sends one and gets one of
them.
"""

from __future__ import annotations

import time
from asyncio import CancelledError as LoopCancelledError
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from fdgnn.context import Context
from fdgnn.encoders import Encoder
from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.linear.blocks import Totals, merge
from fdgnn.scale.executors import (
    Found,
    Loader,
    Result,
    Tell,
    Watch,
    Work,
    bytes_of_arrays,
    encode_parts,
    gathered_of,
    loaded_of,
    total_of,
)
from fdgnn.scale.parts import Block, Parts, Report, parse_block
from fdgnn.scale.shards import ShardRequest

_LOOK_AGAIN = 30  # seconds after which it is looked whether any worker is left
_PAUSE = 1.0  # seconds before a pass is tried again: a scheduler has to see who is gone
_TRIES = 5  # of a pass whose step was lost with the workers that had it
_TOGETHER = 64_000_000  # bytes of blocks that one task goes over: all of them must be in memory


@dataclass(frozen=True)
class _Shipment:
    """What every worker needs for a pass."""

    step: Any
    loader: Loader


class _BlocksTogether(NamedTuple):
    """Blocks that one task goes over."""

    numbers: Sequence[int]  # of the blocks among all
    blocks: Any  # a list of their parts, or what Dask makes one of


class Cluster:
    """Workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    folder : Path or None
        A folder that all workers see, where parts are kept; None: they keep them in memory.
    context : Context
    solver_bytes : int, optional
        Memory of a solver in this process.
    """

    def __init__(
        self, client: Any, folder: Path | None, context: Context, solver_bytes: int | None = None
    ) -> None:
        self.client, self.folder, self.context = client, folder, context
        self.solver_bytes = solver_bytes
        self._kept_for: Loader | None = None
        self._kept: list[_BlocksTogether] = []

    @property
    def n_workers(self) -> int:
        """Threads of all workers."""
        return max(int(sum(self.client.nthreads().values())), 1)

    @property
    def n_places(self) -> int:
        """Workers."""
        return max(len(self.client.nthreads()), 1)

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Any]:
        """Read blocks on the workers; gives futures of their parts."""
        work = [
            self.client.submit(parse_block, asked, block, self.folder, pure=False)
            for block in blocks
        ]
        handles = [self.client.submit(itemgetter(0), each, pure=False) for each in work]
        reports = [self.client.submit(itemgetter(1), each, pure=False) for each in work]
        n_rows = 0
        for future in reports:
            report: Report = self._result(future)
            n_rows += report.n_rows
            watch.block(report)
            watch.rows(n_rows)
        return handles

    def encode(self, handles: Sequence[Any], encoder: Encoder, name: str) -> list[Any]:
        """Encode blocks where they are; gives futures of their parts."""
        return [
            self.client.submit(encode_parts, encoder, self.folder, name, each, pure=False)
            for each in handles
        ]

    def total(self, step: Any, handles: Sequence[Any], loader: Loader) -> Totals:
        """Add up a step over all parts: on each worker, then two by two."""

        def add_up() -> Totals:
            groups = self._groups(handles, loader)
            sent = self._sent(step, loader)
            sums = [self.client.submit(_total, sent, each.blocks, pure=False) for each in groups]
            while len(sums) > 1:
                pairs = [sums[i : i + 2] for i in range(0, len(sums), 2)]
                sums = [
                    self.client.submit(_merged, *pair, pure=False) if len(pair) == 2 else pair[0]
                    for pair in pairs
                ]
            found: Totals = self._result(sums[0])
            return found

        return self._tried(add_up)

    def gather(
        self, function: Callable[[Any], Result], handles: Sequence[Any], loader: Loader
    ) -> list[Result]:
        """Collect what a function says of each part, in their order."""

        def collect() -> list[Result]:
            groups = self._groups(handles, loader)
            sent = self._sent(function, loader)
            work = [self.client.submit(_gathered, sent, each.blocks, pure=False) for each in groups]
            numbers = [each.numbers for each in groups]
            return _in_order(numbers, [self._result(future) for future in work])

        return self._tried(collect)

    def whole(
        self,
        function: Callable[[Any], Found],
        handles: Sequence[Any],
        loader: Loader,
        works: Sequence[Work[Found, Result]],
        tell: Tell,
    ) -> list[Result]:
        """Collect what a function says of each part on workers, each of which does some work."""

        def do() -> list[Result]:
            groups = self._groups(handles, loader)
            sent = self._sent(function, loader)
            submit = self.client.submit
            found = [submit(_gathered, sent, each.blocks, pure=False) for each in groups]
            numbers = [each.numbers for each in groups]
            done = [submit(_whole, work, numbers, found, pure=False) for work in works]
            return [self._result(each) for each in done]

        return self._tried(do)

    def _groups(self, handles: Sequence[Any], loader: Loader) -> Sequence[_BlocksTogether]:
        """Give blocks as the loader brings them in: kept in groups, or one by one."""
        if not loader.kept:
            return [_BlocksTogether([number], [each]) for number, each in enumerate(handles)]
        if loader is not self._kept_for:  # from here on its blocks are kept, no other's
            self._kept_for, self._kept = loader, self._kept_groups(handles, loader)
        return self._kept

    def _kept_groups(self, handles: Sequence[Any], loader: Loader) -> list[_BlocksTogether]:
        """Let each worker load its blocks, and put together what lies on the same one."""
        submit = self.client.submit
        blocks = [submit(loaded_of, loader, each, pure=False) for each in handles]
        sizes = [self._result(submit(_bytes_of, each, pure=False)) for each in blocks]
        homes, n_threads = self.client.who_has(blocks), self.client.nthreads()
        by_home: dict[str, list[int]] = {}
        for number, block in enumerate(blocks):
            home = next(iter(homes.get(block.key) or ()), "")  # no worker, if it was just lost
            by_home.setdefault(home, []).append(number)
        groups = []
        for home, numbers in by_home.items():
            n_bytes = sum(sizes[number] for number in numbers)
            n = min(max(n_threads.get(home, 1), -(-n_bytes // _TOGETHER)), len(numbers))
            for own in (numbers[i::n] for i in range(n)):
                together = submit(list, [blocks[number] for number in own], pure=False)
                groups.append(_BlocksTogether(own, together))
        return groups

    def _sent(self, step: Any, loader: Loader) -> Any:
        """Send a step to one worker; the others have it from each other, as their tasks need it.

        Dask's broadcast would wait for ever for a worker that was just lost.
        """
        return self.client.scatter(_Shipment(step, loader), hash=False)

    def _tried(self, work: Callable[[], Result]) -> Result:
        """Try again if what was sent was lost with the workers that had it."""
        for _ in range(_TRIES - 1):
            try:
                return work()
            except (CancelledError, LoopCancelledError, OSError):  # of connections that broke
                time.sleep(_PAUSE)
                self._check_workers()
        return work()

    def _result(self, future: Any) -> Any:
        """Wait for a result, as long as there are workers; tell in a sentence if there is none."""
        distributed = require("distributed", "cluster", "clusters")
        while True:
            try:
                return future.result(timeout=_LOOK_AGAIN)
            except (TimeoutError, distributed.TimeoutError):
                self._check_workers()
            except distributed.KilledWorker as error:
                raise StudyError(
                    "workers of the cluster were killed again and again at the same work, perhaps "
                    "because memory ran out; give them more, or cut the data into smaller files"
                ) from error

    def _check_workers(self) -> None:
        if not self.client.nthreads():
            raise StudyError("all workers of the cluster are gone")


def _bytes_of(parts: Parts) -> int:
    return sum(map(bytes_of_arrays, parts.held))


def _total(sent: _Shipment, blocks: Sequence[Parts]) -> Totals:
    parts = Parts(
        [part for each in blocks for part in each.held],
        [file for each in blocks for file in each.files],
    )
    return total_of(sent.step, sent.loader, parts)


def _gathered(sent: _Shipment, blocks: Sequence[Parts]) -> list[list[Any]]:
    return [gathered_of(sent.step, sent.loader, each) for each in blocks]


def _in_order(numbers: Sequence[Sequence[int]], found: Sequence[list[Any]]) -> list[Any]:
    """Put what was found of groups of blocks into the order of the blocks."""
    by_block: dict[int, list[Any]] = {}
    for own, results in zip(numbers, found, strict=True):
        by_block |= zip(own, results, strict=True)
    return [result for number in sorted(by_block) for result in by_block[number]]


def _whole(work: Any, numbers: Sequence[Sequence[int]], found: Sequence[list[Any]]) -> Any:
    return work(_in_order(numbers, found), 1, lambda steps, left: None)


def _merged(one: Totals, other: Totals) -> Totals:
    return merge(tuple(array.copy() for array in one), other)
