"""A directory of shards to a directory of shards: resumable, by processes or on a Dask cluster.

Each input file becomes one output file. A finished one has a checkpoint in the folder ``.fdgnn``
beside the outputs, written after it, so that a repeated command does only what is missing. The
process that predicts a shard reads and writes it.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import joblib

from fdgnn import files
from fdgnn.checkpoints import Checkpoints, content_hash
from fdgnn.context import Context
from fdgnn.datasets import iter_graphs
from fdgnn.datasets.files import fetched_shard, shard_places, split_name
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.prediction.output import KINDS, REJECTS, record_writer, rows_writer
from fdgnn.prediction.predictor import Predictor, RowCounts, predict_rows, write_rows
from fdgnn.texts import reason_of
from fdgnn.workers import Workers

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
    model_hash : str
        Of the model file. With another model or other options, all shards are predicted again.
    options : mapping
        Of `iter_graphs`.
    guard : bool
        Whether text in CSV that a spreadsheet would run as a formula begins with a quote.
    """

    predictor: Predictor
    folder: str
    model_hash: str
    options: Mapping[str, Any] = field(default_factory=dict)
    guard: bool = True

    @property
    def settings(self) -> str:
        """A hash of the model and of all options."""
        return content_hash((self.model_hash, self.predictor.options, self.options, self.guard))

    def checkpoints(self, shard: PredictedShard) -> Checkpoints:
        """Return the checkpoints of a shard, as its input is now."""
        name, stamp = files.name_of_place(shard.target), files.stamp_of(shard.source)
        return Checkpoints(files.inside(self.folder, ".fdgnn"), self.settings, name, stamp)

    def finished(self, shard: PredictedShard) -> RowCounts | None:
        """Return the counts of a finished shard whose input is still the same, or None."""
        try:
            there = files.place_exists(shard.target)
            return self.checkpoints(shard).load_record("counts", RowCounts) if there else None
        except (ValueError, OSError):  # reported when it is predicted
            return None

    def __call__(self, shard: PredictedShard) -> RowCounts | Exception:
        """Predict a shard: read it, write the result, then the checkpoint.

        An error that a user can do something about is returned.
        """
        name = files.name_of_place(shard.target)
        rejects = files.inside(self.folder, "rejects", f"{name}.rejects.csv")
        try:
            store = self.checkpoints(shard)
            with (
                fetched_shard(shard.source) as path,
                files.write_place(shard.target) as file,
                rows_writer(file, PurePosixPath(name).suffix, self.guard) as write,
                record_writer(rejects, REJECTS) as list_rejects,
            ):
                tables = iter_graphs(path, like=self.predictor.model, **self.options)
                counts = write_rows(predict_rows(self.predictor, tables), write, list_rejects)
            store.save_record("counts", counts)
        except (FDGNNError, ValueError, OSError) as error:
            return error
        return counts


# ---------------------------------------------------------------------- shards


def plan_shards(given: Sequence[str], folder: str, kind: str | None = None) -> list[PredictedShard]:
    """Find the shards that names, patterns and folders stand for, in order.

    An output has the name of its input, with the ending of `kind`; by default that of the input,
    if results can be written so, and else ``.csv``.
    """
    by_target: dict[str, str] = {}
    for source in (source for each in given for source in shard_places(each)):
        stem, suffix = split_name(source)
        name = stem + (kind or (suffix if suffix in KINDS else ".csv"))
        target = files.inside(folder, name)
        other = by_target.setdefault(target, source)
        if other != source:
            raise ValueError(
                f"{other} and {source} would both be written to {target}; rename one, or predict "
                "them into different directories"
            )
        if target == source:
            raise ValueError(f"{source}: it would be overwritten; give another directory")
    return [PredictedShard(source, target) for target, source in by_target.items()]


# ---------------------------------------------------------------------- prediction


def predict_shards(
    task: ShardTask,
    shards: Sequence[PredictedShard],
    context: Context,
    *,
    cluster: str | None = None,
    restart: bool = False,
) -> tuple[dict[str, RowCounts], int, dict[str, str]]:
    """Predict all shards that are not finished.

    A shard that cannot be read does not stop the others. An output that cannot be written, such as
    on a full disk, stops all. In both cases finished shards are kept.

    Returns
    -------
    counts : dict
        Of rows, by the name of the output.
    n_skipped : int
        Shards that were finished before.
    failures : dict
        Reasons, by the name of the input.

    Raises
    ------
    StudyError
        The directory has results of another model or with other options, without `restart`.
    """
    # The directory is for results with these settings.
    store, settings = Checkpoints(files.inside(task.folder, ".fdgnn")), task.settings
    if not restart and store.load_record("settings", str) not in (None, settings):
        raise StudyError(
            f"{task.folder}: its shards were predicted by another model or with other options; "
            "give another directory, or --force to predict all shards again"
        )
    store.save_record("settings", settings)
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
    return counts, n_skipped, failures
