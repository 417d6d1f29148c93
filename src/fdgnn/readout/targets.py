"""Targets: checked, coded as numbers for the readout, and read back from its outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from fdgnn.arrays import Array, Floats
from fdgnn.graphs import GraphBatch


def code_classes(y: Any) -> tuple[Array, Floats]:
    """Sorted classes, and targets -1/+1: (n, 1) for two classes, (n, n_classes) for more."""
    classes, codes = np.unique(y, return_inverse=True)
    if len(classes) == 2:
        return classes, np.where(codes[:, None] == 1, 1.0, -1.0)
    return classes, np.where(codes[:, None] == np.arange(len(classes)), 1.0, -1.0)


def winning_class(scores: Floats) -> Array:
    """Class number of each score row: sign for one output, argmax for several; over any axes."""
    if scores.shape[-1] == 1:
        return (scores[..., 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=-1))


def class_labels(y: Any, graphs: GraphBatch) -> Array:
    """Give y as class labels (n_graphs,), or raise ValueError unless it has two at least."""
    # Integers, truth values and strings are class labels without a closer look.
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iubU"
    y = y if plain else column_or_1d(y, warn=True)
    check_one_each(graphs, y)
    if not plain:
        check_classification_targets(y)
    check_two_classes(y)
    return np.asarray(y)


def real_targets(y: Any, graphs: GraphBatch) -> Floats:
    """Give y as finite numbers, (n_graphs,) or (n_graphs, q), or raise ValueError."""
    targets = np.asarray(y, dtype=np.float64)
    check_one_each(graphs, targets)
    if targets.ndim > 2:
        raise ValueError(f"y has shape {targets.shape}; expected (n_graphs,) or (n_graphs, q)")
    finite = np.isfinite(targets).reshape(len(targets), -1).all(axis=1)
    if not finite.all():
        raise ValueError(f"y[{int(np.argmin(finite))}] is NaN or infinite; leave such graphs out")
    return targets


def check_two_classes(y: Array) -> None:
    """Raise ValueError unless there is something to tell apart."""
    if (y == y[0]).all():
        raise ValueError(f"y has one class only ({y[0]!s}); a classifier needs at least two")


def check_one_each(graphs: GraphBatch, y: Array) -> None:
    """Raise ValueError unless y has one entry for each graph."""
    if y.ndim == 0 or len(y) != len(graphs):
        found = "a single value" if y.ndim == 0 else f"{len(y)} entries"
        raise ValueError(f"y has {found}, but there are {len(graphs)} graphs; give one for each")
