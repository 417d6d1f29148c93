"""Metrics on outputs of many folds at once, beside scikit-learn's on each."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn import metrics as theirs

from fdgnn import metrics
from fdgnn.uncertainty import fit_slope, probabilities

RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.2, 2.0, size=60)


def outputs_of(q, ties):
    found = RNG.normal(size=(3, 4, 60, q))
    return np.round(found, 1) if ties else found


def each(score, outputs):
    return np.array([[score(one) for one in row] for row in outputs])


def classes_of(one):
    return (one[:, 0] > 0).astype(int) if one.shape[1] == 1 else one.argmax(axis=1)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_metrics_of_classes_are_scikit_learns(n_classes, weights, ties):
    y = RNG.integers(0, n_classes, size=60)
    outputs = outputs_of(1 if n_classes == 2 else n_classes, ties)
    w = {"sample_weight": weights}
    shape = "binary" if n_classes == 2 else "macro"

    def ranked(score):
        def by_class(one):
            if n_classes == 2:
                return score(y, one[:, 0], **w)
            return np.mean([score(y == c, one[:, c], **w) for c in range(n_classes)])

        return by_class

    expected = {
        "accuracy": lambda one: theirs.accuracy_score(y, classes_of(one), **w),
        "balanced_accuracy": lambda one: theirs.balanced_accuracy_score(y, classes_of(one), **w),
        "f1": lambda one: theirs.f1_score(y, classes_of(one), average=shape, **w),
        "roc_auc": ranked(theirs.roc_auc_score),
        "average_precision": ranked(theirs.average_precision_score),
        "log_loss": lambda one: -theirs.log_loss(y, probabilities(one, fit_slope(one, y)), **w),
    }
    assert set(expected) == set(metrics.OF_CLASSES)
    for name, score in expected.items():
        found = metrics.OF_CLASSES[name].metric(y, outputs, weights)
        np.testing.assert_allclose(found, each(score, outputs), atol=1e-12, err_msg=name)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("q", [1, 2])
def test_metrics_of_numbers_are_scikit_learns(q, weights):
    y = RNG.normal(size=(60, q))
    outputs = y + outputs_of(q, ties=True)
    w = {"sample_weight": weights}
    expected = {
        "r2": lambda one: theirs.r2_score(y, one, **w),
        "rmse": lambda one: -theirs.root_mean_squared_error(y, one, **w),
        "mae": lambda one: -theirs.mean_absolute_error(y, one, **w),
    }
    for name, score in expected.items():
        metric = metrics.OF_NUMBERS[name].metric
        truth = y[:, 0] if q == 1 else y
        np.testing.assert_allclose(metric(truth, outputs, weights), each(score, outputs))
    ranks = each(lambda one: np.mean([spearmanr(y[:, j], one[:, j])[0] for j in range(q)]), outputs)
    np.testing.assert_allclose(metrics.spearman(y, outputs), ranks)
    squares = each(lambda one: -theirs.mean_squared_error(y, one, **w), outputs)
    np.testing.assert_allclose(metrics.squared_error(y, outputs, weights), squares)


def test_what_cannot_be_ranked_is_not_a_number():
    outputs = RNG.normal(size=(2, 5, 1))
    assert np.isnan(metrics.roc_auc(np.zeros(5, dtype=int), outputs)).all()
    assert np.isnan(metrics.roc_auc(np.ones(5, dtype=int), outputs)).all()
    assert np.isnan(metrics.average_precision(np.zeros(5, dtype=int), outputs)).all()
    assert np.isnan(metrics.r2(np.ones(5), outputs)).all()
    assert np.isnan(metrics.spearman(np.ones(5), outputs)).all()
    # Of three classes, a fold that lacks one still ranks the others.
    y = np.array([0, 0, 2, 2, 2])
    assert metrics.roc_auc(y, np.eye(3)[y]) == 1.0


def test_names_are_ours_or_scikit_learns():
    assert metrics.named_scoring("neg_log_loss", classify=True).name == "log_loss"
    assert metrics.named_scoring("rmse", classify=False).shown(-2.0) == 2.0
    assert metrics.named_scoring("roc_auc", classify=True).shown(0.5) == 0.5
    assert metrics.known_scoring("recall", classify=True) is None
    with pytest.raises(ValueError, match=r"scoring='rmse': for classification, expected one of"):
        metrics.named_scoring("rmse", classify=True)
    with pytest.raises(ValueError, match=r"scoring='f1': for regression, expected one of r2, rmse"):
        metrics.named_scoring("f1", classify=False)


@pytest.mark.parametrize(("n_rare", "name"), [(9, "roc_auc"), (10, "accuracy"), (50, "accuracy")])
def test_a_rare_class_is_ranked(n_rare, name):
    codes = (np.arange(100) < n_rare).astype(int)
    assert metrics.default_scoring(codes).name == name
    assert metrics.default_scoring(None).name == "r2"


def test_many_classes_of_one_size_are_not_rare():
    assert metrics.default_scoring(np.arange(120) % 12).name == "accuracy"
    assert metrics.default_scoring(np.minimum(np.arange(120), 11)).name == "roc_auc"
