"""The rule by which base models are averaged: the paired 3-standard-error rule.

Outputs are averaged over all base models except those whose
out-of-fold error exceeds that of the best one by more than three standard errors of the difference,
graph by graph, and by more than a hundredth. The error is the squared one, or, where graphs are
ranked (ROC AUC, average precision), the share of pairs of a graph of a class and one of another
that are in the wrong order. So base models are selected only if validation can distinguish them and
the difference matters; otherwise an average is better than the best one
(docs/decisions/0031-ensemble.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Floats
from fdgnn.fitting import FitTask, ModelFit, Scores, squared_errors
from fdgnn.metrics import ranks

Mask = npt.NDArray[np.bool_]

STANDARD_ERRORS = 3.0
_MATTERS = 0.01  # of the best error: on many graphs even smaller differences are beyond chance


class Ensemble(NamedTuple):
    """Base models that are averaged in each row of folds, and how well the average does."""

    kept: Mask  # (n_rows, n_models)
    predictions: Floats  # (n_rows, n, q), out of fold
    scores: Scores  # with one entry in the place of alphas


def combine(fits: Sequence[ModelFit], task: FitTask) -> Ensemble:
    """Apply the rule in each row of folds, by the graphs in its inner folds alone."""
    predictions = np.array([fit.choice.predictions for fit in fits if fit.choice is not None])
    Y, classify = task.targets.coded, task.targets.classify
    ranking = classify and ranks(task.metric)
    if len(fits) == 1:
        kept = np.ones((len(task.folds), 1), dtype=bool)
    else:
        kept = np.array([
            ~rejected_by_rule(predictions[:, row, fold >= 0], Y[fold >= 0], classify, ranking)
            for row, fold in enumerate(task.folds)
        ])  # fmt: skip
    averaged = np.array([predictions[keep, row].mean(axis=0) for row, keep in enumerate(kept)])
    return Ensemble(kept, averaged, task.scored(averaged[:, None]))


def rejected_by_rule(
    predictions: Sequence[Floats] | Floats,
    targets: Floats,
    classify: bool,
    ranking: bool = False,
    limit: float = STANDARD_ERRORS,
) -> Mask:
    """Return which models are worse than the best by more than `limit` standard errors, and 1 %.

    Predictions of each model and targets are (n, q), NaN where a target is unknown. All are
    compared on the same graphs, so that the difference of two errors has a small standard error
    where both err alike. With `ranking`, errors are pairs in the wrong order, for targets -1, +1.
    """
    found = np.asarray(predictions)
    # 1. The error of each model (m,), and how far each graph moves it from its expectation (m, n).
    errors, parts = _misplaced(found, targets) if ranking else _squared(found, targets, classify)
    # 2. What each is worse than the best, and the standard error of that difference.
    best = np.argmin(errors)
    standard_error = np.sqrt(((parts - parts[best]) ** 2).sum(axis=1))
    least = np.maximum(limit * standard_error, _MATTERS * errors[best])
    return np.asarray(errors - errors[best] > least)


def _squared(outputs: Floats, targets: Floats, classify: bool) -> tuple[Floats, Floats]:
    """Return the mean squared error of each model, over graphs and targets, and its parts.

    Several real targets count in units of their own deviations.
    """
    squares = squared_errors(outputs, targets) if classify else (outputs - targets) ** 2
    if targets.shape[1] > 1 and not classify:
        variance = np.nanvar(targets, axis=0)
        squares = squares / np.where(variance > 0, variance, 1.0)
    mean_of = np.nanmean if np.isnan(targets).any() else np.mean
    errors = np.asarray(mean_of(squares, axis=2))  # (m, n)
    mean = errors.mean(axis=1)
    return mean, (errors - mean[:, None]) / errors.shape[1]


def _misplaced(outputs: Floats, targets: Floats) -> tuple[Floats, Floats]:
    """Return 1 - ROC AUC of each model, the share of pairs in the wrong order, and its parts.

    What a graph adds is how far the share of the others' graphs that stand on its wrong side is
    from the mean of its own class, over the number of graphs of that class (DeLong's variance).
    """
    m, n, q = outputs.shape
    mean, parts, n_used = np.zeros(m), np.zeros((m, n)), 0
    for column in range(q):
        some, others = (np.flatnonzero(targets[:, column] == side) for side in (1.0, -1.0))
        if len(some) == 0 or len(others) == 0:
            continue
        n_used += 1
        for model in range(m):
            ours, theirs = outputs[model, some, column], outputs[model, others, column]
            for rows, wrong in ((some, _above(theirs, ours)), (others, 1 - _above(ours, theirs))):
                parts[model, rows] += (wrong - wrong.mean()) / len(rows)
            mean[model] += _above(theirs, ours).mean()
    return mean / max(n_used, 1), parts / max(n_used, 1)


def _above(values: Floats, each: Floats) -> Floats:
    """Return the share of values larger than each of some numbers; equal ones count half."""
    ordered = np.sort(values)
    below = np.searchsorted(ordered, each, "left") + np.searchsorted(ordered, each, "right")
    return np.asarray(1 - below / (2 * len(values)))
