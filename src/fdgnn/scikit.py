"""What models take from scikit-learn's base, imported in a third of the time.

scikit-learn imports ``scipy.stats``, which is most of the time of importing its base, and other
libraries for functions that models do not call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import scipy  # noqa: F401

from fdgnn.standins import alone, without

if "sklearn" not in sys.modules:
    with without(
        "numpy.f2py", "numpy.testing", "scipy.stats", "scipy.special", "asyncio",
        "narwhals", "narwhals.stable", "narwhals.stable.v2",
    ):  # fmt: skip
        import sklearn.base
        import sklearn.utils.validation  # noqa: F401

from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d
from sklearn.utils.validation import check_is_fitted as _check_is_fitted

__all__ = [
    "BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "OfferedIf", "RegressorMixin",
    "TransformerMixin", "available_if", "check_array", "check_classification_targets",
    "check_is_fitted", "clone", "column_or_1d", "get_tags", "is_classifier", "splitters",
]  # fmt: skip


class OfferedIf:
    """A method that is there under a condition, as of ``available_if``; if not, it says why.

    Parameters
    ----------
    condition : callable
        From the object to whether it has the method.
    remedy : str
        What the error tells who calls the method all the same.
    """

    def __init__(self, condition: Callable[[Any], Any], remedy: str) -> None:
        self.condition, self.remedy = condition, remedy

    def __call__(self, method: Callable[..., Any]) -> OfferedIf:
        """Take the method."""
        self.method, self.__doc__ = method, method.__doc__
        return self

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """Give the method of an object, or raise AttributeError."""
        if owner is None:
            return self.method
        if not self.condition(owner):
            raise AttributeError(f"{type(owner).__name__}.{self.method.__name__}: {self.remedy}")
        return self.method.__get__(owner)


def splitters() -> Any:
    """Give scikit-learn's splitters, of ``sklearn.model_selection``, as a module.

    The package imports all metrics for its searches, which takes a second; folds need none.
    """
    return alone("sklearn.model_selection", "_split")


def check_is_fitted(estimator: Any, attributes: str | None = None) -> None:
    """Raise scikit-learn's error unless an estimator is fitted.

    It is asked first: scikit-learn's own way takes longer than some predictions.
    """
    asked = getattr(estimator, "__sklearn_is_fitted__", None)
    if attributes is not None or asked is None or not asked():
        _check_is_fitted(estimator, attributes)
