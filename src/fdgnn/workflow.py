"""From a table of graphs to a trained model, and from a model to a table of predictions."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier

from fdgnn.calibration import probabilities
from fdgnn.datasets import GraphTable, Reject
from fdgnn.drawing import draw_explanation, draw_molecule
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.explanations import Explanation, explain
from fdgnn.graphs import Array, Graph, GraphBatch
from fdgnn.readout import winning_class
from fdgnn.search import FDGNNSearchCV

TaskName = Literal["classification", "regression"]
MOST_CLASSES = 20  # whole numbers with more different values are taken for quantities
FOLDS = 5


def guess_task(y: Array) -> TaskName:
    """Text, truth values and few different whole numbers are classes; other numbers quantities."""
    if y.dtype.kind not in "iuf":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and len(np.unique(y)) <= MOST_CLASSES else "regression"


@dataclass(frozen=True)
class Training:
    """A trained model, and what one should know before trusting it.

    `score` is accuracy or R2. With a search it is the nested one: each outer fold is scored by
    what was selected without it. `baseline` is the score of the best constant answer; `ceiling`
    (classification only) the best accuracy any message-passing model could reach.
    """

    model: Any
    task: TaskName
    metric: str
    score: float
    baseline: float
    ceiling: float | None
    n_graphs: int
    seconds: float
    parameters: dict[str, Any]


def train(
    graphs: GraphBatch,
    y: Array,
    *,
    task: TaskName | None = None,
    search: bool = True,
    n_configurations: int = 20,
    n_guesses: int = 3,
    seed: int = 0,
    n_jobs: int | None = None,
    quiet: bool = True,
) -> Training:
    """Choose hyper-parameters (or take the defaults) by cross validation, and fit on all graphs."""
    start = time.perf_counter()
    task = task or guess_task(y)
    classify = task == "classification"
    if not classify:
        y = _as_numbers(y)
    base = (
        FDGNNClassifier(probability=True, random_state=seed)
        if classify
        else FDGNNRegressor(random_state=seed)
    )
    folds = _n_folds(y, classify)
    configurations = None if search else [{"random_state": seed}]
    found = FDGNNSearchCV(
        base,
        n_configurations=n_configurations,
        configurations=configurations,
        depths=(1, 2, 3, 4, 5) if search else (base.n_layers,),
        alphas=None if search else (base.alpha,),
        n_guesses=n_guesses,
        cv=folds,
        outer_cv=folds,
        random_state=seed,
        n_jobs=n_jobs,
        verbose=not quiet,
    ).fit(graphs, y)
    counts = np.unique(y, return_counts=True)[1]
    return Training(
        model=found.best_estimator_,
        task=task,
        metric="accuracy" if classify else "R2",
        score=found.nested_score_,
        baseline=float(counts.max() / len(y)) if classify else 0.0,
        ceiling=graphs.wl_ceiling(y) if classify else None,
        n_graphs=len(graphs),
        seconds=time.perf_counter() - start,
        parameters=found.best_params_,
    )


def _as_numbers(y: Array) -> Array:
    try:
        return y.astype(np.float64)
    except ValueError:
        raise DatasetFormatError(
            "the target is text, so this is no regression; leave --task out"
        ) from None


def _n_folds(y: Array, classify: bool) -> int:
    """Five, or fewer where a class has too few graphs to be in every fold of every fold."""
    counts = np.unique(y, return_counts=True)[1]
    if classify and len(counts) == 1:
        raise ValueError(f"the target has one value only, {y[0]!s}; there is nothing to learn")
    fewest = int(counts.min()) if classify else len(y) // 2
    # A class must have a member in each outer fold, and in each inner one of what is left.
    folds = [k for k in range(2, FOLDS + 1) if fewest >= k and fewest - -(-fewest // k) >= k]
    if not folds:
        raise ValueError(
            f"the smallest of the {len(counts)} classes has {fewest} graphs, too few for cross "
            "validation; add graphs of it, leave it out, or, for quantities, use --task regression"
        )
    return folds[-1]


# ---------------------------------------------------------------------- predicting


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


def check_targets(table: GraphTable) -> tuple[GraphBatch, Array]:
    """The graphs and targets of a table to train on, or an error that says what is missing."""
    if table.graphs is None:
        first = f", the first because of: {table.rejects[0]}" if table.rejects else ""
        raise GraphError(f"none of the {table.n_rows} rows can be used{first}")
    if table.y is None:
        raise DatasetFormatError("which column is the target? say it by --target")
    return table.graphs, table.y


# ---------------------------------------------------------------------- explaining


@dataclass(frozen=True)
class Explained:
    """One row's graph and its explanation."""

    row: int
    id: Any
    graph: Graph
    explanation: Explanation
    smiles: str | None = None


def explain_table(
    model: Any, table: GraphTable, wanted: set[int] | None, *, target: str | None, edges: bool
) -> tuple[list[Explained], list[Reject]]:
    """Explain the usable graphs of a table, or those of the wanted rows; tell of the others."""
    found = _explain(model, table, wanted, target, edges)
    rejects = list(table.rejects)
    if table.graphs is not None:
        reasons = usable_graphs(model, table.graphs, table.smiles is not None)[1]
        for g, reason in reasons.items():
            row = int(table.rows[g])
            rejects.append(Reject(table.start + row, table.ids[row], reason))
    asked = [r for r in rejects if wanted is None or r.row in wanted]
    return found, sorted(asked, key=lambda reject: reject.row)


def _explain(
    model: Any, table: GraphTable, wanted: set[int] | None, target: str | None, edges: bool
) -> list[Explained]:
    if table.graphs is None:
        return []
    usable, _ = usable_graphs(model, table.graphs)
    numbers = table.start + table.rows[usable]
    chosen = [i for i, number in enumerate(numbers.tolist()) if wanted is None or number in wanted]
    if not chosen:
        return []
    graphs = table.graphs[usable[chosen]]
    found = explain(model, graphs, target=_as_class(model, target), edges=edges)
    smiles = [None] * len(table.rows) if table.smiles is None else table.smiles
    return [
        Explained(
            row=int(numbers[i]),
            id=table.ids[numbers[i] - table.start],
            graph=graph,
            explanation=explanation,
            smiles=smiles[usable[i]],
        )
        for i, graph, explanation in zip(chosen, graphs, found, strict=True)
    ]


def _as_class(model: Any, name: str | None) -> Any:
    """The class that is written like this."""
    if name is None:
        return None
    for known in getattr(model, "classes_", np.empty(0)).tolist():
        if str(known) == name:
            return known
    classes = ", ".join(map(str, getattr(model, "classes_", [])))
    raise ValueError(f"the model has no class {name!r}; its classes are {classes or 'none'}")


def draw_all(explained: Iterable[Explained], folder: Path) -> None:
    """Draw each explained graph into a PNG file of the folder, molecules as molecules."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in explained:
        path = folder / f"{one.row}.png"
        try:
            if one.smiles is None:
                raise GraphError("no molecule")
            draw_molecule(one.smiles, one.explanation, path)
        except GraphError:  # bonds may be vertices of their own, which no molecule shows
            draw_explanation(one.graph, one.explanation, path)


def vertex_kind(graphs: GraphBatch) -> str:
    """What vertices carry, in the words of `fdgnn.read_graphs`."""
    if graphs.features is not None:
        return "features"
    return "none" if graphs.label_values is None else "labels"
