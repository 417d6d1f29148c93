"""From a model and tables of graphs to predictions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from fdgnn.arrays import Array, Floats, Ints
from fdgnn.datasets import GraphTable, Reject
from fdgnn.encoders import Encoder
from fdgnn.exceptions import UnseenLabelWarning
from fdgnn.graphs import GraphBatch
from fdgnn.model_files import load_model
from fdgnn.scikit import is_classifier
from fdgnn.workflow.trusting import NOTHING_KNOWN, Coverage, RowTrust, trust_of


@dataclass(frozen=True)
class Prediction:
    """One row of output; a row that cannot be predicted has only `id` and `error`.

    `warning` names a vertex label of the graph that no training graph has; `standardized` is the
    SMILES that was read, where it is not the one that was given.
    """

    id: Any
    prediction: Any = None
    score: float | None = None
    probabilities: tuple[float, ...] = ()
    trust: RowTrust = NOTHING_KNOWN
    warning: str | None = None
    error: str | None = None
    standardized: str | None = None
    of_targets: tuple[Prediction, ...] = ()  # of several targets, what is said of each


Predicted: TypeAlias = tuple[list[Prediction], list[Reject]]


def load_predictor(path: str | os.PathLike[str]) -> Any:
    """Load a model file, or raise ValueError if it holds an encoder, which predicts nothing."""
    model = load_model(path)
    if isinstance(model, Encoder):
        raise ValueError(f"{path}: it holds an encoder, which predicts nothing; name a model file")
    return model


def predict_tables(
    model: Any,
    tables: Iterable[GraphTable],
    n_jobs: int | None = None,
    coverage: Coverage | None = None,
) -> Iterator[Predicted]:
    """Predict table by table; with a coverage, sets or intervals, too.

    Yields
    ------
    predictions : list of Prediction
        One for each row of a table, in order.
    rejects : list of Reject
        The rows that cannot be predicted.
    """
    model.set_params(n_jobs=n_jobs)
    for table in tables:
        yield predict_table(model, table, coverage or Coverage())


def predict_table(model: Any, table: GraphTable, coverage: Coverage) -> Predicted:
    """Predict the rows of one table, as `predict_tables` does."""
    usable, rejects = usable_rows(model, table)
    rows = [Prediction(name) for name in table.ids]
    for reject in rejects:
        rows[reject.row - table.start] = Prediction(reject.id, error=reject.reason)
    if table.graphs is not None and len(usable):
        graphs = table.graphs[usable]
        unseen = model.unseen(graphs)
        with unseen_labels_ignored():
            outputs = model.outputs(graphs)  # (n, q)
        answers = _predictions(model, graphs, outputs, coverage)
        clean = {change.row - table.start: change.after for change in table.changes}
        for g, (row, answer) in enumerate(zip(table.rows[usable], answers, strict=True)):
            known = {"warning": unseen.get(g), "standardized": clean.get(int(row))}
            rows[row] = replace(answer, id=table.ids[row], **known)
    return rows, rejects


@contextmanager
def unseen_labels_ignored() -> Iterator[None]:
    """Leave the model's warning out where rows say it: of many tables, each would have its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnseenLabelWarning)
        yield


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
    reasons = {g: reason + hint for g, reason in model.refusals(graphs).items()}
    return np.setdiff1d(np.arange(len(graphs)), list(reasons)), reasons


def _predictions(
    model: Any, graphs: GraphBatch, outputs: Floats, coverage: Coverage
) -> Iterator[Prediction]:
    """Give what is said of each graph, without its id: of the only target, or of several."""
    trust = trust_of(model, graphs)
    if not model.each_:
        for answer, known in zip(_answers(model, outputs, coverage), trust, strict=True):
            yield replace(answer, trust=replace(answer.trust, **known))
        return
    each = [_answers(one, own, coverage) for one, own in model.shared_out(outputs)]
    for known, *answers in zip(trust, *each, strict=True):
        yield Prediction(None, trust=RowTrust(**known), of_targets=tuple(answers))


def _answers(model: Any, outputs: Floats, coverage: Coverage) -> Iterator[Prediction]:
    """Give the prediction of one target, the output behind it, probabilities, and its coverage."""
    values, scores = outputs[:, 0], outputs[:, 0]
    chances: Array = np.empty((len(outputs), 0))
    if is_classifier(model):
        values, scores = model.answers(outputs), outputs.max(axis=1)
        if model.probability:
            chances = model.chances(outputs)
    covered = coverage.of_rows(model, outputs)
    rows = zip(values.tolist(), scores.tolist(), map(tuple, chances.tolist()), covered, strict=True)
    return (Prediction(None, *row) for row in rows)
