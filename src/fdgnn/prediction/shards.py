"""A directory of shards to a directory of shards: resumable, by processes or on a Dask cluster.

Each input file becomes one output file. A finished one has a checkpoint in the folder ``.fdgnn``
beside the outputs, written after it, so that a repeated command does only what is missing. The
process that predicts a shard reads and writes it.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import joblib

from fdgnn import files
from fdgnn.checkpoints import Checkpoints
from fdgnn.context import Context
from fdgnn.datasets import iter_graphs
from fdgnn.datasets.files import fetched_shard, shard_places, split_name
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.prediction.output import KINDS, REJECTS, record_writer, rows_writer
from fdgnn.prediction.predictor import Predictor, RowCounts, predict_rows
from fdgnn.scale.workers import Workers
from fdgnn.texts import reason_of

# Errors that would meet every other shard.
_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class PredictedShard(NamedTuple):
    """One input file and its output file, as paths or URLs."""

    source: str
    target: str


@dataclass(frozen=True)
class ShardTask:
    """The task of predicting shards into a directory; it can be sent to other processes.

    Attributes
    ----------
    predictor : Predictor
    folder : str
        Path or URL of the directory of results.
    settings : str
        A hash of the model and of all options.
    options : mapping
        Of `iter_graphs`.
    guard : bool
        Whether text in CSV that a spreadsheet would run as a formula begins with a quote.
    """

    predictor: Predictor
    folder: str
    settings: str
    options: Mapping[str, Any] = field(default_factory=dict)
    guard: bool = True

    @classmethod
    def of(
        cls,
        predictor: Predictor,
        model_file: bytes,
        folder: str,
        options: Mapping[str, Any],
        guard: bool,
    ) -> ShardTask:
        """Return the task; results of another model, or with other options, are not its own."""
        asked = (*predictor.options, sorted(options.items()), guard)
        settings = hashlib.sha256(model_file + repr(asked).encode()).hexdigest()
        return cls(predictor, folder, settings, options, guard)

    def checkpoints(self, *contents: str) -> Checkpoints:
        """Return the checkpoints of the directory that depend on these contents."""
        return Checkpoints(files.inside(self.folder, ".fdgnn"), *contents)

    def finished(self, shard: PredictedShard) -> RowCounts | None:
        """Return the counts of a finished shard whose input is still the same, or None."""
        try:
            stamp = files.stamp_of(shard.source)
            there = files.place_exists(shard.target)
        except (ValueError, OSError):  # reported when it is predicted
            return None
        store = self.checkpoints(self.settings, files.name_of_place(shard.target), stamp)
        return store.load_record("counts", RowCounts) if there else None

    def __call__(self, shard: PredictedShard) -> RowCounts | Exception:
        """Predict a shard; return the error that a user can do something about."""
        try:
            return self.predict(shard)
        except (FDGNNError, ValueError, OSError) as error:
            return error

    def predict(self, shard: PredictedShard) -> RowCounts:
        """Predict one shard: read it, write the result, then the checkpoint."""
        stamp, counts = files.stamp_of(shard.source), RowCounts()
        name = files.name_of_place(shard.target)
        rejects = files.inside(self.folder, "rejects", f"{name}.rejects.csv")
        with (
            fetched_shard(shard.source) as path,
            files.write_place(shard.target) as file,
            rows_writer(file, PurePosixPath(name).suffix, self.guard) as write,
            record_writer(rejects, REJECTS) as list_rejects,
        ):
            tables = iter_graphs(path, like=self.predictor.model, **self.options)
            for rows in predict_rows(self.predictor, tables):
                write(rows.columns)
                counts += rows.counts
                list_rejects(rows.rejects)
        self.checkpoints(self.settings, name, stamp).save_record("counts", counts)
        return counts


# ---------------------------------------------------------------------- shards


def plan_shards(given: Sequence[str], folder: str, kind: str | None = None) -> list[PredictedShard]:
    """Find the shards that names, patterns and folders stand for, in order.

    An output has the name of its input, with the ending of `kind`; by default that of the input,
    if results can be written so, and else ``.csv``.
    """
    sources = [source for each in given for source in shard_places(each)]
    shards = []
    for source in sources:
        stem, suffix = split_name(source)
        name = stem + (kind or (suffix if suffix in KINDS else ".csv"))
        shards.append(PredictedShard(source, files.inside(folder, name)))
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


# ---------------------------------------------------------------------- prediction


@dataclass(frozen=True)
class ShardResults:
    """Results of all shards."""

    counts: Mapping[str, RowCounts]  # by the name of the output
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

    Raises
    ------
    StudyError
        The directory has results of another model or with other options, without `restart`.
    """
    # The directory is for results with these settings.
    store = task.checkpoints()
    if not restart and store.load_record("settings", str) not in (None, task.settings):
        raise StudyError(
            f"{task.folder}: its shards were predicted by another model or with other options; "
            "give another directory, or --force to predict all shards again"
        )
    store.save_record("settings", task.settings)
    finished = {} if restart else {shard.target: task.finished(shard) for shard in shards}
    counts = {target: found for target, found in finished.items() if found is not None}
    waiting = [shard for shard in shards if shard.target not in counts]
    n_skipped, failures = len(counts), dict[str, str]()
    with Workers.of(cluster, joblib.effective_n_jobs(context.n_jobs), context) as workers:
        results = zip(waiting, workers.run(task, waiting), strict=True)
        for shard, found in context.track(results, len(shards), "shards", done=n_skipped):
            if isinstance(found, RowCounts):
                counts[shard.target] = found
            elif isinstance(found, OSError) and found.errno in _LASTING:
                raise found
            else:
                failures[shard.source] = " ".join(reason_of(found).split())
    return ShardResults(counts, n_skipped, failures)
