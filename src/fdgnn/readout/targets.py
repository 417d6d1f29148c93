"""Targets: checked, coded as numbers for the readout, and read back from its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Number
from typing import Any

import numpy as np

from fdgnn.arrays import Array, Floats, is_unknown, largest_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.limits import MAX_NUMBER
from fdgnn.scikit import check_classification_targets, column_or_1d
from fdgnn.texts import cut


def code_classes(y: Any) -> tuple[Array, Floats]:
    """Sorted classes, and targets -1/+1: (n, 1) for two classes, (n, n_classes) for more."""
    classes, codes = number_classes(y)
    return classes, coded(codes, len(classes))


def number_classes(y: Any) -> tuple[Array, Array]:
    """Sorted classes, and the number of each entry's own."""
    classes = np.unique(y)
    return classes, np.searchsorted(classes, y)  # in half the time of `return_inverse`


def coded(codes: Array, n_classes: int) -> Floats:
    """Targets -1/+1 of class numbers: (n, 1) for two classes, (n, n_classes) for more."""
    chosen = 1 if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == chosen, 1.0, -1.0)


def winning_class(scores: Floats) -> Array:
    """Class number of each score row: sign for one output, argmax for several; over any axes."""
    if scores.shape[-1] == 1:
        return (scores[..., 0] > 0).astype(np.intp)
    return np.asarray(np.argmax(scores, axis=-1))


def class_labels(y: Any, graphs: GraphBatch) -> Array:
    """Give y as class labels (n_graphs,), or raise ValueError unless it has two at least."""
    # Integers, truth values and strings are class labels without a closer look.
    plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "iubU"
    given, y = y, y if plain else column_or_1d(y, warn=True)
    check_one_each(graphs, y)
    if not plain:
        check_known(y)
        check_known(as_given(given))
        check_label_types(given)
        check_classification_targets(y)
    check_two_classes(y)
    return np.asarray(y)


def check_label_types(y: Any, name: str = "y") -> None:
    """Raise ValueError if class labels mix text, numbers and bools.

    NumPy would convert them to one type without a word, so that 1 and "1", or 1 and True, became
    one class. None and NaN are missing labels, of no type.

    Parameters
    ----------
    y : array-like
        The labels as the user gave them, before NumPy makes an array of them.
    name : str
        What the labels are called in the message.
    """
    if isinstance(y, np.ndarray) and y.dtype.kind != "O":
        return
    labels = np.asarray(y, dtype=object).ravel().tolist()
    kinds = {_kind_of_label(found) for found in set(map(type, labels))}
    if len(kinds) < 2:
        return
    first: dict[str, int] = {}  # where each kind is seen first
    for i, label in enumerate(labels):
        if not is_unknown(label):
            first.setdefault(_kind_of_label(type(label)), i)
    if len(first) > 1:
        examples = ", ".join(
            f"{type(labels[i]).__name__} ({name}[{i}] is {cut(repr(labels[i]), 40)})"
            for i in first.values()
        )
        raise ValueError(
            f"{name} mixes types of class labels: {examples}; convert all labels to one type, for "
            "example to text by [str(label) for label in y]"
        )


def _kind_of_label(label_type: type) -> str:
    """Return the kind of a label's type; whole and real numbers are of one kind."""
    if issubclass(label_type, bool | np.bool_):
        return "bool"
    if issubclass(label_type, Number | np.number):
        return "number"
    return "text" if issubclass(label_type, str) else label_type.__qualname__


def accuracy_of(y: Any, predicted: Array, weights: Any = None) -> float:
    """Share of predicted classes that are right, as scikit-learn's `accuracy_score` gives it.

    Its import takes longer than all else, so that labels of one kind are compared without it.
    """
    truth = as_given(y)
    plain = weights is None and truth.ndim == 1 and truth.shape == predicted.shape
    if plain and len(truth) > 0 and _of_one_kind(truth, predicted):
        return float(np.mean(truth == predicted))
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(y, predicted, sample_weight=weights))


def _of_one_kind(one: Array, other: Array) -> bool:
    """Tell whether all labels of both are whole numbers, truth values, or text."""
    if one.dtype.kind == other.dtype.kind and one.dtype.kind in "iub":
        return True
    return all(
        labels.dtype.kind == "U" or all(type(label) is str for label in labels.tolist())
        for labels in (one, other)
    )


def r2_of(y: Any, predicted: Floats, weights: Any = None) -> float:
    """Share of the variance that is explained, as scikit-learn's `r2_score` gives it.

    Numbers that vary are compared without it, for the same reason.
    """
    truth = np.asarray(y)
    plain = weights is None and truth.ndim == 1 and truth.shape == predicted.shape
    if plain and len(truth) > 1 and truth.dtype.kind in "fiu":
        truth = truth.astype(np.float64)
        variation = np.square(truth - truth.mean()).sum()
        if np.isfinite(variation) and variation > 0 and np.isfinite(predicted).all():
            return float(1 - np.square(truth - predicted).sum() / variation)
    from sklearn.metrics import r2_score

    return float(r2_score(y, predicted, sample_weight=weights))


