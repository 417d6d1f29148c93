"""Classes with so few graphs that accuracy is not informative."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from fdgnn.arrays import Array, Floats
from fdgnn.exceptions import ClassImbalanceWarning, frames_of_libraries
from fdgnn.targets import Target, Targets, winning_class
from fdgnn.uncertainty import fit_slope, probabilities

RARE = 0.1  # a class with a smaller share of the graphs is rare, unless all classes are


class Metric(Protocol):
    """A number for outputs, larger where they are better."""

    def __call__(self, y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
        """Score outputs (..., m, q) of graphs with truth y (m,): (...,)."""


@dataclass(frozen=True)
class Scoring:
    """A metric with its names.

    Attributes
    ----------
    name : str
        As in ``scoring=`` and ``--scoring``.
    words : str
        As people write it.
    metric : Metric
    error : bool
        Whether people know it as an error: what is shown is minus the metric.
    of_probabilities : bool
        Whether it looks at probabilities, which a threshold does not move.
    """

    name: str
    words: str
    metric: Metric
    error: bool = False
    of_probabilities: bool = False

    def shown(self, score: float) -> float:
        """Return the score with the sign and the unit that readers expect."""
        return -score if self.error else score


# ---------------------------------------------------------------------- classes


def accuracy(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return the share of graphs for which the winning class is the right one."""
    return np.asarray(np.average(winning_class(outputs) == y, axis=-1, weights=weights))


