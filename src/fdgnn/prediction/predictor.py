"""From a model and tables of graphs to predictions, by several processes; rows keep their order.

RDKit and the way from a molecule to arrays hold Python's lock, so that threads cannot share them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isnan
from typing import Any

import joblib
import numpy as np
from sklearn.base import is_classifier

from fdgnn.arrays import Floats, Ints
from fdgnn.datasets import GraphTable, Reject
from fdgnn.datasets.rows import ChunkReader, GraphTables, RowChunk
from fdgnn.encoders import Encoder
from fdgnn.estimators.base import Answers
from fdgnn.model_files import load_model
from fdgnn.neighbors import Neighbors
from fdgnn.records import Record, cached_property
from fdgnn.workers import Workers

NO_CLASS = "none"  # in place of a set without classes
SHOWN_REJECTS = 5  # that are shown on the terminal; a file lists all of them
_OF_ROWS = ("domain_distance", "out_of_domain", "warning", "error")  # whatever the targets are
_SMILES = "smiles"


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

    @property
    def options(self) -> tuple[Any, ...]:
        """The options on which predictions depend, beside the model."""
        return (self.coverage, self.by_class, self.neighbors, self.keep, self.precision)

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
        raise ValueError(f"{path}: it holds an encoder, which predicts nothing; name a model file")
    return model


def valid_rows(model: Any, table: GraphTable) -> tuple[Ints, list[Reject]]:
    """Return positions of graphs that the model can take, and the rejected rows."""
    if table.graphs is None:
        return np.empty(0, dtype=np.int64), list(table.rejects)
    hint = "; a model of `fdgnn fit --handle-unknown ignore` takes such graphs"
    faults = model.valid_graphs(table.graphs).errors
    rows = {int(table.rows[g]): reason + hint for g, reason in faults.items()}
    refused = [Reject(table.start + row, table.ids[row], why) for row, why in rows.items()]
    rejects = sorted([*table.rejects, *refused], key=lambda reject: reject.row)
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