def as_given(values: Any) -> Array:
    """Make an array of values, of objects where text stands beside NaN, which is no text."""
    found = np.asarray(values)
    if found.dtype.kind != "U" or isinstance(values, np.ndarray):
        return found
    return np.asarray(values, dtype=object)


def real_targets(y: Any, graphs: GraphBatch) -> Floats:
    """Give y as finite numbers (n_graphs,), or raise ValueError."""
    try:
        targets = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError) as error:
        text = first_text(y)
        if text is None:
            raise
        raise ValueError(
            f"y has text, such as {cut(text, 40)!r}, but a regressor learns numbers; for classes, "
            "take FDGNNClassifier"
        ) from error
    check_one_each(graphs, targets)
    if targets.ndim > 1:
        raise ValueError(f"y has shape {targets.shape}; expected (n_graphs,) or (n_graphs, q)")
    check_known(targets)
    if MAX_NUMBER.is_below(largest := largest_of(targets)):
        raise ValueError(f"y has the number {largest:g}; {MAX_NUMBER.in_words}; rescale y")
    return targets


def first_text(y: Any) -> str | None:
    """Give the first text in a list that is no number; None if there is none."""
    for each in y:
        if isinstance(each, str):
            try:
                float(each)
            except ValueError:
                return str(each)
    return None


def sample_weights(
    given: Any, n: int, y: Array | None = None, class_weight: Any = None
) -> Floats | None:
    """Give the weight of each sample, of mean 1; None where all are equal.

    Parameters
    ----------
    given : (n,) or None
    n : int
    y : (n,), optional
        Class labels, for `class_weight`.
    class_weight : "balanced", dict or None
    """
    if given is None and class_weight is None:
        return None
    try:
        weights = np.ones(n) if given is None else np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError("sample_weight: expected one number for each graph") from None
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}, expected ({n},)")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight: expected finite numbers, at least 0 and not all 0")
    _check_scale(weights, "sample_weight")
    if class_weight is not None:
        weights = weights * _weights_of_classes(class_weight, y)
    return np.asarray(weights * (np.count_nonzero(weights) / weights.sum()))


def _weights_of_classes(class_weight: Any, y: Any) -> Floats:
    """The weight of each sample's class."""
    classes, codes, counts = np.unique(y, return_inverse=True, return_counts=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        return np.asarray((len(codes) / (len(classes) * counts))[codes])
    if not isinstance(class_weight, Mapping):
        raise ValueError(
            f"class_weight={class_weight!r}: expected 'balanced', a dictionary or None"
        )
    unknown = [key for key in class_weight if key not in classes.tolist()]
    if unknown:
        raise ValueError(f"class_weight names {unknown[0]!r}, which is not a class of y")
    each = np.array([class_weight.get(c, 1.0) for c in classes.tolist()], dtype=np.float64)
    if not (np.isfinite(each).all() and (each > 0).all()):
        raise ValueError("class_weight: expected finite numbers above 0")
    _check_scale(each, "class_weight")
    return each[codes]


def _check_scale(weights: Floats, what: str) -> None:
    """Refuse weights that are all next to nothing, or so large that their sum is infinite."""
    largest = float(weights.max())
    if MAX_NUMBER.is_below(largest) or MAX_NUMBER.is_below(1 / largest):
        raise ValueError(
            f"{what}: its largest number is {largest:g}; {MAX_NUMBER.in_words}, and their "
            "inverses; rescale them"
        )


def check_two_classes(y: Array) -> None:
    """Raise ValueError unless there is something to tell apart."""
    if len(y) == 0:
        raise ValueError("there are no classes; a classifier needs at least two")
    if (y == y[0]).all():
        raise ValueError(f"y has one class only ({y[0]!s}); a classifier needs at least two")


def check_known(y: Array) -> None:
    """Raise ValueError if an entry of y is missing, or a number that is NaN or infinite."""
    if y.dtype.kind == "f":
        known, what = np.isfinite(y).reshape(len(y), -1).all(axis=1), "NaN or infinite"
    elif y.dtype.kind == "O":
        known, what = np.array([not is_unknown(value) for value in y.tolist()]), "missing"
    else:
        return
    if not known.all():
        raise ValueError(f"y[{int(np.argmin(known))}] is {what}; leave such graphs out")


def check_one_each(graphs: GraphBatch, y: Array) -> None:
    """Raise ValueError unless there are graphs, and y has one entry for each."""
    if len(graphs) == 0:
        raise GraphError("no graphs: there is nothing to fit to")
    if y.ndim == 0 or len(y) != len(graphs):
        found = "a single value" if y.ndim == 0 else f"{len(y)} entries"
        raise ValueError(f"y has {found}, but there are {len(graphs)} graphs; give one for each")
