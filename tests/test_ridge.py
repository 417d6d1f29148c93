"""The closed forms against one fit after another, scikit-learn's and a float64 SVD's."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import Ridge

import reference
from fdgnn.linear.closed_form import (
    _by_block_formula,
    _by_gram_matrices,
    fit_ridge,
    held_out_predictions,
)

ALPHAS = 10.0 ** np.arange(-8, 4)


def problem(n, P, q=1, kind="plain", seed=0):
    rng = np.random.default_rng(seed)
    X = np.tanh(rng.normal(size=(n, 6)) @ rng.normal(size=(6, P)) + 0.1 * rng.normal(size=(n, P)))
    if kind == "collinear":
        X[:, P // 2 :] = X[:, : P - P // 2]
    if kind == "constant":
        X[:, :: max(P // 4, 1)] = 0.7
    if kind == "saturated":
        X = np.sign(X)
    Y = np.where(rng.normal(size=(n, q)) + 2 * X[:, :1] > 0, 1.0, -1.0)
    fold = rng.permutation(np.arange(n) % 7) - 1  # fold -1 is the outer test set
    return X, Y, fold


def one_by_one(X, Y, fold, fit):
    """Held-out predictions by refitting for each fold and alpha."""
    predictions = np.empty((len(ALPHAS), *Y.shape))
    for f in range(-1, fold.max() + 1):
        train = fold >= 0 if f < 0 else (fold >= 0) & (fold != f)
        for a, alpha in enumerate(ALPHAS):
            W, b = fit(X[train], Y[train], alpha)
            predictions[a, fold == f] = X[fold == f] @ W.T + b
    return predictions


def sklearn_fit(X, Y, alpha):
    model = Ridge(alpha=alpha).fit(X, Y)
    return model.coef_.reshape(Y.shape[1], -1), np.atleast_1d(model.intercept_)


SHAPES = [(60, 12), (60, 60), (40, 90), (300, 30)]
KINDS = ["plain", "collinear", "constant", "saturated"]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("q", [1, 3])
@pytest.mark.filterwarnings("ignore:Ill-conditioned matrix")
@pytest.mark.filterwarnings("ignore:Singular matrix")
def test_held_out_predictions_are_as_exact_as_refitting(shape, kind, q):
    X, Y, fold = problem(*shape, q=q, kind=kind)
    exact = one_by_one(X, Y, fold, reference.tikhonov)
    error = np.abs(one_by_one(X, Y, fold, sklearn_fit) - exact).max(axis=(1, 2))
    ours = np.abs(held_out_predictions(X, Y, ALPHAS, fold) - exact).max(axis=(1, 2))
    assert (ours <= 10 * error + 1e-6).all(), (ours, error)
    assert (ours[ALPHAS >= 1e-3] < 1e-8).all()


@pytest.mark.parametrize("form", [_by_block_formula, _by_gram_matrices])
@pytest.mark.parametrize("shape", SHAPES)
def test_both_forms_agree_with_refitting(form, shape):
    X, Y, fold = problem(*shape, q=2)
    if form is _by_gram_matrices and shape[0] <= shape[1]:
        pytest.skip("used for more samples than features only")
    exact = one_by_one(X, Y, fold, reference.tikhonov)
    ours = form(X - X[fold >= 0].mean(axis=0), Y, ALPHAS, fold)
    np.testing.assert_allclose(ours[2:], exact[2:], atol=1e-5)


def test_folds_of_very_different_size_and_missing_numbers():
    X, Y, _ = problem(50, 8)
    fold = np.array([0] * 30 + [2] * 1 + [3] * 9 + [-1] * 10)
    exact = one_by_one(X, Y, fold, reference.tikhonov)
    np.testing.assert_allclose(held_out_predictions(X, Y, ALPHAS, fold), exact, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("alpha", [1e-4, 1e-1, 10.0])
def test_fit_equals_scikit_learn(shape, alpha):
    X, Y, _ = problem(*shape, q=2)
    W, b = fit_ridge(X, Y, alpha)
    W_sk, b_sk = sklearn_fit(X, Y, alpha)
    np.testing.assert_allclose(W, W_sk, atol=1e-6)
    np.testing.assert_allclose(b, b_sk, atol=1e-6)


def test_fit_survives_exactly_singular_problems():
    X, Y, _ = problem(50, 10, kind="collinear")
    W, b = fit_ridge(X, Y, 0.0)
    assert np.isfinite(W).all()
    assert np.isfinite(b).all()


def test_two_copies_of_the_data_equal_half_the_penalty():
    X, Y, _ = problem(30, 5)
    once = fit_ridge(X, Y, 0.5)
    twice = fit_ridge(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), 1.0)
    np.testing.assert_allclose(once[0], twice[0], rtol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["plain", "collinear"])
def test_sparse_features_give_what_dense_ones_give(shape, kind):
    X, Y, fold = problem(*shape, q=2, kind=kind)
    X[np.abs(X) < 0.5] = 0.0
    wide = sp.csr_array(np.pad(X, ((0, 0), (0, 200))))  # more features than samples, most empty
    alphas = ALPHAS[ALPHAS >= 1e-3]
    exact = held_out_predictions(X, Y, alphas, fold)
    for sparse in (sp.csr_array(X), wide):
        np.testing.assert_allclose(held_out_predictions(sparse, Y, alphas, fold), exact, atol=1e-7)
        W, b = fit_ridge(sparse, Y, 0.1)
        W_dense, b_dense = fit_ridge(X, Y, 0.1)
        np.testing.assert_allclose(W[:, : shape[1]], W_dense, atol=1e-9)
        np.testing.assert_allclose(b, b_dense, atol=1e-9)
        assert (W[:, shape[1] :] == 0).all()
