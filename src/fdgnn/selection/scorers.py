"""scikit-learn's scorers as metrics on outputs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

from fdgnn.graphs import Array, Floats
from fdgnn.readout.metrics import (
    OF_CLASSES,
    Metric,
    Scoring,
    known_scoring,
    named_scoring,
    usual_scoring,
)
from fdgnn.targets import Targets, winning_class


def scoring_of(given: Any, targets: Targets) -> Scoring:
    """Return the scoring of a name, of a scikit-learn scorer, or, for None, the usual one.

    Raises
    ------
    ValueError
        Neither fdgnn nor scikit-learn knows the name, or it is not for such targets.
    """
    if given is None:
        return usual_scoring(targets.rarest())
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
    """Tell whether scikit-learn has a scorer that we do not have, for classes or for numbers."""
    if known_scoring(name, classify) or known_scoring(name, not classify):
        return False
    from sklearn.metrics import get_scorer_names  # slow to import

    return name in get_scorer_names()


def scorer_metric(scoring: Any, classes: Array | None) -> Metric:
    """Make a metric on outputs from a scikit-learn scorer, by replaying the outputs to it."""
    from sklearn.metrics import get_scorer  # slow to import

    scorer = get_scorer(scoring)
    replay = _ReplayedRegressor() if classes is None else _ReplayedClassifier(classes)

    def metric(y: Array, outputs: Floats, weights: Floats | None = None) -> Floats:
        truth = y if classes is None else classes[y]
        flat = outputs.reshape(-1, *outputs.shape[-2:])
        try:
            scores = [scorer(replay, o, truth) for o in flat]
        except AttributeError:
            raise ValueError(
                f"scoring={scoring!r} needs probabilities; choose one that works from predictions "
                "or decision values, such as accuracy, balanced_accuracy, f1_macro or roc_auc"
            ) from None
        return np.array(scores).reshape(outputs.shape[:-2])

    return metric


class _ReplayedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts its input."""

    def fit(self, X: Any, y: Any) -> Self:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Floats) -> Floats:
        return X[:, 0] if X.shape[1] == 1 else X


class _ReplayedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier with its input as decision values."""

    def __init__(self, classes: Array) -> None:
        self.classes = classes

    def fit(self, X: Any, y: Any) -> Self:
        return self

    @property
    def classes_(self) -> Array:
        return self.classes

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def decision_function(self, X: Floats) -> Floats:
        return X[:, 0] if X.shape[1] == 1 else X

    def predict(self, X: Floats) -> Array:
        return self.classes[winning_class(X)]
