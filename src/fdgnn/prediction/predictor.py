"""From a model and tables of graphs to predictions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from fdgnn.arrays import Floats, Ints
from fdgnn.datasets import GraphTable, Reject
from fdgnn.encoders import Encoder
from fdgnn.graphs import GraphBatch
from fdgnn.model_files import load_model
from fdgnn.records import cached_property
from fdgnn.uncertainty import FittedTarget

NO_CLASS = "none"  # in place of a set without classes
_OF_ROWS = ("novelty", "unlike", "warning", "error")  # columns of rows, whatever the targets are


@dataclass(frozen=True)
class Coverage:
    """The coverage of conformal sets or intervals that is asked for; None: there are none."""

    share: float | None = None
    by_class: bool = False

    def check(self, model: Any) -> None:
        """Raise ValueError unless the model can give what is asked for."""
        if self.by_class and (self.share is None or not is_classifier(model)):
            raise ValueError("`by_class` is for sets of classes; it needs `coverage`, and classes")
        if self.share is not None:
            for target in model.targets_:
                width = target.columns.stop - target.columns.start
                self.columns(target, np.zeros((1, width)))

    def names(self, target: FittedTarget) -> list[str]:
        """Return the columns of the output."""
        if self.share is None:
            return []
        return ["low", "high"] if target.classes is None else ["set"]

    def columns(self, target: FittedTarget, outputs: Floats) -> list[list[Any]]:
        """Return the values of these columns, for the target's outputs (n, its columns)."""
        if self.share is None:
            return []
        if target.classes is None:
            return list(target.intervals(outputs, self.share).T.tolist())
        names = np.array([str(c) for c in target.classes.tolist()], dtype=object)
        sets = target.sets(outputs, self.share, by_class=self.by_class)
        return [["|".join(names[row]) or NO_CLASS for row in sets]]


NO_COVERAGE = Coverage()


@dataclass(frozen=True)
class PredictedRows:
    """What is said of the rows of a table, column by column, in the order of the rows.

    Attributes
    ----------
    columns : dict of lists
        One value for each row, None where there is none: what names the row (its id, or its
        number), then `Predictor.columns`.
    rejects : list of Reject
        The rows that cannot be predicted; the column "error" has their reasons, too.
    n_unseen, n_unlike, n_changed : int
        How many rows have labels that no training graph has, are unlike the training graphs, and
        were changed before they were read.
    """

    columns: dict[str, list[Any]]
    rejects: list[Reject]
    n_unseen: int = 0
    n_unlike: int = 0
    n_changed: int = 0

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True)
class Predictor:
    """A fitted model, and what is asked of it; it can go to other processes.

    Parameters
    ----------
    model : FDGNNClassifier or FDGNNRegressor
    coverage : Coverage
        Whether sets or intervals are asked for.
    id_column : str, optional
        What the column that names the rows is called; "row" by default.
    """

    model: Any
    coverage: Coverage = NO_COVERAGE
    id_column: str | None = None

    def __post_init__(self) -> None:
        columns = self.columns
        if self.id_name in columns:
            raise ValueError(
                f"`id_column` is {self.id_name!r}, as a column of the output; rename it"
            )
        if len(set(columns)) < len(columns):
            raise ValueError("two targets would have the same columns in the output; rename one")

    @property
    def id_name(self) -> str:
        """What the first column is called."""
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
        with_chances = getattr(self.model, "probability", False)
        return [
            _TargetColumns(target, self.coverage, with_chances) for target in self.model.targets_
        ]

    def predict(self, table: GraphTable) -> PredictedRows:
        """Predict the rows of one table."""
        model, start = self.model, table.start
        usable, rejects = usable_rows(model, table)
        found: dict[str, list[Any]] = {self.id_name: list(table.ids)}
        found |= {name: [None] * table.n_rows for name in self.columns}
        for reject in rejects:
            found["error"][reject.row - start] = reject.reason
        if table.graphs is None or not len(usable):
            return PredictedRows(found, rejects)
        graphs = table.graphs if len(usable) == len(table.graphs) else table.graphs[usable]
        rows = table.rows[usable].tolist()
        unseen = model.unseen(graphs)
        outputs, novelty = model._outputs_and_novelty(graphs)
        for target in self._targets:
            for name, values in target.values(outputs).items():
                _put(found[name], rows, values)
        if novelty is not None:
            _put(found["novelty"], rows, novelty.tolist())
        unlike = model._told_unlike(graphs, novelty)
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
    """Put the values of some rows into their places."""
    if len(rows) == len(column):
        column[:] = values
        return
    for row, value in zip(rows, values, strict=True):
        column[row] = value


class _TargetColumns:
    """The columns of one target; without a name it is the only one."""

    def __init__(self, target: FittedTarget, coverage: Coverage, with_chances: bool) -> None:
        end, of = (f"_{target.name}", f"{target.name}_") if target.name else ("", "")
        self.target, self.coverage = target, coverage
        self.answer, self.score = f"prediction{end}", f"score{end}"
        classes = () if target.classes is None or not with_chances else target.classes
        self.chances = [f"probability_{of}{c}" for c in classes]
        self.covered = [f"{each}{end}" for each in coverage.names(target)]
        self.names = [self.answer, self.score, *self.chances, *self.covered]

    def values(self, all_outputs: Floats) -> dict[str, list[Any]]:
        """Return the prediction, the output behind it, probabilities, and sets or intervals."""
        target, outputs = self.target, all_outputs[:, self.target.columns]
        found = {self.answer: target.predict(outputs).tolist()}
        found[self.score] = outputs.max(axis=1).tolist()
        if self.chances:
            chances = target.probabilities(outputs).T.tolist()
            found |= dict(zip(self.chances, chances, strict=True))
        return found | dict(zip(self.covered, self.coverage.columns(target, outputs), strict=True))


def load_predictor(path: str | os.PathLike[str]) -> Any:
    """Load a model file, or raise ValueError if it holds an encoder, which predicts nothing."""
    model = load_model(path)
    if isinstance(model, Encoder):
        raise ValueError(f"{path}: it holds an encoder, which predicts nothing; name a model file")
    return model


def predict_tables(
    predictor: Predictor, tables: Iterable[GraphTable], n_jobs: int | None = None
) -> Iterator[PredictedRows]:
    """Predict table by table."""
    predictor.model.set_params(n_jobs=n_jobs)
    return map(predictor.predict, tables)


def usable_rows(model: Any, table: GraphTable) -> tuple[Ints, list[Reject]]:
    """Find the graphs of a table that the model can take, and the rows that have none."""
    if table.graphs is None:
        return np.empty(0, dtype=np.int64), list(table.rejects)
    usable, reasons = usable_graphs(model, table.graphs)
    refused = [
        Reject(table.start + row, table.ids[row], reason)
        for row, reason in ((int(table.rows[g]), reason) for g, reason in reasons.items())
    ]
    return usable, sorted([*table.rejects, *refused], key=lambda reject: reject.row)


def usable_graphs(model: Any, graphs: GraphBatch) -> tuple[Ints, dict[int, str]]:
    """Find the positions of graphs that the model can take, and why it cannot take the others."""
    hint = "; a model of `fdgnn fit --handle-unknown ignore` takes such graphs"
    reasons = {g: reason + hint for g, reason in model.usable(graphs).faults.items()}
    return np.setdiff1d(np.arange(len(graphs)), list(reasons)), reasons