def balanced_accuracy(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean recall over the classes."""
    w = _ones(y, weights)
    right = winning_class(outputs) == y
    shares = [(right * (w * (y == c))).sum(axis=-1) / w[y == c].sum() for c in np.unique(y)]
    return np.asarray(np.mean(shares, axis=0))


def roc_auc(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Chance that a graph of the class has a larger output than one of the others.

    NaN where one of the two is missing.
    """
    return _over_classes(_area_under_roc, y, outputs, weights)


def average_precision(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return the mean precision over the graphs of the class, each at its own threshold."""
    return _over_classes(_average_precision, y, outputs, weights)


def ranks(metric: Metric) -> bool:
    """Return whether a metric looks at the order of graphs only."""
    return metric in (roc_auc, average_precision)


def f1(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Harmonic mean of precision and recall."""
    w, found = _ones(y, weights), winning_class(outputs)
    n_classes = max(outputs.shape[-1], 2)
    each = []
    for c in range(1 if n_classes == 2 else 0, n_classes):
        hits = ((found == c) * (w * (y == c))).sum(axis=-1)
        total = ((found == c) * w).sum(axis=-1) + w[y == c].sum()
        each.append(2 * hits / np.maximum(total, np.finfo(float).tiny))
    return np.asarray(np.mean(each, axis=0))


def log_loss(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return minus the log loss, at the slope of the logistic function that fits best."""
    flat = outputs.reshape(-1, *outputs.shape[-2:])
    w, each = _ones(y, weights), []
    for one in flat:
        chances = probabilities(one, fit_slope(one, y))[np.arange(len(y)), y]
        logs = np.log(np.maximum(chances, np.finfo(float).tiny))
        each.append(float(np.average(logs, weights=w)))
    return np.array(each).reshape(outputs.shape[:-2])


_OneAgainstRest = Callable[[Array, Floats, Floats], Floats]


def _over_classes(
    score: _OneAgainstRest, y: Array, outputs: Floats, weights: Floats | None
) -> Floats:
    w = _ones(y, weights)
    if outputs.shape[-1] == 1:
        return score(y == 1, outputs[..., 0], w)
    each = [score(y == c, outputs[..., c], w) for c in range(outputs.shape[-1])]
    known = [one for one in each if not np.isnan(one).any()]
    return np.asarray(np.mean(known, axis=0) if known else each[0])


def _area_under_roc(positive: Array, scores: Floats, weights: Floats) -> Floats:
    """Count pairs of a positive and a negative in order; pairs of equal scores count half."""
    order, first, last = _ties(scores)
    negative = np.cumsum(np.where(positive, 0.0, weights)[order], axis=-1)
    below = np.concatenate([np.zeros((*negative.shape[:-1], 1)), negative], axis=-1)
    pairs = np.take_along_axis(below, first, -1) + np.take_along_axis(below, last + 1, -1)
    total = weights[positive].sum() * weights[~positive].sum()
    if total == 0:
        return np.full(scores.shape[:-1], np.nan)
    return np.asarray((pairs * np.where(positive, weights, 0.0)[order]).sum(axis=-1) / (2 * total))


def _average_precision(positive: Array, scores: Floats, weights: Floats) -> Floats:
    """``sum over positives of precision``, where equal scores are taken together."""
    if not positive.any():
        return np.full(scores.shape[:-1], np.nan)
    order, _, last = _ties(-scores)
    w, hit = weights[order], np.where(positive, weights, 0.0)[order]
    precision = np.take_along_axis(np.cumsum(hit, -1) / np.cumsum(w, -1), last, -1)
    return np.asarray((precision * hit).sum(axis=-1) / weights[positive].sum())


def _ties(values: Floats) -> tuple[Array, Array, Array]:
    """Return the ascending order along the last axis, and where each run of equals starts and ends.

    All three are (..., m), in sorted order.
    """
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, -1)
    m = ordered.shape[-1]
    place = np.broadcast_to(np.arange(m), ordered.shape)
    changes = ordered[..., 1:] != ordered[..., :-1]
    edge = np.ones((*ordered.shape[:-1], 1), dtype=bool)
    starts, ends = np.concatenate([edge, changes], -1), np.concatenate([changes, edge], -1)
    first = np.maximum.accumulate(np.where(starts, place, 0), axis=-1)
    backward = np.where(ends, place, m - 1)[..., ::-1]
    return order, first, np.minimum.accumulate(backward, axis=-1)[..., ::-1]


# ---------------------------------------------------------------------- numbers


def squared_error(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return minus the mean squared error; over several targets, their mean."""
    return np.asarray(-_mean((outputs - _column(y)) ** 2, weights).mean(axis=-1))


def rmse(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return minus the root of the mean squared error; over several targets, their mean."""
    return np.asarray(-np.sqrt(_mean((outputs - _column(y)) ** 2, weights)).mean(axis=-1))


def mae(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return minus the mean absolute error."""
    return np.asarray(-_mean(np.abs(outputs - _column(y)), weights).mean(axis=-1))


def r2(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Return the share of the targets' variance that is explained; NaN if they do not vary."""
    truth = _column(y)
    variance = _mean((truth - _mean(truth, weights)) ** 2, weights)
    with np.errstate(invalid="ignore", divide="ignore"):
        share = 1 - _mean((outputs - truth) ** 2, weights) / variance
    return np.where((variance > 0).all(), share.mean(axis=-1), np.nan)


def spearman(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
    """Correlation of ranks; NaN where one side is all equal."""
    a, b = _ranks(np.moveaxis(outputs, -2, -1)), _ranks(np.moveaxis(_column(y), -2, -1))
    w = _ones(y, weights)
    a, b = a - np.average(a, axis=-1, weights=w)[..., None], b - np.average(b, -1, w)[..., None]
    with np.errstate(invalid="ignore"):
        size = np.sqrt((w * a**2).sum(axis=-1) * (w * b**2).sum(axis=-1))
        return np.asarray(((w * a * b).sum(axis=-1) / size).mean(axis=-1))


def _ranks(values: Floats) -> Floats:
    """Ranks along the last axis; equals share the mean of theirs."""
    order, first, last = _ties(values)
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (first + last) / 2, -1)
    return ranks


def _column(y: Array) -> Floats:
    return y.reshape(len(y), -1)


def _mean(values: Floats, weights: Floats | None) -> Floats:
    return np.asarray(np.average(values, axis=-2, weights=weights))


def _ones(y: Array, weights: Floats | None) -> Floats:
    return np.ones(len(y)) if weights is None else weights


# ---------------------------------------------------------------------- by name

OF_CLASSES = {
    each.name: each
    for each in (
        Scoring("accuracy", "accuracy", accuracy),
        Scoring("balanced_accuracy", "balanced accuracy", balanced_accuracy),
        Scoring("roc_auc", "ROC AUC", roc_auc),
        Scoring("average_precision", "average precision", average_precision),
        Scoring("f1", "F1", f1),
        Scoring("log_loss", "log loss", log_loss, error=True, of_probabilities=True),
    )
}
OF_NUMBERS = {
    each.name: each
    for each in (
        Scoring("r2", "R2", r2),
        Scoring("rmse", "RMSE", rmse, error=True),
        Scoring("mae", "mean absolute error", mae, error=True),
        Scoring("spearman", "Spearman's rank correlation", spearman),
    )
}
# scikit-learn's names of the same.
ALSO_CALLED = {
    "roc_auc_ovr": "roc_auc",
    "neg_log_loss": "log_loss",
    "neg_root_mean_squared_error": "rmse",
    "neg_mean_absolute_error": "mae",
}


def known_scoring(name: str, classify: bool) -> Scoring | None:
    """Return the scoring of a name, ours or scikit-learn's; None if it is not one of these."""
    known = OF_CLASSES if classify else OF_NUMBERS
    return known.get(ALSO_CALLED.get(name, name))


def named_scoring(name: str, classify: bool, more: str = "") -> Scoring:
    """Return the scoring of a name, or raise ValueError with the names that there are.

    `more` says which others the caller knows.
    """
    found = known_scoring(name, classify)
    if found is None:
        names = ", ".join(OF_CLASSES if classify else OF_NUMBERS)
        what = "classification" if classify else "regression"
        others = f", {more}" if more else ""
        raise ValueError(f"scoring={name!r}: for {what}, expected one of {names}{others}")
    return found


def is_imbalanced(counts: Array) -> bool:
    """Return whether a class is rare, given how many graphs each has.

    A class is rare if it has less than a tenth of the graphs, and less than half of its share in
    balanced classes.
    """
    share = counts.min() / counts.sum()
    return bool(share < min(RARE, 0.5 / len(counts)))


def default_scoring(codes: Array | None) -> Scoring:
    """Return the default scoring for class codes, or for numeric targets (None).

    Accuracy for classes; but where a class is rare, always saying "the other" is accurate, so
    there it is ROC AUC. For real targets (codes None), R2.
    """
    if codes is None:
        return OF_NUMBERS["r2"]
    return OF_CLASSES["roc_auc" if is_imbalanced(np.bincount(codes)) else "accuracy"]


def rare_class(targets: Targets) -> tuple[Target, str, float] | None:
    """Return the first target with a rare class, its rarest class, and the share of that."""
    for t, target in enumerate(targets.each if targets.classify else ()):
        classes, counts = np.unique(targets.of_target(t), return_counts=True)
        if is_imbalanced(counts):
            return target, str(classes[counts.argmin()]), float(counts.min() / counts.sum())
    return None


def warn_class_imbalance(targets: Targets, handled: bool = False) -> None:
    """Warn if models are chosen by ROC AUC instead of accuracy, because of class imbalance.

    The imbalance is `handled` if there is a threshold or a weight for it already.
    """
    found = rare_class(targets)
    if found is not None:
        target, label, share = found
        of = f" of target {target.name!r}" if target.name else ""
        more = '; `threshold="f1"` or `class_weight="balanced"` predicts that class more often'
        warnings.warn(
            f"class {label}{of} has {100 * share:.1f} % of the graphs, so accuracy is not "
            f"informative; models are selected by ROC AUC instead. `scoring` overrides this"
            f"{'' if handled else more}",
            ClassImbalanceWarning,
            stacklevel=frames_of_libraries(),
        )
