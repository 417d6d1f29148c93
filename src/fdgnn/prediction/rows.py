"""Prediction table by table, by several processes; the rows keep their order.

RDKit and the way from a molecule to arrays hold Python's lock, so that threads cannot share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from pathlib import Path
from queue import Queue
from threading import Event, Thread
from typing import Any, NamedTuple, TypeVar

import joblib

from fdgnn.datasets import GraphTable
from fdgnn.datasets.files import BLOCK, DAMAGE, SUFFIXES, open_unpacked
from fdgnn.datasets.rows import ChunkReader, GraphTables, RowChunk
from fdgnn.prediction.predictor import PredictedRows, Predictor
from fdgnn.threads import one_blas_thread
from fdgnn.workers import WorkerPool

Item = TypeVar("Item")
Result = TypeVar("Result")

_LINES = ("csv", "tsv", "jsonl", "smi")  # formats that have a row per line
_WITH_HEADER = ("csv", "tsv")


def predict_rows(
    predictor: Predictor, tables: Iterator[GraphTable], n_jobs: int | None = None
) -> Iterator[PredictedRows]:
    """Predict table by table, molecules by several processes.

    Rows that fit in one table are not worth the start of a process.
    """
    n_processes = joblib.effective_n_jobs(n_jobs)
    if n_processes == 1 or not isinstance(tables, GraphTables) or not tables.independent:
        predictor.model.set_params(n_jobs=n_jobs)
        yield from map(predictor.predict, tables)
        return
    chunks, reader = tables.chunks(), tables.reader
    first = next(chunks)
    if tables.chunk_size is None or len(first.rows) < tables.chunk_size:
        yield predictor.predict(reader.read(first))
        return
    predictor.model.set_params(n_jobs=1)
    pool = WorkerPool(n_processes, start_task, (_ChunkPredictor(predictor, reader),))
    try:
        yield from in_order(
            lambda chunk: pool.submit(run_task, chunk), chain([first], chunks), 2 * n_processes
        )
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def in_order(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Yield the results of submitted items in the order of the items, at most so many ahead.

    Items are taken in a thread, so that a result need not wait for the next item of a slow pipe.
    """
    waiting: Queue[Future[Result] | None] = Queue(most)
    stopped = Event()

    def feed() -> None:
        try:
            for item in items:
                if stopped.is_set():
                    return
                waiting.put(submit(item))
        except BaseException as error:  # raised again where results are taken
            failed: Future[Result] = Future()
            failed.set_exception(error)
            waiting.put(failed)
        waiting.put(None)

    Thread(target=feed, daemon=True).start()
    try:
        while (future := waiting.get()) is not None:
            yield future.result()
    finally:
        stopped.set()
        while not waiting.empty():  # so that the thread does not wait for a place
            waiting.get()


def count_rows(place: str) -> int | None:
    """Count the rows of a file by its lines, to show progress; None where lines are not rows."""
    path = Path(place)
    suffixes = [each.lower() for each in path.suffixes if each.lower() != ".gz"]
    format = SUFFIXES.get(suffixes[-1]) if suffixes else None
    if not path.is_file() or format not in _LINES:
        return None
    try:
        with open_unpacked(path) as (stream, _):
            blocks = iter(lambda: stream.read(BLOCK), b"")
            return sum(block.count(b"\n") for block in blocks) - (format in _WITH_HEADER)
    except DAMAGE:  # reported where the rows are read
        return None


# ---------------------------------------------------------------------- in worker processes


class _ChunkPredictor(NamedTuple):
    """The task of predicting rows that are not read yet."""

    predictor: Predictor
    reader: ChunkReader

    def __call__(self, chunk: RowChunk) -> PredictedRows:
        return self.predictor.predict(self.reader.read(chunk))


_task: list[Callable[[Any], Any]] = []


def start_task(task: Callable[[Any], Any]) -> None:
    """Keep the task of this worker process, which is sent once and not with each item."""
    _task.append(task)


def run_task(item: Any) -> Any:
    """Run the task of this worker process on an item."""
    with one_blas_thread():
        return _task[0](item)
