"""Scorers of scikit-learn as metrics on outputs, and scores of nested cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator

from fdgnn.arrays import Array, Floats
from fdgnn.fitting import FitTask, mean_of_known
from fdgnn.folds import TEST
from fdgnn.metrics import OF_CLASSES, Metric, Scoring, default_scoring, known_scoring, named_scoring
from fdgnn.targets import Targets, winning_class
from fdgnn.uncertainty import fitted_targets


def scoring_of(given: Any, targets: Targets) -> Scoring:
    """Return the scoring of a name, of a scikit-learn scorer, or, for None, the usual one.

    Raises
    ------
    ValueError
        Neither fdgnn nor scikit-learn knows the name, or it is not for such targets.
    """
    if given is None:
        return default_scoring(targets.rarest())
    if isinstance(given, str) and not _only_in_scikit(given, targets.classify):
        return named_scoring(given, targets.classify, "or one of scikit-learn's for these")
    if targets.classes is not None and len(targets.classes) > 1:
        raise ValueError(
            f"scoring={given!r}: a scikit-learn scorer is for one target; for several, take one "
            f"of {', '.join(OF_CLASSES)}"
        )
    classes = None if targets.classes is None else targets.classes[0]
    return Scoring(str(given), str(given), scorer_metric(given, classes))


def _only_in_scikit(name: str, classify: bool) -> bool:
    """Return whether scikit-learn has a scorer that we do not have, for classes or for numbers."""
    if known_scoring(name, classify) or known_scoring(name, not classify):
        return False
    from sklearn.metrics import get_scorer_names  # slow to import

    return name in get_scorer_names()


def scorer_metric(scoring: Any, classes: Array | None) -> Metric:
    """Make a metric on outputs from a scikit-learn scorer, by replaying the outputs to it."""
    from sklearn.metrics import get_scorer  # slow to import

    scorer = get_scorer(scoring)

    def metric(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
        truth = y if classes is None else classes[y]
        flat = outputs.reshape(-1, *outputs.shape[-2:])
        try:
            scores = [scorer(_Replayed(classes), o, truth) for o in flat]
        except AttributeError:
            raise ValueError(
                f"scoring={scoring!r} needs probabilities; choose one that works from predictions "
                "or decision values, such as accuracy, balanced_accuracy, f1_macro or roc_auc"
            ) from None
        return np.array(scores).reshape(outputs.shape[:-2])

    return metric


class _Replayed(BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts its input, or a classifier with its input as decision values."""

    def __init__(self, classes: Array | None) -> None:
        self.classes = self.classes_ = classes

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.estimator_type = "regressor" if self.classes is None else "classifier"
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: Floats) -> Array:
        return self.decision_function(X) if self.classes is None else self.classes[winning_class(X)]


@dataclass(frozen=True)
class NestedPredictions:
    """Outputs for the test graphs of each outer fold.

    Attributes
    ----------
    targets : Targets
    tested : (n_outer, n) bool
        Which graphs an outer fold tests.
    outputs : (n_outer, n, q)
        By what was selected and fitted without the fold. A fold with NaN has no score.
    thresholds : (n_outer, q), optional
        Decision thresholds that each outer fold chose by its training graphs; as in a model, they
        are subtracted from the outputs.
    """

    targets: Targets
    tested: npt.NDArray[np.bool_]
    outputs: Floats
    thresholds: Floats | None = None

    @property
    def lowered(self) -> Floats:
        """Outputs (n_outer, n, q) minus the thresholds."""
        return self.outputs if self.thresholds is None else self.outputs - self.thresholds[:, None]

    def scores(self, scoring: Scoring) -> Floats:
        """Return the score of each target in each outer fold, (n_targets, n_outer), or NaN."""
        # Probabilities are not moved by a threshold.
        seen = self.outputs if scoring.of_probabilities else self.lowered
        found = np.full((len(self.targets.names), len(seen)), np.nan)
        for t, target in enumerate(self.targets.each):
            for row, (test, own) in enumerate(zip(self.tested, seen, strict=True)):
                some = test & self.targets.known[:, t]
                outputs = own[some, target.columns]
                if some.any() and not np.isnan(outputs).any():
                    found[t, row] = scoring.metric(self.targets.values[some, t], outputs)
        return found

    def by_fold(self, scoring: Scoring) -> Floats:
        """Return the mean over targets in each outer fold, (n_outer,), or NaN."""
        return mean_of_known(self.scores(scoring))

    def by_target(self, scoring: Scoring) -> Floats:
        """Return the mean over the outer folds for each target, (n_targets,)."""
        return mean_of_known(self.scores(scoring).T)

    def score(self, scoring: Scoring) -> float:
        """Return the mean over targets and outer folds."""
        return float(mean_of_known(self.by_target(scoring)))

    def last(self) -> Floats:
        """Return the outputs (n, q) of each graph, by the last fold that tests it, or NaN."""
        found = np.full(self.outputs.shape[1:], np.nan)
        for test, outputs in zip(self.tested, self.lowered, strict=True):
            found[test] = outputs[test]
        return found


def nested_predictions(task: FitTask, outputs: Floats, threshold: str | None) -> NestedPredictions:
    """Return outputs (n_outer, n, q) of outer folds, which may choose their decision thresholds.

    Each outer fold chooses by its training graphs, whose outputs are of readouts that have not seen
    their inner fold, and by the metric `threshold`, as a model does.
    """
    targets, weights, tested = task.targets, task.weights, task.folds == TEST
    if threshold is None:
        return NestedPredictions(targets, tested, outputs)
    found = []
    for fold, own in zip(task.folds, outputs, strict=False):
        some, metric = fold >= 0, OF_CLASSES[threshold].metric
        w = None if weights is None else weights[some]
        fitted = fitted_targets(targets[some], own[some], w, uncertainty=False, threshold=metric)
        found.append([target.threshold for target in fitted])  # of two classes, so of one column
    return NestedPredictions(targets, tested, outputs, np.array(found))
