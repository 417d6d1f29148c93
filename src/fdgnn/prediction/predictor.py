"""From a model and tables of graphs to predictions, by several processes; rows keep their order.

RDKit and the way from a molecule to arrays hold Python's lock, so that threads cannot share them.

A directory of shards is predicted into another directory, by processes or on a Dask cluster. Each
input file becomes one output file. A finished one has a checkpoint in the folder ``.fdgnn`` beside
the outputs, written after it, so that a repeated command does only what is missing. The process
that predicts a shard reads and writes it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from math import isnan
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import is_classifier

from fdgnn import files
from fdgnn.arrays import Floats, Ints
from fdgnn.checkpoints import Checkpoints, content_hash
from fdgnn.context import Context
from fdgnn.datasets import GraphTable, Reject, iter_graphs
from fdgnn.datasets.files import fetched_shard, shard_places, split_name
from fdgnn.datasets.rows import ChunkReader, GraphTables, RowChunk
from fdgnn.encoders import Encoder
from fdgnn.estimators.base import Answers
from fdgnn.exceptions import FDGNNError, StudyError
from fdgnn.model_files import load_model
from fdgnn.neighbors import Neighbors
from fdgnn.prediction.output import KINDS, REJECTS, record_writer, rows_writer
from fdgnn.records import Record, cached_property
from fdgnn.texts import reason_of
from fdgnn.workers import Workers

NO_CLASS = "none"  # in place of a set without classes
SHOWN_REJECTS = 5  # that are shown on the terminal; a file lists all of them
_OF_ROWS = ("domain_distance", "out_of_domain", "warning", "error")  # whatever the targets are
_SMILES = "smiles"
# Errors that would meet every other shard.
_LASTING = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)


class RowCounts(Record, frozen=True, kw_only=True):
    """Counts of rows that were predicted, and of those with something to report.

    Attributes
    ----------
    rows, rejected : int
    unknown_labels, out_of_domain : int
        Rows with labels that no training graph has, and those out of domain.
    unanswered : int
        Rows that have nothing in common with the training graphs, and so no prediction.
    changed : int
        Molecules that were changed before they were read.
    first_rejects : tuple of str
    """

    rows: int = 0
    rejected: int = 0
    unknown_labels: int = 0
    out_of_domain: int = 0
    unanswered: int = 0
    changed: int = 0
    first_rejects: tuple[str, ...] = ()

    def __add__(self, other: RowCounts) -> RowCounts:
        names = self.__struct_fields__
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        return RowCounts(**sums | {"first_rejects": sums["first_rejects"][:SHOWN_REJECTS]})


@dataclass(frozen=True)
class PredictedRows:
    """Predictions of the rows of a table, column by column, in the order of the rows.

    Attributes
    ----------
    columns : dict of lists
        One value for each row, None where there is none: the row's id or number, the columns that
        are kept of the table, then `Predictor.columns`.
    rejects : list of Reject
        The rows that cannot be predicted; the column "error" has their reasons, too.
    counts : RowCounts
    """

    columns: dict[str, list[Any]]
    rejects: list[Reject]
    counts: RowCounts

    def __len__(self) -> int:
        return self.counts.rows


@dataclass(frozen=True)
class Predictor:
    """A fitted model with options of prediction; it can be sent to other processes.

    Parameters
    ----------
    model : any model of this library
    coverage : float, optional
        Of conformal sets of classes, or of intervals; by default there are none.
    by_class : bool or "auto"
        Whether the sets have this coverage in each class, as in `predict_set`.
    neighbors : int
        How many of the most similar training graphs each row is shown with.
    keep : tuple of str
        Columns of the table that are kept in the output.
    precision : int, optional
        Significant digits of numbers; by default all.

    Raises
    ------
    ValueError
        The model has no such sets or intervals, or no kernel; or two columns have one name.
    """

    model: Any
    coverage: float | None = None
    by_class: bool | str = "auto"
    neighbors: int = 0
    keep: tuple[str, ...] = ()
    precision: int | None = None

    def __post_init__(self) -> None:
        if self.by_class != "auto" and (self.coverage is None or not is_classifier(self.model)):
            raise ValueError("`by_class` is for sets of classes; it needs `coverage`, and classes")
        if self.neighbors < 0:
            raise ValueError(f"`neighbors` is {self.neighbors}; expected 1 or more")
        if self.precision is not None and not 1 <= self.precision <= 17:
            raise ValueError(f"`precision` is {self.precision}; expected 1 to 17 digits")
        if self.neighbors:
            self.model._known_training_graphs()
        self._check_names([*self.keep, *self.columns])

    def _check_names(self, names: list[str]) -> None:
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise ValueError(
                f"the output would have two columns {twice[0]!r}; rename that of the table, or "
                "leave it out"
            )

    @cached_property
    def columns(self) -> list[str]:
        """The columns after those that are kept. Of several targets each has its own."""
        schema = self.model.input_schema_
        molecules = schema is not None and schema.source == "molecules"
        changes = schema is not None and schema.standardize is not None
        first = [_SMILES] if molecules and _SMILES not in self.keep else []
        outputs = np.zeros((1, self.model._n_outputs))
        own = self._target_values(outputs, np.ones((1, len(self.model.targets_))))
        return [*first, *own, *self._neighbor_names, *(["standardized"] * changes), *_OF_ROWS]

    @cached_property
    def _neighbor_names(self) -> list[str]:
        if not self.neighbors:
            return []
        kept = self.model._known_training_graphs()
        names = ["", "_similarity", *(["_smiles"] if kept.smiles is not None else [])]
        names += [f"_{target.name or 'target'}" for target in self.model.targets_]
        count = min(self.neighbors, len(kept))
        return [f"neighbor_{i}{name}" for i in range(1, count + 1) for name in names]

    def predict(self, table: GraphTable) -> PredictedRows:
        """Predict the rows of one table."""
        model, start, n_rows = self.model, table.start, table.n_rows
        valid, rejects = valid_rows(model, table)
        id_name = table.id_column or "row"
        self._check_names([id_name, *self.keep, *self.columns])
        found: dict[str, list[Any]] = {id_name: list(table.ids)}
        found |= {name: list(table.cells.get(name, [None] * n_rows)) for name in self.keep}
        found |= {name: [None] * n_rows for name in self.columns}
        if _SMILES in self.columns:
            found[_SMILES] = _given_smiles(table)
        for reject in rejects:
            found["error"][reject.row - start] = reject.reason
        first = tuple(map(str, rejects[:SHOWN_REJECTS]))
        counts = RowCounts(rows=n_rows, rejected=len(rejects), first_rejects=first)
        if table.graphs is None or not len(valid):
            return PredictedRows(found, rejects, counts)
        graphs = table.graphs if len(valid) == len(table.graphs) else table.graphs[valid]
        rows = table.rows[valid].tolist()
        answers = Answers(model, graphs)
        unknown, nothing = answers.unknown_labels, answers.nothing_known
        strange = model._out_of_domain(graphs, answers.domain_distance)
        difficulty = None if self.coverage is None else answers.difficulty
        values = self._target_values(answers.outputs, difficulty)
        for column in values.values():
            for g in nothing:  # nothing is known of it: the answer is not about this graph
                column[g] = None
        if self.neighbors:
            values |= self._neighbor_values(answers.neighbors(self.neighbors))
        if answers.domain_distance is not None:
            values["domain_distance"] = answers.domain_distance.tolist()
        for name, column in values.items():
            for row, value in zip(rows, column, strict=True):
                found[name][row] = self._cell(value)
        for name, words in (("out_of_domain", strange), ("warning", unknown)):
            for g, why in words.items():
                found[name][rows[g]] = why
        n_changed, good = 0, set(rows)
        for change in table.changes if "standardized" in found else ():
            if change.row - start in good:
                found["standardized"][change.row - start] = change.after
                n_changed += 1
        counts += RowCounts(
            unknown_labels=len(unknown.keys() - set(nothing)), out_of_domain=len(strange),
            unanswered=len(nothing), changed=n_changed,
        )  # fmt: skip
        return PredictedRows(found, rejects, counts)

    def _target_values(self, outputs: Floats, difficulty: Any) -> dict[str, list[Any]]:
        """Return predictions, the outputs behind them, probabilities, and sets or intervals.

        Each target has its own columns; those of the only target end without its name.
        """
        found: dict[str, list[Any]] = {}
        for t, target in enumerate(self.model.targets_):
            end, of = (f"_{target.name}", f"{target.name}_") if target.name else ("", "")
            own, classes = outputs[:, target.columns], target.classes
            values = [target.predict(own).tolist(), own.max(axis=1).tolist()]
            names = [f"prediction{end}", f"score{end}"]
            if classes is not None and self.model.probability:
                names += [f"probability_{of}{c}" for c in classes]
                values += target.probabilities(own).T.tolist()
            if self.coverage is not None and classes is not None:
                names.append(f"set{end}")
                texts = np.array([str(c) for c in classes.tolist()], dtype=object)
                sets = target.sets(own, self.coverage, by_class=self.by_class)
                values.append(["|".join(texts[row]) or NO_CLASS for row in sets])
            elif self.coverage is not None:
                names += [f"low{end}", f"high{end}"]
                values += target.intervals(own, self.coverage, difficulty[:, t]).T.tolist()
            self._check_names([*found, *names])
            found |= zip(names, values, strict=True)
        return found

    def _neighbor_values(self, found: Neighbors) -> dict[str, list[Any]]:
        """Return the columns of neighbors: their ids or positions, similarities and targets."""
        names: Any = found.positions if found.ids is None else found.ids
        names = np.where(found.positions < 0, None, names)
        columns: list[list[Any]] = []
        for i in range(found.positions.shape[1]):
            columns += [names[:, i].tolist(), found.similarities[:, i].tolist()]
            if found.smiles is not None:
                columns.append(found.smiles[:, i].tolist())
            columns += found.targets[:, i].reshape(len(names), -1).T.tolist()
        return dict(zip(self._neighbor_names, columns, strict=True))

    def _cell(self, value: Any) -> Any:
        """Round a number; NaN becomes None."""
        if not isinstance(value, float):
            return value
        if isnan(value):
            return None
        return value if self.precision is None else float(f"{value:.{self.precision}g}")


def _given_smiles(table: GraphTable) -> list[Any]:
    """Return the SMILES of all rows as they stand in the table, also of rejected rows."""
    if table.schema is None:  # no row is valid
        column = next((name for name in table.cells if name not in table.columns), None)
    else:
        column = table.schema.smiles_column
    if column is not None and column in table.cells:
        return list(table.cells[column])
    found: list[Any] = [None] * table.n_rows
    for row, smiles in zip(table.rows.tolist(), table.smiles or (), strict=True):
        found[row] = smiles
    return found


def load_predictor(path: str | os.PathLike[str]) -> Any:
    """Load a model file, or raise ValueError if it holds an encoder, which predicts nothing."""
    model = load_model(path)
    if isinstance(model, Encoder):
        raise ValueError(f"{path}: holds an encoder, which predicts nothing; name a model file")
    return model


def valid_rows(model: Any, table: GraphTable) -> tuple[Ints, list[Reject]]:
    """Return positions of graphs that the model can take, and the rejected rows."""
    if table.graphs is None:
        return np.empty(0, dtype=np.int64), list(table.rejects)
    hint = "; a model of `fdgnn fit --handle-unknown ignore` takes such graphs"
    faults = model.valid_graphs(table.graphs).errors
    rows = {int(table.rows[g]): reason + hint for g, reason in faults.items()}
    found = [Reject(table.start + row, table.ids[row], why) for row, why in rows.items()]
    rejects = sorted([*table.rejects, *found], key=lambda reject: reject.row)
    return np.setdiff1d(np.arange(len(table.graphs)), list(faults)), rejects


# ---------------------------------------------------------------------- table by table


def predict_rows(
    predictor: Predictor, tables: Iterator[GraphTable], n_jobs: int | None = None
) -> Iterator[PredictedRows]:
    """Predict table by table, molecules by several processes.

    Rows that fit in one table are not worth the start of a process. Rows that are read one by one
    are predicted one by one, because they may come from a slow pipe.
    """
    n_processes = joblib.effective_n_jobs(n_jobs)
    n_rows = tables.chunk_size if isinstance(tables, GraphTables) and tables.independent else None
    if n_processes == 1 or not isinstance(tables, GraphTables) or n_rows in (None, 1):
        predictor.model.set_params(n_jobs=n_jobs)
        yield from map(predictor.predict, tables)
        return
    chunks, reader = tables.chunks(), tables.reader
    first = next(chunks)
    if len(first[1]) < (n_rows or 0):
        yield predictor.predict(reader.read(first))
        return
    predictor.model.set_params(n_jobs=1)
    predict = partial(_predict_chunk, predictor, reader)
    yield from Workers(n_processes).run(predict, chain([first], chunks))


def write_rows(
    predicted: Iterable[PredictedRows],
    write: Callable[[Mapping[str, list[Any]]], None],
    write_rejects: Callable[[list[Reject]], None],
) -> RowCounts:
    """Write predictions and rejected rows table by table, and return the counts of all rows."""
    counts = RowCounts()
    for rows in predicted:
        write(rows.columns)
        write_rejects(rows.rejects)
        counts += rows.counts
    return counts


def _predict_chunk(predictor: Predictor, reader: ChunkReader, chunk: RowChunk) -> PredictedRows:
    """Predict rows that are not read yet."""
    return predictor.predict(reader.read(chunk))


# ---------------------------------------------------------------------- shards


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
        own = self.predictor
        options = own.coverage, own.by_class, own.neighbors, own.keep, own.precision
        return content_hash((self.model_hash, options, self.options, self.guard))

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
