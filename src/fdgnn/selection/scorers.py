"""scikit-learn's scorers as metrics on outputs."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from fdgnn.graphs import Array, Floats
from fdgnn.readout.metrics import Metric, Scoring, known_scoring, named_scoring, usual_scoring
from fdgnn.readout.targets import winning_class
from fdgnn.scikit import BaseEstimator, ClassifierMixin, RegressorMixin


def scoring_of(given: Any, codes: Array | None, classes: Array | None) -> Scoring:
    """Give the scoring that a user asked for by a name or a scikit-learn scorer, or the usual one.

    Parameters
    ----------
    given : str, callable or None
    codes, classes : array or None
        Class of each graph, as a number, and the classes; None for real targets.

    Raises
    ------
    ValueError
        Neither fdgnn nor scikit-learn knows the name, or it is not for such targets.
    """
    if given is None:
        return usual_scoring(codes)
    if isinstance(given, str) and not _only_in_scikit(given, classes is not None):
        return named_scoring(given, classes is not None, "or one of scikit-learn's for these")
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
