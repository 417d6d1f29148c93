"""Step two of a study: what only the selected models are asked for.

Their guesses are scored as ensembles, with outputs averaged; and guess 0, which stands for its
configuration wherever one network is wanted, is trained and tested against the clock (Table 3).
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import joblib
import numpy as np

from fdgnn.context import Context
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.experiments.choice import Selection
from fdgnn.experiments.records import Configuration
from fdgnn.experiments.study import Study
from fdgnn.graphs import Array, Floats
from fdgnn.readout.metrics import roc_auc
from fdgnn.selection.folds import Folds
from fdgnn.selection.rule import Choice
from fdgnn.selection.scores import Ensemble, SelectionTask, score_ensembles
from fdgnn.selection.space import depth_of
from fdgnn.threads import one_blas_thread

MOST_REPETITIONS = 5
ENOUGH_SECONDS = 0.5
WARM_GRAPHS = 100  # on which models are tried before they are timed


@dataclass(frozen=True)
class Measures:
    """What was measured of the models that a study selected, for each outer fold."""

    configurations: list[Configuration]  # with the penalty of guess 0
    ensemble: Floats  # (n_outer,) test accuracy of the guesses together
    trained: list[Trained]  # guess 0


def measure(study: Study, task: SelectionTask, selection: Selection, context: Context) -> Measures:
    """Score the ensembles of what each outer fold selected; train and test guess 0 on one core."""
    drawn, chosen = study.configurations(), selection.deep
    alphas = task.alphas[chosen.penalties]  # (n_outer, n_guesses)
    configurations: list[Configuration] = [
        drawn[c] | {"alpha": float(a)}
        for c, a in zip(chosen.configurations, alphas[:, 0], strict=True)
    ]
    ensemble = _score_ensembles(study, task, chosen, alphas, context)
    return Measures(configurations, ensemble, _time_models(study, task, configurations))


def _score_ensembles(
    study: Study, task: SelectionTask, chosen: Choice, alphas: Floats, context: Context
) -> Floats:
    """Give the test accuracy in each outer fold, of the guesses of its configuration together."""
    if study.protocol.n_guesses == 1:
        return chosen.scores
    drawn = study.configurations()
    ensembles = []
    for c in np.unique(chosen.configurations):
        folds = np.flatnonzero(chosen.configurations == c)
        estimator = study.estimator(drawn[c])
        penalties = {int(o): alphas[o].tolist() for o in folds}
        ensembles.append(Ensemble(estimator, depth_of(estimator), penalties))
    found = score_ensembles(task, ensembles, context.n_jobs)
    scores: dict[int, float] = {}
    for part in context.track(found, len(ensembles), f"{study.dataset} ensembles"):
        scores |= part
    return np.array([scores[o] for o in range(len(task.folds))])


def _time_models(
    study: Study, task: SelectionTask, configurations: Sequence[Configuration]
) -> list[Trained]:
    with warnings.catch_warnings(), joblib.parallel_config("sequential"):
        warnings.simplefilter("ignore", ConvergenceWarning)  # the result counts such graphs
        warm_up(study, configurations)
        return [
            fit_and_test(partial(study.estimator, configuration), study.some, study.y, fold)
            for fold, configuration in zip(task.folds, configurations, strict=True)
        ]


def warm_up(study: Study, configurations: Sequence[Configuration]) -> None:
    """Use each kind of configuration on some graphs, off the clock: libraries are loaded then."""
    first = [np.flatnonzero(study.y == c)[:2] for c in np.unique(study.y)]
    some = np.random.default_rng(0).permutation(len(study.y))[:WARM_GRAPHS]
    chosen = np.unique(np.concatenate([*first, some]))
    graphs, y = study.graphs[chosen], study.y[chosen]
    kinds = {depth_of(study.estimator(c)) > 1: c for c in configurations}.values()
    for configuration in kinds:
        study.estimator(configuration).fit(graphs, y).predict(graphs)


# ---------------------------------------------------------------------- one fold against the clock


@dataclass(frozen=True)
class Trained:
    """How a model did that was trained on the training graphs of an outer fold."""

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

    `prepare` gives the graphs where a mask is true, in the model's own form, which the clock does
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
    """ROC AUC by the decision values of a model for test graphs, if it has some."""
    if not hasattr(model, "decision_function"):
        return None
    values = np.asarray(model.decision_function(test), dtype=np.float64)
    outputs = values.reshape(len(values), -1)
    if outputs.shape[1] not in (1, len(classes)):  # not one for each class
        return None
    found = float(roc_auc(np.searchsorted(classes, truth), outputs))
    return None if np.isnan(found) else found
