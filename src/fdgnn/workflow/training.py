"""From a table of graphs to a trained model."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from fdgnn.datasets import GraphTable
from fdgnn.estimators import FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Array, GraphBatch
from fdgnn.selection.search import FDGNNSearchCV

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


def check_targets(table: GraphTable) -> tuple[GraphBatch, Array]:
    """The graphs and targets of a table to train on, or an error that says what is missing."""
    if table.graphs is None:
        first = f", the first because of: {table.rejects[0]}" if table.rejects else ""
        raise GraphError(f"none of the {table.n_rows} rows can be used{first}")
    if table.y is None:
        raise DatasetFormatError("which column is the target? say it by --target")
    return table.graphs, table.y


def vertex_kind(graphs: GraphBatch) -> str:
    """What vertices carry, in the words of `fdgnn.read_graphs`."""
    if graphs.features is not None:
        return "features"
    return "none" if graphs.label_values is None else "labels"
