"""What models take from scikit-learn's base, imported in a third of the time.

scikit-learn imports ``scipy.stats``, which is most of the time of importing its base, for one
function that models do not call. So a stand-in is there meanwhile, which imports the real one when
it is asked for anything. It is gone afterwards, and SciPy imports the real one when needed.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

_HEAVY = "scipy.stats"


class _StandIn(ModuleType):
    """A module that becomes the real one when somebody asks for what is in it."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import system's questions
            raise AttributeError(name)
        sys.modules.pop(_HEAVY, None)
        return getattr(import_module(_HEAVY), name)


def _import_base() -> None:
    """Import scikit-learn's base without ``scipy.stats``, unless one of them is there already."""
    if _HEAVY in sys.modules or "sklearn" in sys.modules:
        return
    import scipy

    standing = sys.modules[_HEAVY] = _StandIn(_HEAVY)
    try:
        import sklearn.base
        import sklearn.utils.validation  # noqa: F401
    finally:
        if sys.modules.get(_HEAVY) is standing:
            del sys.modules[_HEAVY]
        if vars(scipy).get("stats") is standing:
            del scipy.stats


_import_base()

from sklearn.base import (  # noqa: E402
    BaseEstimator,
    ClassifierMixin,
    MetaEstimatorMixin,
    RegressorMixin,
    TransformerMixin,
    clone,
    is_classifier,
)
from sklearn.utils.metaestimators import available_if  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import check_array, column_or_1d  # noqa: E402
from sklearn.utils.validation import check_is_fitted as _check_is_fitted  # noqa: E402

__all__ = [
    "BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "RegressorMixin", "TransformerMixin",
    "available_if", "check_array", "check_classification_targets", "check_is_fitted", "clone",
    "column_or_1d", "is_classifier",
]  # fmt: skip


def check_is_fitted(estimator: Any, attributes: str | None = None) -> None:
    """Raise scikit-learn's error unless an estimator is fitted.

    It is asked first: scikit-learn's own way takes longer than some predictions.
    """
    asked = getattr(estimator, "__sklearn_is_fitted__", None)
    if attributes is not None or asked is None or not asked():
        _check_is_fitted(estimator, attributes)
