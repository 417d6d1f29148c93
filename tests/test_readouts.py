"""Readouts: dual, features in chunks, Gaussian; weights; held-out outputs."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.integrate import quad_vec
from sklearn.kernel_ridge import KernelRidge as KernelRidgeOfSklearn
from sklearn.linear_model import Ridge as RidgeOfSklearn

from fdgnn.arrays import spread
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.folds import TRAIN
from fdgnn.linear import Chunks, KernelRidge, Ridge, passes
from fdgnn.linear.closed_form import fit_dual, held_out_exactly
from fdgnn.linear.products import row_products
from fdgnn.scale.chunks import sparse_rows

ALPHAS = np.array([1e-3, 0.1, 10.0])


def fit_readout(readout, X, Y, alpha, weights=None):
    """Fit a readout with a given alpha, one for all outputs or (q,)."""
    return readout.solve(X, Y, (), np.empty((0, len(Y)), dtype=np.int64), weights).readout(alpha)


def held_out(recipe, X, Y, alphas, folds, weights=None):
    return recipe.solve(X, Y, alphas, folds, weights).predictions


def counts(n=60, P=200, seed=0, density=0.1):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, P), density=density, rng=rng, format="csr")
    X.data = np.ceil(3 * X.data)
    return X


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = counts()
    Y = np.stack([X @ rng.normal(size=200), rng.normal(size=60)], axis=1)
    return X, Y, rng.uniform(0.2, 3.0, size=60)


def nested(n, n_outer, n_inner, seed=0):
    rng = np.random.default_rng(seed)
    outer = rng.permutation(np.arange(n) % n_outer)
    rows = np.tile(rng.permutation(np.arange(n) % n_inner), (n_outer + 1, 1))
    for o in range(n_outer):
        rows[o, outer == o] = -1
    return rows  # the last row has no test samples


# ---------------------------------------------------------------------- one fit


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_dual_is_ridge_regression(data, alpha):
    X, Y, weights = data
    for w in (None, weights):
        ours = fit_readout(Ridge(normalize=False), X, Y, alpha, w)
        theirs = RidgeOfSklearn(alpha=alpha, solver="svd").fit(X.toarray(), Y, sample_weight=w)
        np.testing.assert_allclose(ours.coef, theirs.coef_, atol=1e-8)
        np.testing.assert_allclose(ours.intercept, theirs.intercept_, atol=1e-8)
        np.testing.assert_allclose(ours.outputs(X), theirs.predict(X.toarray()), atol=1e-8)


def test_weights_in_dense_features_are_ridge_regression(data):
    X, Y, weights = data
    for dense in (X.toarray(), X.toarray()[:, :20]):
        ours = fit_readout(Ridge(normalize=False), dense, Y, 0.1, weights)
        theirs = RidgeOfSklearn(alpha=0.1, solver="svd").fit(dense, Y, sample_weight=weights)
        np.testing.assert_allclose(ours.outputs(dense), theirs.predict(dense), atol=1e-8)


def test_whole_weights_are_repeated_samples(data):
    X, Y, _ = data
    times = np.random.default_rng(2).integers(1, 4, size=len(Y))
    again = np.repeat(np.arange(len(Y)), times)
    for recipe in (Ridge(normalize=False), KernelRidge()):
        weighted = fit_readout(recipe, X, Y, 0.3, times.astype(float))
        if isinstance(recipe, KernelRidge):
            continue  # repeated samples change the unit of distance
        np.testing.assert_allclose(
            weighted.outputs(X), fit_readout(recipe, X[again], Y[again], 0.3).outputs(X), atol=1e-8
        )


# ---------------------------------------------------------------------- features in chunks


class HeldChunks(Chunks):
    """Features in memory, cut into chunks."""

    def __init__(self, X, size=60, n_bytes=None):
        self.shape, self.sparse, self.n_bytes = X.shape, sp.issparse(X), n_bytes
        self.chunks = [X[i : i + size] for i in range(0, X.shape[0], size)]
        self.size, self.steps = size, 0

    def total(self, add, shapes, *rows):
        sums = tuple(map(np.zeros, shapes))
        for start, X in zip(itertools.count(0, self.size), self.chunks, strict=False):
            add(sums, self.features(X), *(each[start : start + self.size] for each in rows))
        return sums

    def gather(self, function, *rows):
        return [
            function(self.features(X), *(each[start : start + self.size] for each in rows))
            for start, X in zip(itertools.count(0, self.size), self.chunks, strict=False)
        ]

    def features(self, X):
        return sparse_rows(X) if self.sparse else X

    def progress(self, n_steps, n_left):
        self.steps += 1


def in_chunks(X, Y, alphas, weights=None, **options):
    """Weights (a, q, P) and intercepts (a, q) by passes."""
    path = Ridge(normalize=False).solve(
        HeldChunks(X, **options), Y, (), np.empty((0, len(Y)), dtype=np.int64), weights
    )
    readouts = [path.readout(alpha) for alpha in alphas]
    return np.stack([r.coef for r in readouts]), np.stack([r.intercept for r in readouts])


@pytest.mark.parametrize("n_columns", [20, 200])  # fewer than samples, and more
@pytest.mark.parametrize("given", ["alike", "weighted"])
def test_passes_are_within_their_tolerance(data, n_columns, given):
    X, Y, weights = data
    X, w = X[:, :n_columns], {"alike": None, "weighted": weights}[given]
    coef, intercept = in_chunks(X, Y, ALPHAS, w)
    scale = np.ones(60) if w is None else w
    level = np.average(Y, axis=0, weights=scale)
    size = np.sqrt((scale[:, None] * (Y - level) ** 2).sum(axis=0))
    for a, alpha in enumerate(ALPHAS):
        exact = RidgeOfSklearn(alpha=alpha, solver="svd").fit(X.toarray(), Y, scale)
        off = (X @ coef[a].T + intercept[a]) - exact.predict(X.toarray())
        error = np.sqrt((scale[:, None] * off**2).sum(axis=0))
        assert (error <= passes.TOLERANCE * size * 1.01).all()


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_in_chunks_have_the_predictions_of_memory(data, monkeypatch, dense, weighted):
    monkeypatch.setattr(passes, "TOLERANCE", 1e-9)
    X, Y, weights = data
    X = X[:, :30].toarray() if dense else X
    Y, w, folds = with_unknown(Y), weights if weighted else None, np.arange(60)[None] % 3
    wanted = Ridge().solve(X, Y, ALPHAS, folds, w)
    for size, n_bytes in ((60, None), (7, None), (7, 1)):  # the last: one system after another
        chunks = HeldChunks(X, size, n_bytes)
        assert chunks.spread == pytest.approx(spread(X))
        found = Ridge().solve(chunks, Y, ALPHAS, folds, w)
        np.testing.assert_allclose(found.predictions, wanted.predictions, atol=1e-5)
        ours, theirs = (path.readout(np.array([0.1, 0.2, 0.1, 1.0])) for path in (found, wanted))
        np.testing.assert_allclose(ours.outputs(X), theirs.outputs(X), atol=1e-5)


@pytest.mark.parametrize("dense", [False, True])
def test_samples_without_a_fold_train_and_are_not_predicted(data, monkeypatch, dense):
    monkeypatch.setattr(passes, "TOLERANCE", 1e-9)
    X, Y, _ = data
    X = X[:, :30].toarray() if dense else X
    folds = np.arange(60)[None] % 3
    wanted = Ridge().solve(X, Y, ALPHAS, folds).predictions
    some = np.where(folds == 0, 0, TRAIN)
    found = Ridge().solve(HeldChunks(X, 7), Y, ALPHAS, some).predictions
    np.testing.assert_allclose(found[:, :, folds[0] == 0], wanted[:, :, folds[0] == 0], atol=1e-5)
    assert np.isnan(found[:, :, folds[0] > 0]).all()


def test_all_alphas_take_the_steps_of_the_smallest(data):
    X, Y, _ = data
    folds, steps = np.arange(60)[None] % 3, []
    for alphas in (ALPHAS[:1], ALPHAS):
        chunks = HeldChunks(X)
        Ridge().solve(chunks, Y, alphas, folds)
        steps.append(chunks.steps)
    assert steps[0] == steps[1]


def test_passes_keep_few_vectors():
    X = sp.random_array((400, 20_000), density=0.01, format="csr", rng=np.random.default_rng(0))
    Y = X[:, :1].toarray() + X.sum(axis=1)[:, None]
    chunks = HeldChunks(X, 100)
    chunks.column_sums  # noqa: B018
    most = passes.least_bytes(20_000)
    chunks.n_bytes = most
    tracemalloc.start()
    Ridge().solve(chunks, Y, np.logspace(-2, 1, 8), np.arange(400)[None] % 5)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1.2 * most


def test_passes_that_do_not_end_are_told(data, monkeypatch):
    X, Y, _ = data
    monkeypatch.setattr(passes, "MOST_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match=r"not solved to a relative .* 0.001 in 2 steps"):
        in_chunks(X, Y, ALPHAS)


# ---------------------------------------------------------------------- kernels


@pytest.mark.parametrize("recipe", [Ridge(normalize=False), KernelRidge()])
def test_weights_are_those_of_kernel_ridge(data, recipe):
    X, Y, weights = data
    ours = fit_readout(recipe, X, Y, 0.3, weights)
    kernel = (X @ X.T).toarray()
    if isinstance(recipe, KernelRidge):
        squares = np.diag(kernel)
        kernel = np.exp(-ours.sharpness * (squares[:, None] + squares - 2 * kernel))
    theirs = KernelRidgeOfSklearn(alpha=0.3, kernel="precomputed")
    theirs.fit(kernel, Y - ours.intercept, sample_weight=weights)
    expected = theirs.predict(kernel) + ours.intercept
    np.testing.assert_allclose(ours.outputs(X), expected, atol=1e-8)
    assert abs(expected - fit_readout(recipe, X, Y, 0.3).outputs(X)).max() > 1e-3  # weights count


def test_the_gaussian_is_kernel_ridge_on_centered_targets(data):
    X, Y, _ = data
    ours = fit_readout(KernelRidge(), X, Y, 0.3)
    dense = X.toarray()
    distance = ((dense[:, None] - dense[None]) ** 2).sum(axis=2)
    assert ours.sharpness == pytest.approx(1 / distance.mean())
    kernel = np.exp(-distance / distance.mean())
    theirs = KernelRidgeOfSklearn(alpha=0.3, kernel="precomputed").fit(kernel, Y - ours.intercept)
    np.testing.assert_allclose(ours.outputs(X), theirs.predict(kernel) + ours.intercept, atol=1e-8)
    np.testing.assert_allclose(ours.dual.sum(axis=0), 0.0, atol=1e-10)


def test_the_gaussian_refuses_more_than_its_limit():
    X = sp.csr_array((12_000, 4))
    with pytest.raises(ValueError, match=r"12,000 graphs .*MAX_KERNEL_BYTES\); choose Ridge"):
        fit_readout(KernelRidge(), X, np.zeros((12_000, 1)), 1.0)


def test_a_relative_penalty_does_not_depend_on_the_unit(data):
    X, Y, _ = data
    recipe = Ridge()
    one, other = fit_readout(recipe, X, Y, 0.1), fit_readout(recipe, X * 7, Y, 0.1)
    np.testing.assert_allclose(one.outputs(X), other.outputs(X * 7), atol=1e-8)
    spread = ((X.toarray() - X.toarray().mean(axis=0)) ** 2).sum(axis=1).mean()
    np.testing.assert_allclose(
        one.coef, fit_readout(Ridge(normalize=False), X, Y, 0.1 * spread).coef, atol=1e-9
    )


# ---------------------------------------------------------------------- held out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("recipe", [Ridge(normalize=False), Ridge(), KernelRidge()])
def test_held_out_outputs_are_those_of_models_that_were_fitted_without(data, recipe, weighted):
    X, Y, weights = data
    w = weights if weighted else None
    folds = nested(60, 4, 3)
    found = held_out(recipe, X, Y, ALPHAS, folds, w)
    assert found.shape == (5, 3, 60, 2)
    if isinstance(recipe, KernelRidge):
        distance = ((X.toarray()[:, None] - X.toarray()[None]) ** 2).sum(axis=2)
        K, unit = np.exp(-distance / distance.mean()), 1.0
    else:
        spread = ((X.toarray() - X.toarray().mean(axis=0)) ** 2).sum(axis=1).mean()
        K, unit = X.toarray() @ X.toarray().T, spread if recipe.normalize else 1.0
    for row, fold in enumerate(folds):
        for f in np.unique(fold):
            train, left = (fold >= 0) & (fold != f), fold == f
            for a, alpha in enumerate(ALPHAS):
                own = None if w is None else w[train]
                dual, b = fit_dual(K[np.ix_(train, train)], Y[train], alpha * unit, own)
                wanted = K[np.ix_(left, train)] @ dual + b
                np.testing.assert_allclose(found[row, a, left], wanted, rtol=1e-6, atol=1e-7)


def test_held_out_outputs_with_weights_in_dense_features(data):
    X, Y, weights = data
    folds = nested(60, 2, 3)
    for dense in (X.toarray(), X.toarray()[:, :20]):
        K = dense @ dense.T
        wanted = held_out_exactly(K, Y, ALPHAS, folds, weights)
        found = held_out(Ridge(normalize=False), dense, Y, ALPHAS, folds, weights)
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-7)


def test_samples_that_repeat_do_not_break_the_closed_form():
    X = sp.csr_array(np.repeat(counts(10, 30).toarray(), 6, axis=0))  # singular without a penalty
    Y = np.random.default_rng(0).normal(size=(60, 1))
    found = held_out(Ridge(normalize=False), X, Y, np.array([0.0, 1e-3]), nested(60, 3, 3))
    assert np.isfinite(found).all()


# ---------------------------------------------------------------------- products, directions


def test_rows_that_differ_by_rounding_alone_have_the_mean_target():
    # Which of their products differ depends on the BLAS of a machine, so that all do here.
    rng = np.random.default_rng(0)
    X = rng.normal(size=50) * (1.0 + 1e-15 * rng.normal(size=(30, 50)))
    Y, fold = np.arange(30.0)[:, None], (np.arange(30) % 5)[None]
    ours = fit_readout(KernelRidge(), X, Y, 1e-3)
    assert ours.sharpness == 1.0
    np.testing.assert_allclose(ours.outputs(X), 14.5)
    found = held_out(KernelRidge(), X, Y, ALPHAS, fold)[0]
    means = [Y[fold[0] != f].mean() for f in fold[0]]
    np.testing.assert_allclose(found, np.broadcast_to(means, (3, 30))[..., None])


def test_products_of_rows_are_the_same_dense_and_sparse():
    X = sp.hstack(
        [counts(50, 300, density=0.02), counts(50, 40, seed=3, density=0.6)], format="csr"
    )
    np.testing.assert_allclose(row_products(sp.csr_array(X)), (X @ X.T).toarray())
    np.testing.assert_allclose(row_products(X.toarray()), (X @ X.T).toarray())


def test_directions_of_the_gaussian_are_mean_gradients(data):
    X, Y, _ = data
    readout = fit_readout(KernelRidge(), X, Y, 0.3)
    signs = np.array([[1.0, 0.0], [0.0, -1.0], [0.5, 2.0]])
    some = X[:3]
    dense, examples = some.toarray(), X.toarray()
    everywhere = readout.directions(dense, signs)
    found = readout.directions(some, signs).toarray()  # only where x is not zero
    np.testing.assert_allclose(found, np.where(dense != 0, everywhere, 0.0), atol=1e-12)
    for x, sign, direction in zip(dense, signs, everywhere, strict=True):

        def gradient(t, x=x, sign=sign):
            apart = t * x - examples
            closeness = np.exp(-readout.sharpness * (apart**2).sum(axis=1))
            return -2 * readout.sharpness * ((readout.dual @ sign) * closeness) @ apart

        wanted = quad_vec(gradient, 0, 1)[0]
        np.testing.assert_allclose(direction, wanted, atol=1e-7)
        moved = (readout.outputs(sp.csr_array(x[None])) - readout.base_outputs())[0] @ sign
        assert direction @ x == pytest.approx(moved, abs=1e-9)


def test_directions_of_a_line_are_its_weights(data):
    X, Y, _ = data
    readout = fit_readout(Ridge(normalize=False), X, Y, 0.3)
    signs = np.array([[1.0, 0.0], [0.0, -1.0]])
    np.testing.assert_allclose(readout.directions(X[:2], signs), signs @ readout.coef)
    np.testing.assert_allclose(readout.outputs(sp.csr_array((1, 200)))[0], readout.base_outputs())


# ---------------------------------------------------------------------- unknown targets


def with_unknown(Y):
    """Four outputs; the first and the third are unknown for the same samples."""
    Y = np.hstack([Y, 2 * Y + 1])
    Y[::3, 0] = Y[::3, 2] = Y[1::5, 1] = np.nan
    return Y


@pytest.mark.parametrize("recipe", [Ridge(normalize=False), KernelRidge()])
def test_outputs_with_unknown_entries_are_those_of_the_known_samples_alone(data, recipe):
    X, Y, _ = data
    Y, folds = with_unknown(Y), nested(60, 3, 3)
    fitted, held = fit_readout(recipe, X, Y, 0.1), held_out(recipe, X, Y, ALPHAS, folds)
    for column, known in enumerate(~np.isnan(Y).T):
        some = (X[known], Y[known][:, [column]])
        if isinstance(recipe, Ridge):  # a Gaussian takes its width from all samples
            alone = fit_readout(recipe, *some, 0.1).outputs(X)[:, 0]
            np.testing.assert_allclose(fitted.outputs(X)[:, column], alone, rtol=1e-9)
            alone = held_out(recipe, *some, ALPHAS, folds[:, known])
            np.testing.assert_allclose(held[:, :, known, column], alone[..., 0], rtol=1e-6)
        assert np.isnan(held[:, :, ~known, column]).all()
