"""A directory of shards to a directory of shards: resumable, by processes or on a Dask cluster.

Each input file becomes one output file. A finished one has a record in the folder ``.fdgnn`` beside
the outputs, written after it, so that a repeated command does only what is missing. Whoever
predicts a shard reads and writes it by itself.
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
from fdgnn.datasets.shards import fetched_shard, shard_places, split_name
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.extras import require
from fdgnn.prediction.output import KINDS, reject_writer, rows_writer
from fdgnn.prediction.predictor import PredictedRows, Predictor, predict_tables
from fdgnn.records import Record, decode, encode
from fdgnn.texts import reason_of
from fdgnn.threads import one_blas_thread
from fdgnn.workers import WorkerPool

SHOWN = 5  # bad rows of a shard that its record has; a file lists all of them
_RECORDS = ".fdgnn"


class ShardRecord(Record, frozen=True, kw_only=True):
    """What is known of a finished shard."""

    stamp: str  # of the input
    made_by: str  # a hash of the model and of what was asked of it
    rows: int = 0
    rejected: int = 0
    unseen_labels: int = 0
    unlike: int = 0
    changed: int = 0
    first_rejects: tuple[str, ...] = ()

    def with_rows(self, some: PredictedRows) -> ShardRecord:
        """Count some more rows."""
        told = tuple(str(reject) for reject in some.rejects[:SHOWN])
        return ShardRecord(
            stamp=self.stamp,
            made_by=self.made_by,
            rows=self.rows + len(some),
            rejected=self.rejected + len(some.rejects),
            unseen_labels=self.unseen_labels + some.n_unseen,
            unlike=self.unlike + some.n_unlike,
            changed=self.changed + some.n_changed,
            first_rejects=(self.first_rejects + told)[:SHOWN],
        )


@dataclass(frozen=True)
class PredictedShard:
    """One input file and the output file that becomes of it, as paths or URLs."""

    source: str
    target: str

    @property
    def record(self) -> str:
        """Where it is written down that the shard is finished."""
        folder, name = self._parts
        return places.inside(folder, _RECORDS, f"{name}.json")

    @property
    def rejects(self) -> str:
        """Where its bad rows are listed, if it has any."""
        folder, name = self._parts
        return places.inside(folder, "rejects", f"{name}.rejects.csv")

    @property
    def _parts(self) -> tuple[str, str]:
        name = places.name_of_place(self.target)
        return self.target[: -len(name)].rstrip("/") or ".", name


@dataclass(frozen=True)
class ShardWork:
    """What is done to each shard; it can go to other processes and machines."""

    predictor: Predictor
    made_by: str
    options: Mapping[str, Any] = field(default_factory=dict)  # of `iter_graphs`
    guard: bool = True

    @classmethod
    def of(
        cls, predictor: Predictor, model_file: bytes, options: Mapping[str, Any], guard: bool
    ) -> ShardWork:
        """Describe the work; results of another model, or of other settings, are other ones."""
        asked = (predictor.coverage, predictor.id_column, sorted(options.items()), guard)
        made_by = hashlib.sha256(model_file + repr(asked).encode()).hexdigest()
        return cls(predictor, made_by, options, guard)

    def predict(self, shard: PredictedShard) -> ShardRecord:
        """Predict one shard: read it, write the result, then its record."""
        found = ShardRecord(stamp=places.stamp_of(shard.source), made_by=self.made_by)
        kind = PurePosixPath(shard.target).suffix
        with fetched_shard(shard.source) as path:
            tables = iter_graphs(path, like=self.predictor.model, **self.options)
            with (
                places.write_place(shard.target) as file,
                rows_writer(file, kind, self.guard) as write,
                reject_writer(partial(places.write_place, shard.rejects)) as list_rejects,
            ):
                for rows in predict_tables(self.predictor, tables, 1):
                    write(rows.columns)
                    found = found.with_rows(rows)
                    list_rejects(rows.rejects)
        with places.write_place(shard.record) as file:
            file.write(encode(found) + b"\n")
        return found

    def finished(self, shard: PredictedShard) -> ShardRecord | None:
        """Give the record of a shard that is finished and whose input is still the same.

        Raises
        ------
        StudyError
            It was predicted by another model, or with other settings.
        """
        content = places.read_place(shard.record)
        try:
            found = None if content is None else decode(content, ShardRecord)
            if found is None or places.stamp_of(shard.target) == "":
                return None
        except (ValueError, FileNotFoundError):  # damaged or gone: it is predicted again
            return None
        if found.made_by != self.made_by:
            raise StudyError(
                f"{shard.target}: it was predicted by another model or with other settings; give "
                "another directory, or --restart to predict all shards again"
            )
        return found if found.stamp == places.stamp_of(shard.source) else None


# ---------------------------------------------------------------------- which shards there are


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


# ---------------------------------------------------------------------- who predicts them


@dataclass(frozen=True)
class ShardResults:
    """What became of the shards."""

    records: Mapping[str, ShardRecord]  # by the name of the output
    n_skipped: int  # finished before
    failures: Mapping[str, str]  # reasons, by the name of the input


def predict_shards(
    work: ShardWork,
    shards: Sequence[PredictedShard],
    context: Context,
    *,
    cluster: str | None = None,
    restart: bool = False,
) -> ShardResults:
    """Predict all shards that are not finished.

    A shard that cannot be read does not stop the others. What stops all is an output that cannot
    be written, such as a full disk. In both cases finished shards are kept.
    """
    records = {} if restart else _finished(work, shards)
    waiting = [shard for shard in shards if shard.target not in records]
    n_skipped, failures = len(records), dict[str, str]()
    results = (
        _on_cluster(work, waiting, cluster, context) if cluster else _here(work, waiting, context)
    )
    for shard, found in context.track(results, len(shards), "shards", done=n_skipped):
        if isinstance(found, ShardRecord):
            records[shard.target] = found
        elif _is_lasting(found):
            raise found
        else:
            failures[shard.source] = " ".join(reason_of(found).split())
    return ShardResults(records, n_skipped, failures)


def _finished(work: ShardWork, shards: Sequence[PredictedShard]) -> dict[str, ShardRecord]:
    found = ((shard.target, _kept(work, shard)) for shard in shards)
    return {target: record for target, record in found if record is not None}


def _kept(work: ShardWork, shard: PredictedShard) -> ShardRecord | None:
    try:
        return work.finished(shard)
    except OSError:  # its input is gone: it is told when it is to be predicted
        return None


def _is_lasting(error: Exception) -> bool:
    """Tell errors that would meet every other shard, too."""
    lasting = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
    return isinstance(error, OSError) and error.errno in lasting


Answer = tuple[PredictedShard, "ShardRecord | Exception"]


def _tried(work: ShardWork, shard: PredictedShard) -> ShardRecord | Exception:
    """Predict a shard; give the error that a user can do something about."""
    try:
        with one_blas_thread():
            return work.predict(shard)
    except (FDGNNError, ValueError, OSError) as error:
        return error


def _here(work: ShardWork, shards: Sequence[PredictedShard], context: Context) -> Iterator[Answer]:
    n_processes = min(joblib.effective_n_jobs(context.n_jobs), len(shards))
    if n_processes <= 1:
        yield from ((shard, _tried(work, shard)) for shard in shards)
        return
    pool = WorkerPool(n_processes, _start, (work,))
    try:
        waiting = {pool.submit(_work, shard): shard for shard in shards}
        for done in as_finished(waiting):
            yield waiting[done], done.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_started: list[ShardWork] = []


def _start(work: ShardWork) -> None:
    """Keep the work in this process, which is sent once and not with each shard."""
    _started.append(work)


def _work(shard: PredictedShard) -> ShardRecord | Exception:
    return _tried(_started[0], shard)


def _on_cluster(
    work: ShardWork, shards: Sequence[PredictedShard], address: str, context: Context
) -> Iterator[Answer]:
    """Send shards to Dask's workers; those of a worker that is lost go to others."""
    distributed = require("distributed", "cluster", "clusters")
    with connected(address, context) as client:
        sent = client.scatter(work, broadcast=True, hash=False)
        waiting = {
            client.submit(_tried, sent, each, pure=False, retries=3): each for each in shards
        }
        for done in distributed.as_completed(list(waiting)):
            try:
                yield waiting[done], done.result()
            except distributed.KilledWorker as error:
                yield waiting[done], StudyError(f"its workers died again and again ({error})")
            done.release()
