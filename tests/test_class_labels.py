"""Class labels of one type are kept; mixed types, which NumPy would merge, are an error."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from fdgnn import FDGNNClassifier, FDGNNSearchCV
from fdgnn.datasets import make_random_graphs
from fdgnn.targets import class_targets

N = 12
GRAPHS = make_random_graphs(N, random_state=0)
SMALL = {"n_units": 8, "n_layers": 1, "random_state": 0}
MIXED = [
    ([1, True, "1", "x"], r"int \(y\[0\] is 1\), bool \(y\[1\] is True\), str \(y\[2\] is '1'\)"),
    ([1, "1"], r"int \(y\[0\] is 1\), str \(y\[1\] is '1'\)"),
    ([True, 1, 2], r"bool \(y\[0\] is True\), int \(y\[1\] is 1\)"),
    (["a", 2.5], r"str \(y\[0\] is 'a'\), float \(y\[1\] is 2.5\)"),
    (["a", b"a"], r"str \(y\[0\] is 'a'\), bytes \(y\[1\] is b'a'\)"),
]
PAIRS = [("a", "b"), (0, 1), (True, False), (0, 1.0), (np.int32(3), 4), (np.str_("a"), "b")]


def repeated(labels):
    return [*labels, *labels[:1] * (N - len(labels))]


def as_objects(labels):
    values = np.empty(len(labels), dtype=object)
    values[:] = labels
    return values


@pytest.mark.parametrize(("labels", "types"), MIXED)
def test_mixed_types_are_an_error(labels, types):
    y = repeated(labels)
    message = f"^y mixes types of class labels: {types}; convert all labels to one type"
    for given in (y, as_objects(y)):
        with pytest.raises(ValueError, match=message):
            FDGNNClassifier(**SMALL).fit(GRAPHS, given)
        with pytest.raises(ValueError, match=message):
            FDGNNSearchCV(FDGNNClassifier(**SMALL)).fit(GRAPHS, given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn's, about the shape
        with pytest.raises(ValueError, match=message):
            FDGNNClassifier(**SMALL).fit(GRAPHS, [[label] for label in y])
    with pytest.raises(ValueError, match=message):
        FDGNNClassifier(**SMALL).partial_fit(GRAPHS, y, classes=["a", "b"])


@pytest.mark.parametrize("labels", [labels for labels, _ in MIXED])
def test_mixed_types_of_several_targets_and_of_classes_are_an_error(labels):
    y = repeated(labels)
    with pytest.raises(ValueError, match=r"^target '1' mixes types of class labels: "):
        class_targets([[i % 2, label] for i, label in enumerate(y)], GRAPHS)
    with pytest.raises(ValueError, match=r"^target 'b' mixes types of class labels: "):
        class_targets({"a": [0, 1] * (N // 2), "b": y}, GRAPHS)
    with pytest.raises(ValueError, match=r"^classes mixes types of class labels: "):
        FDGNNClassifier(**SMALL).partial_fit(GRAPHS, y, classes=labels)


@pytest.mark.parametrize("pair", PAIRS)
def test_labels_of_one_type_are_kept(pair):
    y = list(pair) * (N // 2)
    objects = [as_objects(y)] if isinstance(pair[0], str) else []  # scikit-learn wants text there
    for given in (y, tuple(y), np.array(y), *objects):
        found = class_targets(given, GRAPHS).of_target(0).tolist()
        assert sorted(set(found)) == sorted(pair)


@pytest.mark.parametrize("pair", PAIRS)
def test_labels_in_pandas_are_kept(pair):
    pandas = pytest.importorskip("pandas")
    y = pandas.Series(list(pair) * (N // 2))
    for given in (y, y.astype("category")):
        found = class_targets(given, GRAPHS).of_target(0).tolist()
        assert sorted(set(found)) == sorted(pair)
    with pytest.raises(ValueError, match=r"^y mixes types of class labels: "):
        class_targets(pandas.Series(repeated([1, "1"]), dtype=object), GRAPHS)
