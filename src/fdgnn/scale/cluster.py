"""A Dask cluster as an executor: workers read their own shards, and answer with sums.

Blocks of parts are futures. They stay in the memory of the workers, which spill to disk by Dask's
own rules; a block that is lost with its worker is read again by another one. Parts that many passes
go over are brought into the form that these take once. For each pass the step
goes from worker to worker, and their sums are added two by two, so that the driver sends one and
gets one of them.
"""

from __future__ import annotations

import time
from asyncio import CancelledError as LoopCancelledError
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar

from fdgnn.context import Context
from fdgnn.encoders import Encoder
from fdgnn.exceptions import StudyError
from fdgnn.extras import require
from fdgnn.readout.passes import Totals, merge
from fdgnn.scale.executors import (
    Loader,
    Watch,
    encode_parts,
    gathered_of,
    loaded_of,
    parse_parts,
    total_of,
)
from fdgnn.scale.parts import Block, Report
from fdgnn.scale.shards import ShardRequest

Result = TypeVar("Result")
_LOOK_AGAIN = 30  # seconds after which it is looked whether any worker is left
_PAUSE = 1.0  # seconds before a pass is tried again: a scheduler has to see who is gone
_TRIES = 5  # of a pass whose step was lost with the workers that had it


@dataclass(frozen=True)
class _Shipment:
    """What every worker needs for a pass."""

    step: Any
    loader: Loader


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
        self._kept: list[Any] = []

    @property
    def n_workers(self) -> int:
        """Threads of all workers."""
        return max(int(sum(self.client.nthreads().values())), 1)

    def parse(self, asked: ShardRequest, blocks: Sequence[Block], watch: Watch) -> list[Any]:
        """Read blocks on the workers; gives futures of their parts."""
        work = [
            self.client.submit(parse_parts, asked, self.folder, block, pure=False)
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
            sent = self._sent(step, loader)
            blocks = self._loaded(handles, loader)
            sums = [self.client.submit(_total, sent, each, pure=False) for each in blocks]
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
            sent = self._sent(function, loader)
            blocks = self._loaded(handles, loader)
            work = [self.client.submit(_gathered, sent, each, pure=False) for each in blocks]
            return [found for each in work for found in self._result(each)]

        return self._tried(collect)

    def _loaded(self, handles: Sequence[Any], loader: Loader) -> Sequence[Any]:
        """Give blocks as the loader brings them in, made once, if it says that they are kept."""
        if not loader.kept:
            return handles
        if loader is not self._kept_for:  # from here on its blocks are kept, no other's
            self._kept_for = loader
            self._kept = [self.client.submit(loaded_of, loader, h, pure=False) for h in handles]
        return self._kept

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


def _total(sent: _Shipment, parts: Any) -> Totals:
    return total_of(sent.step, sent.loader, parts)


def _gathered(sent: _Shipment, parts: Any) -> list[Any]:
    return gathered_of(sent.step, sent.loader, parts)


def _merged(one: Totals, other: Totals) -> Totals:
    return merge(tuple(array.copy() for array in one), other)
