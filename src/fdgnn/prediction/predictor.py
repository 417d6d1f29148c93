"""From a model and tables of graphs to predictions."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from fdgnn.arrays import Floats, Ints
from fdgnn.datasets import GraphTable, Reject
from fdgnn.encoders import Encoder
from fdgnn.model_files import load_model
from fdgnn.records import Record, cached_property
from fdgnn.uncertainty import FittedTarget

NO_CLASS = "none"  # in place of a set without classes
SHOWN_REJECTS = 5  # that are shown on the terminal; a file lists all of them
_OF_ROWS = ("novelty", "unlike", "warning", "error")  # columns of rows, whatever the targets are


@dataclass(frozen=True)
class PredictedRows:
    """Predictions of the rows of a table, column by column, in the order of the rows.

    Attributes
    ----------
    columns : dict of lists
        One value for each row, None where there is none: the row's id or number, then
        `Predictor.columns`.
    rejects : list of Reject
        The rows that cannot be predicted; the column "error" has their reasons, too.
    n_unknown, n_unlike, n_changed : int
        How many rows have labels that no training graph has, are unlike the training graphs, and
        were changed before they were read.
    """

    columns: dict[str, list[Any]]
    rejects: list[Reject]
    n_unknown: int = 0
    n_unlike: int = 0
    n_changed: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


class RowCounts(Record, frozen=True, kw_only=True):
    """How many rows were predicted, and how many of them have something to report."""

    rows: int = 0
    rejected: int = 0
    unknown_labels: int = 0
    unlike: int = 0
    changed: int = 0
    first_rejects: tuple[str, ...] = ()

    def with_rows(self, some: PredictedRows) -> RowCounts:
        """Return the counts with some more rows."""
        rejects = tuple(map(str, some.rejects[: SHOWN_REJECTS - len(self.first_rejects)]))
        return RowCounts(
            rows=self.rows + len(some),
            rejected=self.rejected + len(some.rejects),
            unknown_labels=self.unknown_labels + some.n_unknown,
            unlike=self.unlike + some.n_unlike,
            changed=self.changed + some.n_changed,
            first_rejects=self.first_rejects + rejects,
        )


@dataclass(frozen=True)
class Predictor:
    """A fitted model with options of prediction; it can be sent to other processes.

    Parameters
    ----------
    model : FDGNNClassifier or FDGNNRegressor
    coverage : float, optional
        Of conformal sets of classes, or of intervals; by default there are none.
    by_class : bool
        Whether the sets have this coverage in each class.
    id_column : str, optional
        Name of the first column, which names the rows; "row" by default.

    Raises
    ------
    ValueError
        The model has no such sets or intervals, or two columns of the output have one name.
    """

    model: Any
    coverage: float | None = None
    by_class: bool = False
    id_column: str | None = None

    def __post_init__(self) -> None:
        if self.by_class and (self.coverage is None or not is_classifier(self.model)):
            raise ValueError("`by_class` is for sets of classes; it needs `coverage`, and classes")
        for target in self._targets:
            target.covered_values(np.zeros((1, target.n_outputs)))
        columns = self.columns
        if self.id_name in columns:
            raise ValueError(
                f"`id_column` is {self.id_name!r}, as a column of the output; rename it"
            )
        if len(set(columns)) < len(columns):
            raise ValueError("two targets would have the same columns in the output; rename one")

    @property
    def id_name(self) -> str:
        """Name of the first column."""
        return self.id_column or "row"

    @cached_property
    def columns(self) -> list[str]:
        """The columns after the first one. Of several targets each has its own."""
        schema = self.model.input_schema_
        changes = schema is not None and schema.standardize is not None
        own = [name for target in self._targets for name in target.names]
        return [*own, *(["standardized"] * changes), *_OF_ROWS]

    @cached_property
    def _targets(self) -> list[_TargetColumns]:
        return [_TargetColumns(self, target) for target in self.model.targets_]

    def predict(self, table: GraphTable) -> PredictedRows:
        """Predict the rows of one table."""
        model, start = self.model, table.start
        usable, rejects = valid_rows(model, table)
        found: dict[str, list[Any]] = {self.id_name: list(table.ids)}
        found |= {name: [None] * table.n_rows for name in self.columns}
        for reject in rejects:
            found["error"][reject.row - start] = reject.reason
        if table.graphs is None or not len(usable):
            return PredictedRows(found, rejects)
        graphs = table.graphs if len(usable) == len(table.graphs) else table.graphs[usable]
        rows = table.rows[usable].tolist()
        unseen = model.unknown_labels(graphs)
        outputs, novelty = model._outputs_and_novelty(graphs)
        for target in self._targets:
            for name, values in target.values(outputs).items():
                _put(found[name], rows, values)
        if novelty is not None:
            _put(found["novelty"], rows, novelty.tolist())
        unlike = model._out_of_domain(graphs, novelty)
        for g, why in unlike.items():
            found["unlike"][rows[g]] = why
        for g, why in unseen.items():
            found["warning"][rows[g]] = why
        n_changed = 0
        if "standardized" in found:
            good = set(rows)
            for change in (each for each in table.changes if each.row - start in good):
                found["standardized"][change.row - start] = change.after
                n_changed += 1
        return PredictedRows(found, rejects, len(unseen), len(unlike), n_changed)


def _put(column: list[Any], rows: list[int], values: list[Any]) -> None:
    """Write the values of some rows into a column."""
    if len(rows) == len(column):
        column[:] = values
        return
    for row, value in zip(rows, values, strict=True):
        column[row] = value


class _TargetColumns:
    """The columns of one target; without a name it is the only one."""

    def __init__(self, predictor: Predictor, target: FittedTarget) -> None:
        self.target, self.n_outputs = target, target.columns.stop - target.columns.start
        self.coverage, self.by_class = predictor.coverage, predictor.by_class
        end, of = (f"_{target.name}", f"{target.name}_") if target.name else ("", "")
        with_chances = getattr(predictor.model, "probability", False)
        classes = () if target.classes is None or not with_chances else target.classes
        covered = ["low", "high"] if target.classes is None else ["set"]
        self.answer, self.score = f"prediction{end}", f"score{end}"
        self.chances = [f"probability_{of}{c}" for c in classes]
        self.covered = [] if self.coverage is None else [f"{each}{end}" for each in covered]
        self.names = [self.answer, self.score, *self.chances, *self.covered]

    def values(self, all_outputs: Floats) -> dict[str, list[Any]]:
        """Return the prediction, the output behind it, probabilities, and sets or intervals."""
        target, outputs = self.target, all_outputs[:, self.target.columns]
        found = {self.answer: target.predict(outputs).tolist()}
        found[self.score] = outputs.max(axis=1).tolist()
        if self.chances:
            chances = target.probabilities(outputs).T.tolist()
            found |= dict(zip(self.chances, chances, strict=True))
        return found | dict(zip(self.covered, self.covered_values(outputs), strict=True))

    def covered_values(self, outputs: Floats) -> list[list[Any]]:
        """Return the columns of sets or intervals for the target's outputs (n, its columns)."""
        if self.coverage is None:
            return []
        if self.target.classes is None:
            return list(self.target.intervals(outputs, self.coverage).T.tolist())
        names = np.array([str(c) for c in self.target.classes.tolist()], dtype=object)
        sets = self.target.sets(outputs, self.coverage, by_class=self.by_class)
        return [["|".join(names[row]) or NO_CLASS for row in sets]]


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
