"""Prediction by several processes: each reads and predicts some rows; the rows keep their order.

RDKit and the way from a molecule to arrays hold Python's lock, so that threads cannot share them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from itertools import chain
from queue import Queue
from threading import Event, Thread
from typing import NamedTuple, TypeVar

import joblib

from fdgnn.datasets import GraphTable
from fdgnn.datasets.rows import ChunkReader, GraphTables, RowChunk
from fdgnn.prediction.predictor import PredictedRows, Predictor, predict_tables
from fdgnn.threads import one_blas_thread
from fdgnn.workers import WorkerPool

Item = TypeVar("Item")
Result = TypeVar("Result")


def predict_rows(
    predictor: Predictor, tables: Iterator[GraphTable], n_jobs: int | None
) -> Iterator[PredictedRows]:
    """Predict table by table as `predict_tables`, molecules by several processes.

    Rows that fit in one table are not worth the start of a process.
    """
    n_processes = joblib.effective_n_jobs(n_jobs)
    if n_processes == 1 or not isinstance(tables, GraphTables) or not tables.independent:
        yield from predict_tables(predictor, tables, n_jobs)
        return
    chunks = tables.chunks()
    first = next(chunks, None)
    if first is None:  # all rows were predicted before
        return
    if tables.chunk_size is None or len(first.rows) < tables.chunk_size:
        yield predictor.predict(tables.reader.read(first))
        return
    predictor.model.set_params(n_jobs=1)
    worker = _Worker(predictor, tables.reader)
    pool = WorkerPool(n_processes, _start, (worker,))

    def submit(chunk: RowChunk) -> Future[PredictedRows]:
        return pool.submit(_work, chunk)

    try:
        yield from in_order(submit, chain([first], chunks), 2 * n_processes)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def skip_rows(tables: Iterator[GraphTable], n_rows: int) -> Iterator[GraphTable]:
    """Leave out the first rows, as many as some tables have; they are not read if need not be."""
    if isinstance(tables, GraphTables):
        tables.skip(n_rows)
    else:
        while n_rows > 0 and (table := next(tables, None)) is not None:
            n_rows -= table.n_rows
    return tables


def in_order(
    submit: Callable[[Item], Future[Result]], items: Iterable[Item], most: int
) -> Iterator[Result]:
    """Give the results of submitted items in the order of the items, at most so many ahead.

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


# ---------------------------------------------------------------------- in the processes


class _Worker(NamedTuple):
    """What a process needs to know: who predicts, and how rows are read."""

    predictor: Predictor
    reader: ChunkReader

    def predict(self, chunk: RowChunk) -> PredictedRows:
        return self.predictor.predict(self.reader.read(chunk))


_started: list[_Worker] = []


def _start(worker: _Worker) -> None:
    """Keep the worker of this process, which is sent once and not with each chunk."""
    _started.append(worker)


def _work(chunk: RowChunk) -> PredictedRows:
    with one_blas_thread():
        return _started[0].predict(chunk)
