"""Readouts of targets with unknown entries: each output is that of its known samples alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fdgnn.readout import conjugate, dual, linear
from fdgnn.readout.dual import held_out_by_inverse
from fdgnn.readout.gaussian import GaussianRidge
from fdgnn.readout.groups import target_groups
from fdgnn.readout.linear import LinearRidge
from fdgnn.threads import one_blas_thread

ALPHAS = np.array([1e-2, 1.0])
N = 50


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


def test_outputs_with_the_same_unknown_entries_are_one_group():
    _, Y, weights = problem()
    found = [group.columns.tolist() for group in target_groups(Y)]
    assert found == [[0, 1], [2, 3], [4], [5]]
    assert [group.complete for group in target_groups(Y)] == [True, False, False, False]
    own = np.tile(weights[:, None], (1, 6))
    own[:, 1] = 1.0
    groups = target_groups(Y, own, np.array([1, 1, 1, 2, 1, 1.0]))
    assert [group.columns.tolist() for group in groups] == [[0], [1], [2], [3], [4], [5]]
    assert [group.alpha for group in groups] == [1, 1, 1, 2, 1, 1]


@pytest.mark.parametrize("weighted", ["no", "samples", "entries"])
@pytest.mark.parametrize("form", range(3))
def test_a_linear_fit_is_one_fit_for_each_output(form, weighted):
    X, Y, weights = problem()
    X = forms(X)[form]
    each = np.tile(weights[:, None], (1, 6)) * np.linspace(0.5, 2, 6)
    given = {"no": None, "samples": weights, "entries": each}[weighted]
    alphas = np.array([0.1, 0.2, 0.2, 0.3, 0.1, 0.4])
    found = LinearRidge().fit(X, Y, alphas, given)
    for j in range(6):
        known = ~np.isnan(Y[:, j])
        own = {"no": None, "samples": weights, "entries": each[:, j]}[weighted]
        own = None if own is None else own[known]
        alone = LinearRidge().fit(X[known], Y[known, j : j + 1], alphas[j], own)
        np.testing.assert_allclose(found.coef[j], alone.coef[0], atol=1e-9)
        np.testing.assert_allclose(found.intercept[j], alone.intercept[0], atol=1e-9)


def test_a_gaussian_fit_is_one_fit_for_each_output_with_a_common_unit():
    X, Y, weights = problem()
    found = GaussianRidge().fit(X, Y, 0.3, weights)
    unit = found.sharpness
    for j in range(6):
        known = ~np.isnan(Y[:, j])
        sub = GaussianRidge(gamma=1.0)
        mean = 1.0 / sub.fit(X[known], Y[known, :1], 1.0).sharpness  # of the known samples alone
        alone = GaussianRidge(gamma=unit * mean).fit(
            X[known], Y[known, j : j + 1], 0.3, weights[known]
        )
        assert alone.sharpness == pytest.approx(unit)
        np.testing.assert_allclose(found.outputs(X)[:, j], alone.outputs(X)[:, 0], atol=1e-8)
        assert (found.dual[~known, j] == 0).all()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("form", range(3))
def test_held_out_outputs_are_those_of_each_output_alone(form, weighted):
    X, Y, weights = problem()
    X, folds = forms(X)[form], folds_of()
    given = np.tile(weights[:, None], (1, 6)) if weighted else None
    found = LinearRidge().held_out(X, Y, ALPHAS, folds, given)
    assert (np.isnan(found) == np.isnan(Y)).all()
    for j in range(6):
        known = np.flatnonzero(~np.isnan(Y[:, j]))
        own = weights[known] if weighted else None
        alone = LinearRidge().held_out(X[known], Y[known, j : j + 1], ALPHAS, folds[:, known], own)
        np.testing.assert_allclose(found[:, :, known, j], alone[..., 0], atol=1e-7)


def test_held_out_outputs_of_many_samples(monkeypatch):
    X, Y, _ = problem()
    exact = LinearRidge().held_out(X, Y, ALPHAS, folds_of())
    monkeypatch.setattr(linear, "MOST_SAMPLES", 10)
    monkeypatch.setattr(conjugate, "TOLERANCE", 1e-9)
    found = LinearRidge().held_out(X, Y, ALPHAS, folds_of())
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_one_inverse_serves_all_targets_that_lack_little(monkeypatch):
    X, Y, _ = problem()
    K = (X @ X.T).toarray()
    sizes = []
    inverse = dual._inverse

    def counted(K, *arguments):
        sizes.append(len(K))
        return inverse(K, *arguments)

    monkeypatch.setattr(dual, "_inverse", counted)
    held_out_by_inverse(K, Y[:, :4], ALPHAS, folds_of())
    assert sizes == [N] * len(ALPHAS)
    sizes.clear()
    held_out_by_inverse(K, Y, ALPHAS, folds_of())
    assert sizes == [N] * 2 + [N // 2] * 2 + [12] * 2  # what lacks half or more has its own


def test_a_complete_target_is_what_it_was_bit_by_bit():
    X, Y, weights = problem()
    K, folds = (X @ X.T).toarray(), folds_of()
    both = held_out_by_inverse(K, Y[:, :2], ALPHAS, folds, weights)
    with one_blas_thread():
        for a, alpha in enumerate(ALPHAS):
            P = dual._inverse(K, alpha, weights)
            for row, fold in enumerate(folds):
                wanted = Y[:, :2] - dual._held_out_errors(P, P @ Y[:, :2], fold)
                np.testing.assert_array_equal(both[row, a], wanted)
