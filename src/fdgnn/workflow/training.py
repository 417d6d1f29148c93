"""From a table of graphs to a trained model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from sklearn.model_selection import KFold, StratifiedKFold

from fdgnn.context import Context
from fdgnn.datasets import GraphTable
from fdgnn.encoders import GraphReservoir
from fdgnn.estimators import AUTO, FDGNNClassifier, FDGNNRegressor
from fdgnn.exceptions import DatasetFormatError, GraphError
from fdgnn.graphs import Array, GraphBatch
from fdgnn.scikit import is_classifier
from fdgnn.selection.folds import enough_for_nested_folds
from fdgnn.selection.search import FDGNNSearchCV
from fdgnn.selection.space import Parameters, depth_of

TaskName: TypeAlias = Literal["classification", "regression"]
ModelName: TypeAlias = Literal["auto", "paper", "colors", "both"]
MOST_CLASSES = 20  # whole numbers with more different values are taken for quantities
FOLDS = 5


def guess_task(y: Array) -> TaskName:
    """Take text, truth values and few different whole numbers for classes, others for numbers."""
    if y.dtype.kind not in "iuf":
        return "classification"
    whole = y.dtype.kind in "iu" or bool((y == np.round(y)).all())
    return "classification" if whole and len(np.unique(y)) <= MOST_CLASSES else "regression"


@dataclass(frozen=True)
class Training:
    """A trained model, and what one should know before trusting it.

    Attributes
    ----------
    score : float
        Accuracy or R2, by nested cross validation: what was selected and fitted without an outer
        fold is scored on it. It is the score of such a model as is saved: of all its networks,
        with their outputs averaged.
    baseline : float
        The score of the best constant answer.
    ceiling : float, optional
        For classes: the best accuracy that any message-passing model could reach that does not
        look at labels of arcs.
    members : list of str
        The models whose outputs are averaged.
    """

    model: Any
    task: TaskName
    metric: str
    score: float
    baseline: float
    ceiling: float | None
    n_graphs: int
    seconds: float
    parameters: Parameters
    members: list[str]


def train(
    graphs: GraphBatch,
    y: Array,
    *,
    task: TaskName | None = None,
    model: ModelName = "auto",
    class_weight: str | Mapping[Any, float] | None = None,
    search: bool = True,
    n_configurations: int = 20,
    n_guesses: int = 3,
    seed: int = 0,
    context: Context | None = None,
) -> Training:
    """Choose a model by cross validation, and fit it on all graphs.

    Parameters
    ----------
    graphs, y
    task : {"classification", "regression"}, optional
        By default it is guessed from y.
    model : {"auto", "paper", "colors", "both"}, default="auto"
        "paper" searches the hyper-parameters of a reservoir, or takes the defaults. The others are
        the committees of ``FDGNNClassifier(encoder="auto")``, in which nothing is left to search.
    class_weight : "balanced", dict or None, default=None
        How much an error on each class counts, as in `FDGNNClassifier`.
    search : bool, default=True
    n_configurations, n_guesses : int
        Of the search of "paper".
    seed : int, default=0
    context : Context, optional
    """
    start = time.perf_counter()
    task = task or guess_task(y)
    classify = task == "classification"
    y = y if classify else _as_numbers(y)
    if class_weight is not None and not classify:
        raise ValueError("weights of classes are for classes, but the target is a number")
    base = base_model(model, classify, seed)
    if classify:
        base.set_params(class_weight=class_weight)
    found = _search(base, y, model, search, seed, context or Context())
    if model == "paper":
        found.set_params(n_configurations=n_configurations, n_guesses=n_guesses)
    found.fit(graphs, y)
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
        members=[network.name for network in found.best_estimator_.networks_],
    )


def base_model(model: ModelName, classify: bool, seed: int) -> FDGNNClassifier | FDGNNRegressor:
    """Give the estimator of a name, not fitted."""
    kind = FDGNNClassifier if classify else FDGNNRegressor
    base = kind(random_state=seed)
    if classify:
        base.set_params(probability=True)
    if model != "paper":
        base.set_params(encoder=AUTO, candidates="all" if model == "auto" else model)
    return base


def _search(
    base: Any, y: Array, model: ModelName, search: bool, seed: int, context: Context
) -> FDGNNSearchCV:
    """Make a search; without one, cross validation of a model with default parameters."""
    classify = is_classifier(base)
    folds = _n_folds(y, classify)
    splitter = StratifiedKFold if classify else KFold
    found = FDGNNSearchCV(
        base,
        cv=splitter(folds, shuffle=True, random_state=seed),  # files are often sorted
        outer_cv=folds,
        random_state=seed,
        n_jobs=context.n_jobs,
        verbose=not context.quiet,
    )
    if not search and model == "paper":
        found.set_params(
            configurations=[{"random_state": seed}],
            depths=(depth_of(base),),
            alphas=(GraphReservoir.default_alpha,),
        )
    return found


def _as_numbers(y: Array) -> Array:
    try:
        return y.astype(np.float64)
    except ValueError:
        raise DatasetFormatError(
            "the target is text, but regression needs numbers; choose classification, or a column "
            "with numbers"
        ) from None


def _n_folds(y: Array, classify: bool) -> int:
    """Take five folds, or fewer where a class has too few graphs to be in every inner fold."""
    counts = np.unique(y, return_counts=True)[1]
    if classify and len(counts) == 1:
        raise ValueError(f"the target has one value only, {y[0]!s}; there is nothing to learn")
    fewest = int(counts.min()) if classify else len(y) // 2
    folds = [k for k in range(2, FOLDS + 1) if enough_for_nested_folds(fewest, k, k)]
    if not folds:
        raise ValueError(
            f"the smallest of the {len(counts)} classes has {fewest} graphs, too few for cross "
            "validation; add graphs of it, leave it out, or, for quantities, choose regression"
        )
    return folds[-1]


def check_targets(table: GraphTable) -> tuple[GraphBatch, Array]:
    """Give the graphs and targets of a table, or an error that says what is missing."""
    if table.graphs is None:
        first = f", the first because of: {table.rejects[0]}" if table.rejects else ""
        raise GraphError(f"none of the {table.n_rows} rows can be used{first}")
    if table.y is None:
        raise DatasetFormatError("it is not known which column is the target; name it by `target`")
    return table.graphs, table.y
