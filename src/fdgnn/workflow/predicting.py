"""From a model to a table of predictions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from fdgnn.datasets import GraphTable
from fdgnn.graphs import Array, GraphBatch
from fdgnn.readout.calibration import probabilities
from fdgnn.readout.coding import winning_class


@dataclass(frozen=True)
class Prediction:
    """One row of output; of a rejected row, only `id` and `error`."""

    id: Any
    prediction: Any = None
    score: float | None = None
    probabilities: tuple[float, ...] = ()
    error: str | None = None


def predict_tables(
    model: Any, tables: Iterable[GraphTable], n_jobs: int | None = None
) -> Iterator[list[Prediction]]:
    """Predict table by table; as many rows as the tables have, in their order."""
    model.set_params(n_jobs=n_jobs)
    for table in tables:
        rows = [Prediction(name) for name in table.ids]
        for reject in table.rejects:
            rows[reject.row - table.start] = Prediction(reject.id, error=reject.reason)
        for row, prediction in _predict(model, table):
            rows[row] = prediction
        yield rows


def _predict(model: Any, table: GraphTable) -> Iterator[tuple[int, Prediction]]:
    if table.graphs is None:
        return
    usable, reasons = usable_graphs(model, table.graphs, table.smiles is not None)
    for g, reason in reasons.items():
        row = int(table.rows[g])
        yield row, Prediction(table.ids[row], error=reason)
    if len(usable) == 0:
        return
    values, scores, chances = _answers(model, table.graphs[usable])
    for i, value in enumerate(values.tolist()):
        row = int(table.rows[usable[i]])
        yield row, Prediction(table.ids[row], value, float(scores[i]), tuple(chances[i].tolist()))


def usable_graphs(
    model: Any, graphs: GraphBatch, molecules: bool = False
) -> tuple[Array, dict[int, str]]:
    """Positions of the graphs the model can take, and why it cannot take the others."""
    vocabulary = model.networks_[0].reservoir.vocabulary
    if vocabulary is None or graphs.label_codes is None or graphs.label_values is None:
        model._new_graphs(graphs)  # of another kind as a whole: an error for all
        return np.arange(len(graphs)), {}
    known = np.isin(graphs.label_values.astype(str), np.array(vocabulary).astype(str))
    strange = np.flatnonzero(~known[graphs.label_codes])
    cure = "; atoms of any element can be used after a fit with --atoms rich" if molecules else ""
    reasons = {
        int(graphs.graph_of_vertex[v]): "vertex label "
        f"{graphs.label_values[graphs.label_codes[v]]} was not seen during fit{cure}"
        for v in strange[::-1]
    }
    return np.setdiff1d(np.arange(len(graphs)), list(reasons)), reasons


def _answers(model: Any, graphs: GraphBatch) -> tuple[Array, Array, Array]:
    """Predictions, the outputs behind them, and probabilities, from one embedding."""
    outputs = model._outputs(graphs)  # (n, q)
    nothing = np.empty((len(graphs), 0))
    if not is_classifier(model):
        return outputs[:, 0], outputs[:, 0], nothing
    chances = probabilities(outputs, model.calibration_) if model.probability else nothing
    return model.classes_[winning_class(outputs)], outputs.max(axis=1), chances
