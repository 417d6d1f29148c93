"""A directory of shards to a directory of shards: resumable, by processes or on a Dask cluster.

Each input file becomes one output file. A finished one has a record in the folder ``.fdgnn`` beside
the outputs, written after it, so that a repeated command does only what is missing. The process
that predicts a shard reads and writes it.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed as as_finished
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath
from typing import Any

import joblib

from fdgnn import places
from fdgnn.clusters import connected
from fdgnn.context import Context
from fdgnn.datasets import iter_graphs
from fdgnn.datasets.files import fetched_shard, shard_places, split_name
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.extras import require
from fdgnn.prediction.output import KINDS, REJECTS, record_writer, rows_writer
from fdgnn.prediction.predictor import Predictor, RowCounts
from fdgnn.prediction.rows import predict_rows, run_task, start_task
from fdgnn.records import Record, decode, encode
from fdgnn.texts import reason_of
from fdgnn.threads import one_blas_thread
from fdgnn.workers import WorkerPool

# Errors that would meet every other shard.
_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_RECORDS = ".fdgnn"


class ShardRecord(Record, frozen=True, kw_only=True):
    """The record of a finished shard."""

    stamp: str  # of the input
    made_by: str  # a hash of the model and of the options
    counts: RowCounts


@dataclass(frozen=True)
class PredictedShard:
    """One input file and its output file, as paths or URLs."""

    source: str
    target: str

    @property
    def record(self) -> str:
        """Place of the record that the shard is finished."""
        return self._beside(_RECORDS, ".json")

    @property
    def rejects(self) -> str:
        """Place of the list of its rejected rows, if it has any."""
        return self._beside("rejects", ".rejects.csv")

    def _beside(self, folder: str, ending: str) -> str:
        name = places.name_of_place(self.target)
        parent = self.target[: -len(name)].rstrip("/") or "."
        return places.inside(parent, folder, f"{name}{ending}")


@dataclass(frozen=True)
class ShardTask:
    """The task of predicting shards; it can be sent to other processes and machines."""

    predictor: Predictor
    made_by: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of `iter_graphs`
    guard: bool = True

    @classmethod
    def of(
        cls, predictor: Predictor, model_file: bytes, options: Mapping[str, Any], guard: bool
    ) -> ShardTask:
        """Return the task; results of another model, or with other options, are not its own."""
        asked = (*predictor.options, sorted(options.items()), guard)
        made_by = hashlib.sha256(model_file + repr(asked).encode()).hexdigest()
        return cls(predictor, made_by, options, guard)

    def __call__(self, shard: PredictedShard) -> ShardRecord | Exception:
        """Predict a shard; return the error that a user can do something about."""
        try:
            return self.predict(shard)
        except (FDGNNError, ValueError, OSError) as error:
            return error

    def predict(self, shard: PredictedShard) -> ShardRecord:
        """Predict one shard: read it, write the result, then its record."""
        stamp, counts = places.stamp_of(shard.source), RowCounts()
        kind = PurePosixPath(shard.target).suffix
        with fetched_shard(shard.source) as path:
            tables = iter_graphs(path, like=self.predictor.model, **self.options)
            with (
                places.write_place(shard.target) as file,
                rows_writer(file, kind, self.guard) as write,
                record_writer(partial(places.write_place, shard.rejects), REJECTS) as list_rejects,
            ):
                for rows in predict_rows(self.predictor, tables):
                    write(rows.columns)
                    counts = counts.with_rows(rows)
                    list_rejects(rows.rejects)
        found = ShardRecord(stamp=stamp, made_by=self.made_by, counts=counts)
        with places.write_place(shard.record) as file:
            file.write(encode(found) + b"\n")
        return found

    def finished(self, shard: PredictedShard) -> ShardRecord | None:
        """Return the record of a shard that is finished and whose input is still the same.

        Raises
        ------
        StudyError
            It was predicted by another model, or with other options.
        """
        content = places.read_place(shard.record)
        if content is None:
            return None
        try:
            found, now = decode(content, ShardRecord), places.stamp_of(shard.source)
            if places.stamp_of(shard.target) == "":
                return None
        except (ValueError, OSError):  # damaged or gone: it is predicted again
            return None
        if found.made_by != self.made_by:
            raise StudyError(
                f"{shard.target}: it was predicted by another model or with other options; give "
                "another directory, or --force to predict all shards again"
            )
        return found if found.stamp == now else None


# ---------------------------------------------------------------------- shards


def plan_shards(given: Sequence[str], folder: str, kind: str | None = None) -> list[PredictedShard]:
    """Find the shards that names, patterns and folders stand for, in order.

    An output has the name of its input, with the ending of `kind`; by default that of the input,
    if results can be written so, and else ``.csv``.
    """
    sources = [source for each in given for source in shard_places(each)]
    shards = [
        PredictedShard(each, places.inside(folder, _target_name(each, kind))) for each in sources
    ]
    by_target: dict[str, str] = {}
    for shard in shards:
        other = by_target.setdefault(shard.target, shard.source)
        if other != shard.source:
            raise ValueError(
                f"{other} and {shard.source} would both be written to {shard.target}; rename one, "
                "or predict them into different directories"
            )
        if shard.target == shard.source:
            raise ValueError(f"{shard.source}: it would be overwritten; give another directory")
    return [PredictedShard(source, target) for target, source in by_target.items()]


def _target_name(source: str, kind: str | None) -> str:
    stem, suffix = split_name(source)
    return stem + (kind or (suffix if suffix in KINDS else ".csv"))


# ---------------------------------------------------------------------- prediction


@dataclass(frozen=True)
class ShardResults:
    """Results of all shards."""

    records: Mapping[str, ShardRecord]  # by the name of the output
    n_skipped: int  # finished before
    failures: Mapping[str, str]  # reasons, by the name of the input


def predict_shards(
    task: ShardTask,
    shards: Sequence[PredictedShard],
    context: Context,
    *,
    cluster: str | None = None,
    restart: bool = False,
) -> ShardResults:
    """Predict all shards that are not finished.

    A shard that cannot be read does not stop the others. An output that cannot be written, such as
    on a full disk, stops all. In both cases finished shards are kept.
    """
    finished = {} if restart else {shard.target: task.finished(shard) for shard in shards}
    records = {target: record for target, record in finished.items() if record is not None}
    waiting = [shard for shard in shards if shard.target not in records]
    n_skipped, failures = len(records), dict[str, str]()
    results = (
        _on_cluster(task, waiting, cluster, context) if cluster else _here(task, waiting, context)
    )
    for shard, found in context.track(results, len(shards), "shards", done=n_skipped):
        if isinstance(found, ShardRecord):
            records[shard.target] = found
        elif isinstance(found, OSError) and found.errno in _LASTING:
            raise found
        else:
            failures[shard.source] = " ".join(reason_of(found).split())
    return ShardResults(records, n_skipped, failures)


Answer = tuple[PredictedShard, "ShardRecord | Exception"]


def _here(task: ShardTask, shards: Sequence[PredictedShard], context: Context) -> Iterator[Answer]:
    n_processes = min(joblib.effective_n_jobs(context.n_jobs), len(shards))
    if n_processes <= 1:
        yield from ((shard, _run(task, shard)) for shard in shards)
        return
    pool = WorkerPool(n_processes, start_task, (task,))
    try:
        waiting = {pool.submit(run_task, shard): shard for shard in shards}
        for done in as_finished(waiting):
            yield waiting[done], done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on_cluster(
    task: ShardTask, shards: Sequence[PredictedShard], address: str, context: Context
) -> Iterator[Answer]:
    """Send shards to Dask's workers; shards of a lost worker go to others."""
    distributed = require("distributed", "cluster", "clusters")
    with connected(address, context) as client:
        sent = client.scatter(task, broadcast=True, hash=False)
        waiting = {client.submit(_run, sent, each, pure=False, retries=3): each for each in shards}
        for done in distributed.as_completed(list(waiting)):
            try:
                yield waiting[done], done.result()
            except distributed.KilledWorker as error:
                yield waiting[done], StudyError(f"its workers died again and again ({error})")
            done.release()


def _run(task: ShardTask, shard: PredictedShard) -> ShardRecord | Exception:
    with one_blas_thread():
        return task(shard)
