"""What models take from scikit-learn's base, imported in a third of the time.

scikit-learn imports ``scipy.stats``, which is most of the time of importing its base, for one
function that models do not call. So an empty module stands there meanwhile. It is gone afterwards,
and SciPy imports the real one when somebody first asks for it.
"""

from __future__ import annotations

import sys
from types import ModuleType

_HEAVY = "scipy.stats"


def _import_base() -> None:
    """Import scikit-learn's base without ``scipy.stats``, unless one of them is there already."""
    if _HEAVY in sys.modules or "sklearn" in sys.modules:
        return
    import scipy

    sys.modules[_HEAVY] = ModuleType(_HEAVY)
    try:
        import sklearn.base
        import sklearn.utils.validation  # noqa: F401
    except (ImportError, AttributeError):  # a version that needs it at once: import again, with it
        for name in [n for n in sys.modules if n.split(".")[0] == "sklearn"]:
            del sys.modules[name]
    finally:
        del sys.modules[_HEAVY]
        vars(scipy).pop("stats", None)


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
from sklearn.utils.validation import check_array, check_is_fitted, column_or_1d  # noqa: E402

__all__ = [
    "BaseEstimator", "ClassifierMixin", "MetaEstimatorMixin", "RegressorMixin", "TransformerMixin",
    "available_if", "check_array", "check_classification_targets", "check_is_fitted", "clone",
    "column_or_1d", "is_classifier",
]  # fmt: skip
