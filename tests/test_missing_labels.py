"""Readouts of targets with missing values: each output is that of its known samples alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fdgnn.linear import KernelRidge, Ridge

ALPHAS = np.array([1e-2, 1.0])
N = 50
PLAIN = Ridge(normalize=False)
NO_FOLDS = np.empty((0, N), dtype=np.int64)


def problem(seed=0):
    """Sparse features, and six targets: two complete, two known alike, one half, one hardly."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((N, 90), density=0.2, rng=rng, format="csr")
    Y = X @ rng.normal(size=(90, 6)) + rng.normal(size=(N, 6))
    Y[rng.permutation(N)[:6][:, None], [2, 3]] = np.nan
    Y[rng.permutation(N)[: N // 2], 4] = np.nan
    Y[rng.permutation(N)[: N - 12], 5] = np.nan
    return X, Y, rng.uniform(0.5, 2.0, size=N)


def folds_of(seed=0):
    rng = np.random.default_rng(seed)
    rows = np.array([rng.permutation(N) % 4 for _ in range(2)])
    rows[0, rng.permutation(N)[:10]] = -1
    return rows


def forms(X):
    """Features in the forms that take different ways: sparse, wide dense and tall dense."""
    return X, X.toarray(), X.toarray()[:, :8]


def fit(recipe, X, Y, alpha, weights=None):
    """Train on all samples."""
    folds = NO_FOLDS[:, : len(Y)]
    return recipe.solve(X, Y, np.unique(alpha), folds, weights).readout(alpha)


def predicted(recipe, X, Y, folds, weights=None):
    """Out-of-fold predictions (n_rows, n_alphas, n, q)."""
    return recipe.solve(X, Y, ALPHAS, folds, weights).predictions


@pytest.mark.parametrize("weighted", ["no", "samples", "entries"])
@pytest.mark.parametrize("form", range(3))
def test_a_linear_fit_is_one_fit_for_each_output(form, weighted):
    X, Y, weights = problem()
    X = forms(X)[form]
    each = np.tile(weights[:, None], (1, 6)) * np.linspace(0.5, 2, 6)
    given = {"no": None, "samples": weights, "entries": each}[weighted]
    alphas = np.array([0.1, 0.2, 0.2, 0.3, 0.1, 0.4])
    found = fit(PLAIN, X, Y, alphas, given)
    for j in range(6):
        known = ~np.isnan(Y[:, j])
        own = {"no": None, "samples": weights, "entries": each[:, j]}[weighted]
        own = None if own is None else own[known]
        alone = fit(PLAIN, X[known], Y[known, j : j + 1], alphas[j], own)
        np.testing.assert_allclose(found.coef[j], alone.coef[0], atol=1e-9)
        np.testing.assert_allclose(found.intercept[j], alone.intercept[0], atol=1e-9)


def test_a_kernel_fit_is_one_fit_for_each_output_with_a_common_width():
    X, Y, weights = problem()
    found = fit(KernelRidge(), X, Y, 0.3, weights)
    (width,) = found.sharpness
    for j in range(6):
        known = ~np.isnan(Y[:, j])
        mean = 1.0 / fit(KernelRidge(), X[known], Y[known, :1], 1.0).sharpness.item()
        recipe = KernelRidge(gamma=width * mean)
        alone = fit(recipe, X[known], Y[known, j : j + 1], 0.3, weights[known])
        assert alone.sharpness.item() == pytest.approx(width)
        np.testing.assert_allclose(found.outputs(X)[:, j], alone.outputs(X)[:, 0], atol=1e-8)
        assert (found.dual[~known, j] == 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", range(3))
def test_out_of_fold_predictions_are_those_of_each_output_alone(form, weighted):
    X, Y, weights = problem()
    X, folds = forms(X)[form], folds_of()
    given = np.tile(weights[:, None], (1, 6)) if weighted else None
    found = predicted(PLAIN, X, Y, folds, given)
    for j in range(6):
        known = np.flatnonzero(~np.isnan(Y[:, j]))
        own = weights[known] if weighted else None
        alone = predicted(PLAIN, X[known], Y[known, j : j + 1], folds[:, known], own)
        np.testing.assert_allclose(found[:, :, known, j], alone[..., 0], atol=1e-6)
