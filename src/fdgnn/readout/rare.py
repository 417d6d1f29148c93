"""Classes with so few graphs that accuracy says little."""

from __future__ import annotations

import warnings

import numpy as np

from fdgnn.arrays import Array
from fdgnn.exceptions import RareClassWarning
from fdgnn.readout.metrics import has_rare_class
from fdgnn.targets import Targets


def rare_class(y: Array) -> tuple[str, float] | None:
    """Name the rarest class and its share of the graphs, if it is rare."""
    classes, counts = np.unique(y, return_counts=True)
    if not has_rare_class(counts):
        return None
    return str(classes[counts.argmin()]), float(counts.min() / counts.sum())


def tell_rare_class(targets: Targets, heeded: bool = False, stacklevel: int = 3) -> None:
    """Warn if ROC AUC has taken the place of accuracy, because of class imbalance.

    It is `heeded` if there is a threshold or a weight for it already.
    """
    for t, name in enumerate(targets.names if targets.classify else ()):
        found = rare_class(targets.of_target(t))
        if found is not None:
            of = f" of target {name!r}" if name else ""
            tell_rare(f"class {found[0]}{of}", found[1], heeded, stacklevel + 1)
            return


def tell_rare(name: str, share: float, heeded: bool = False, stacklevel: int = 3) -> None:
    """Warn of a rare class with this name and this share of the graphs."""
    more = '; threshold="f1" or class_weight="balanced" predicts that class more often'
    warnings.warn(
        f"{name} has {100 * share:.1f} % of the graphs, so that accuracy says little; models are "
        f"chosen by ROC AUC instead. scoring= chooses otherwise{'' if heeded else more}",
        RareClassWarning,
        stacklevel=stacklevel,
    )
