"""Step two of a study: what only the selected models are asked for.

Their random initializations are scored as ensembles, with outputs averaged; and the first one,
which stands for its configuration wherever one is wanted, is trained and tested against the clock
(Table 3).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import joblib
import numpy as np

from fdgnn.context import Context
from fdgnn.evaluation.choice import FoldChoices, Selection
from fdgnn.evaluation.records import Configuration
from fdgnn.evaluation.study import Study
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.fitting import BaseModel, FitTask, draw_features
from fdgnn.folds import Folds
from fdgnn.graphs import Array, Floats, GraphBatch
from fdgnn.metrics import roc_auc
from fdgnn.threads import one_blas_thread
from fdgnn.workers import parallel

MOST_REPETITIONS = 5
ENOUGH_SECONDS = 0.5
WARM_GRAPHS = 100  # on which models are tried before they are timed


@dataclass(frozen=True)
class Measures:
    """What was measured of the models that a study selected, for each outer fold."""

    configurations: list[Configuration]  # with the alpha of the first random initialization
    ensemble: Floats  # (n_outer,) test accuracy of the averaged outputs
    trained: list[Trained]  # the first random initialization


def measure(study: Study, task: FitTask, selection: Selection, context: Context) -> Measures:
    """Score the ensembles of what each outer fold selected; time one model of each on one core."""
    drawn, chosen = study.configurations(), selection.deep
    alphas = np.array(study.alphas)[chosen.alphas]  # (n_outer, n_guesses)
    configurations: list[Configuration] = [
        drawn[c] | {"alpha": float(a)}
        for c, a in zip(chosen.configurations, alphas[:, 0], strict=True)
    ]
    ensemble = _score_ensembles(study, task, chosen, alphas, context)
    return Measures(configurations, ensemble, _time_models(study, task, configurations))


def _score_ensembles(
    study: Study, task: FitTask, chosen: FoldChoices, alphas: Floats, context: Context
) -> Floats:
    """Return the test accuracy in each outer fold, of all random initializations together."""
    if study.protocol.n_guesses == 1:
        return chosen.scores
    drawn, scores = study.configurations(), np.empty(len(task.folds))
    selected = np.unique(chosen.configurations).tolist()
    call: Callable[..., Any] = joblib.delayed(_score_ensemble)
    found: Iterator[dict[int, float]] = parallel(context.n_jobs, return_as="generator_unordered")(
        call(
            study.base_model(drawn[c]),
            study.graphs,
            task,
            {int(o): alphas[o] for o in np.flatnonzero(chosen.configurations == c)},
        )
        for c in selected
    )
    for part in context.track(found, len(selected), f"{study.dataset} ensembles"):
        scores[list(part)] = list(part.values())
    return scores


def _score_ensemble(
    base: BaseModel, graphs: GraphBatch, task: FitTask, alphas: dict[int, Floats]
) -> dict[int, float]:
    """Return the test scores of averaged outputs, in outer folds with these alphas (n_guesses,)."""
    Y, codes = task.targets.coded, task.targets.values[:, 0]
    outputs: dict[int, list[Floats]] = {o: [] for o in alphas}
    with one_blas_thread():
        for guess, seed in enumerate(base.seeds):
            (X,) = draw_features(replace(base, seeds=(seed,)), graphs)
            for o, own in alphas.items():
                train, test = task.folds[o] >= 0, task.folds[o] < 0
                alpha, no_folds = float(own[guess]), np.empty((0, train.sum()), dtype=np.int64)
                path = base.readout.solve(X[train], Y[train], (alpha,), no_folds)
                outputs[o].append(path.readout(alpha).outputs(X[test]))
    return {
        o: float(task.metric(codes[task.folds[o] < 0], np.mean(each, axis=0)))
        for o, each in outputs.items()
    }


def _time_models(
    study: Study, task: FitTask, configurations: Sequence[Configuration]
) -> list[Trained]:
    with warnings.catch_warnings(), joblib.parallel_config("sequential"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
        warm_up(study, configurations)
        return [
            fit_and_test(
                partial(study.estimator, configuration), study.graphs.__getitem__, study.y, fold
            )
            for fold, configuration in zip(task.folds, configurations, strict=True)
        ]


def warm_up(study: Study, configurations: Sequence[Configuration]) -> None:
    """Use each kind of configuration on some graphs, off the clock: libraries are loaded then."""
    first = [np.flatnonzero(study.y == c)[:2] for c in np.unique(study.y)]
    some = np.random.default_rng(0).permutation(len(study.y))[:WARM_GRAPHS]
    chosen = np.unique(np.concatenate([*first, some]))
    graphs, y = study.graphs[chosen], study.y[chosen]
    kinds = {study.estimator(c).n_layers > 1: c for c in configurations}.values()
    for configuration in kinds:
        study.estimator(configuration).fit(graphs, y).predict(graphs)


# ---------------------------------------------------------------------- one fold against the clock


@dataclass(frozen=True)
class Trained:
    """A model that was trained on the training graphs of an outer fold, and its test scores."""

    model: Any
    accuracy: float
    balanced_accuracy: float
    roc_auc: float | None  # None if one class only is tested, or the model has no scores
    train_seconds: float
    test_seconds: float


def fit_and_test(
    make: Callable[[], Any], prepare: Callable[[Array], Any], y: Array, fold: Folds
) -> Trained:
    """Train on the graphs with a fold of 0 or more, test on the others (the paper's Table 3).

    `prepare` returns the graphs where a mask is true, in the model's own form, which the clock does
    not count. BLAS has one thread, and seconds are those of this process on its core, whatever else
    the machine does. Work of milliseconds is repeated, and the median counts, because a single
    measurement may be disturbed.
    """
    times: list[tuple[float, float]] = []
    while len(times) < MOST_REPETITIONS and np.sum(times) < ENOUGH_SECONDS:
        train, test = prepare(fold >= 0), prepare(fold < 0)  # nothing cached yet
        with one_blas_thread():
            start = time.process_time()
            model = make().fit(train, y[fold >= 0])
            middle = time.process_time()
            predicted = model.predict(test)
            times.append((middle - start, time.process_time() - middle))
    train_seconds, test_seconds = np.median(times, axis=0).tolist()
    truth = y[fold < 0]
    shares = [np.mean(predicted[truth == c] == c) for c in np.unique(truth)]
    return Trained(
        model=model,
        accuracy=float(np.mean(predicted == truth)),
        balanced_accuracy=float(np.mean(shares)),
        roc_auc=_roc_auc(model, test, truth, np.unique(y)),
        train_seconds=train_seconds,
        test_seconds=test_seconds,
    )


def _roc_auc(model: Any, test: Any, truth: Array, classes: Array) -> float | None:
    """Return the ROC AUC of the decision values of a model for test graphs, if it has some."""
    if not hasattr(model, "decision_function"):
        return None
    values = np.asarray(model.decision_function(test), dtype=np.float64)
    outputs = values.reshape(len(values), -1)
    if outputs.shape[1] not in (1, len(classes)):  # not one for each class
        return None
    found = float(roc_auc(np.searchsorted(classes, truth), outputs))
    return None if np.isnan(found) else found
