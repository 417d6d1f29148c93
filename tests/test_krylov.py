"""Krylov spaces of all folds and alphas: beside exact solutions in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from fdgnn import limits
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.linear import KernelRidge, Ridge, krylov, ridge
from fdgnn.linear.krylov import PREDICTION_TOLERANCE, READOUT_TOLERANCE, SEARCH_TOLERANCE
from fdgnn.linear.products import SparseProducts, SymmetricMatrix, product_panels

ALPHAS = np.array([1e-3, 1e-2, 0.1, 1.0, 10.0])
ROUNDING = 1e-6  # of float64 and of the test's own solutions


@pytest.fixture(autouse=True)
def _iterate(monkeypatch):
    """Solve few samples as many are."""
    monkeypatch.setattr(ridge, "FEW_SAMPLES", 0)


def problem(n=90, P=140, q=3, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random_array((n, P), density=0.15, rng=rng, format="csr")
    X.data = np.ceil(3 * X.data)
    Y = X @ rng.normal(size=(P, q)) + 3 * rng.normal(size=(n, q)) + 5.0
    return sp.csr_array(X), Y, rng.uniform(0.3, 3.0, size=n)


def nested(n, n_outer=3, n_inner=4, seed=0):
    """Rows with samples that are outside of the training set, and one without."""
    rng = np.random.default_rng(seed)
    outer, rows = rng.permutation(n) % n_outer, []
    for o in range(n_outer):
        rows.append(np.where(outer == o, -1, rng.permutation(n) % n_inner))
    return np.array([*rows, rng.permutation(n) % n_inner])


def kernel_of(recipe, X):
    """The kernel matrix and the unit of alpha, from their definitions."""
    dense = X.toarray()
    if isinstance(recipe, Ridge):
        spread = ((dense - dense.mean(axis=0)) ** 2).sum(axis=1).mean()
        return dense @ dense.T, (spread or 1.0) if recipe.normalize else 1.0
    distance = ((dense[:, None] - dense[None]) ** 2).sum(axis=2)
    mean = distance.mean()
    return np.exp(-distance * (recipe.gamma / mean if mean else recipe.gamma)), 1.0


def exact(K, y, alpha, weights):
    """Coefficients and intercept of one regression, by one system of equations."""
    n = len(y)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + alpha * np.diag(1 / weights)
    system[:n, n] = system[n, :n] = 1.0
    solved = np.linalg.solve(system, np.append(y, 0.0))
    return solved[:n], solved[n]


def deviation(y, weights):
    """The weighted standard deviation."""
    level = np.average(y, weights=weights)
    return np.sqrt(np.average((y - level) ** 2, weights=weights))


def check(recipe, X, Y, alphas, folds, weights=None, slack=1.0):
    """Compare predictions and readouts with exact ones, within the bounds of the docstring."""
    found = recipe.solve(X, Y, alphas, folds, weights)
    assert found.predictions.shape == (len(folds), len(alphas), *Y.shape)
    K, unit = kernel_of(recipe, X)
    known = ~np.isnan(Y)
    own = np.ones(Y.shape) if weights is None else np.broadcast_to(weights.T, Y.T.shape).T
    for a, alpha in enumerate(np.asarray(alphas) * unit):
        readout = found.readout(alphas[a]).outputs(X)
        for j in range(Y.shape[1]):
            some = known[:, j]
            dual, b = exact(K[np.ix_(some, some)], Y[some, j], alpha, own[some, j])
            off = readout[some, j] - (K[np.ix_(some, some)] @ dual + b)
            size = deviation(Y[some, j], own[some, j])
            rms = np.sqrt(np.average(off**2, weights=own[some, j]))
            assert rms <= slack * READOUT_TOLERANCE * size + ROUNDING
            for row, fold in enumerate(folds):
                assert np.isnan(found.predictions[row, a, ~some, j]).all()
                for f in np.unique(fold):
                    train = (fold >= 0) & (fold != f) & some
                    test = (fold == f) & some
                    w = own[train, j]
                    dual, b = exact(K[np.ix_(train, train)], Y[train, j], alpha, w)
                    off = abs(
                        found.predictions[row, a, test, j] - K[np.ix_(test, train)] @ dual - b
                    )
                    apart = np.diag(K)[test] - 2 * K[np.ix_(test, train)] @ w / w.sum()
                    apart += w @ K[np.ix_(train, train)] @ w / w.sum() ** 2
                    norm = PREDICTION_TOLERANCE * deviation(Y[train, j], w) * np.sqrt(w.sum())
                    bound = norm * np.sqrt(np.maximum(apart, 0)) / (2 * np.sqrt(alpha))
                    assert (off <= slack * bound + ROUNDING).all()
    return found


RECIPES = [Ridge(), Ridge(normalize=False), KernelRidge(), KernelRidge(gamma=2.0)]


@pytest.mark.parametrize("recipe", RECIPES)
def test_predictions_and_readouts_are_within_their_bounds(recipe):
    X, Y, _ = problem()
    check(recipe, X, Y, ALPHAS, nested(90), slack=2.0)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
@pytest.mark.parametrize("by_output", [False, True])
def test_weights_and_missing_targets(recipe, by_output):
    X, Y, weights = problem(q=2)
    Y[::4, 0] = Y[1::5, 1] = np.nan
    given = np.stack([weights, weights[::-1]], axis=1) if by_output else weights
    check(recipe, X, Y, ALPHAS, nested(90), given, slack=2.0)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_every_alpha_of_the_paper(recipe):
    """The smallest ones are not solved by Krylov spaces, but exactly."""
    X, Y, _ = problem(n=40, q=1)
    check(recipe, X, Y, 10.0 ** np.arange(-8, 4), nested(40), slack=2.0)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
@pytest.mark.parametrize("n", [2, 3, 5, 9])
def test_tiny_training_sets(recipe, n):
    X, Y, _ = problem(n=n, q=1)
    check(recipe, X, Y, ALPHAS, (np.arange(n) % 2)[None], slack=2.0)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_features_that_are_all_alike_have_the_mean_target(recipe):
    X = sp.csr_array(np.tile([1.0, 0.0, 2.0], (30, 1)))
    Y, folds = np.arange(30.0)[:, None], (np.arange(30) % 5)[None]
    found = recipe.solve(X, Y, ALPHAS, folds)
    means = [Y[folds[0] != f].mean() for f in folds[0]]
    wanted = np.broadcast_to(means, (1, len(ALPHAS), 30))[..., None]
    np.testing.assert_allclose(found.predictions, wanted, rtol=1e-6)
    np.testing.assert_allclose(found.readout(0.1).outputs(X), 14.5, rtol=1e-6)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_constant_targets_are_predicted(recipe):
    X, Y, _ = problem(q=2)
    Y[:, 0] = 7.0
    found = recipe.solve(X, Y, ALPHAS, nested(90))
    np.testing.assert_allclose(found.predictions[..., 0], 7.0)
    np.testing.assert_allclose(found.readout(0.1).outputs(X)[:, 0], 7.0)


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_a_readout_takes_any_alpha_and_one_for_each_output(recipe):
    X, Y, _ = problem()
    found = recipe.solve(X, Y, ALPHAS, nested(90))
    each = np.array([0.02, 0.5, 30.0])
    outputs = found.readout(each).outputs(X)
    nothing = np.empty((0, 90), dtype=np.int64)
    for j, alpha in enumerate(each):
        alone = recipe.solve(X, Y[:, [j]], (), nothing).readout(alpha).outputs(X)[:, 0]
        off = np.sqrt(((outputs[:, j] - alone) ** 2).mean())
        assert off <= 2 * READOUT_TOLERANCE * Y[:, j].std() + ROUNDING


@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_systems_that_are_solved_in_turns_are_those_that_are_solved_together(recipe, monkeypatch):
    X, Y, _ = problem()
    together = recipe.solve(X, Y, ALPHAS, nested(90))
    monkeypatch.setattr(krylov, "_NUMBERS", 1)  # eight at a time
    in_turns = recipe.solve(X, Y, ALPHAS, nested(90))
    off = abs(together.predictions - in_turns.predictions).max()
    assert off <= 10 * PREDICTION_TOLERANCE * Y.std()
    found, wanted = (each.readout(0.1).outputs(X) for each in (in_turns, together))
    assert abs(found - wanted).max() <= 10 * READOUT_TOLERANCE * Y.std()


def test_alphas_share_the_steps(monkeypatch):
    X, Y, _ = problem()
    steps, step = [], krylov.Lanczos.step
    monkeypatch.setattr(
        krylov.Lanczos, "step", lambda self, apply: steps.append(1) or step(self, apply)
    )
    KernelRidge().solve(X, Y, ALPHAS[:1], nested(90))
    alone = len(steps)
    found = KernelRidge().solve(X, Y, ALPHAS, nested(90))
    assert len(steps) == 2 * alone
    found.readout(ALPHAS[-1])
    assert len(steps) == 2 * alone  # read off the space that is there


def squared_errors(Y, folds):
    """Scores of rows: minus the mean squared error of each output as a target."""
    return lambda rows, predictions: np.array(
        [
            -((p - Y) ** 2)[f >= 0].mean(axis=0)
            for f, p in zip(folds[rows], predictions, strict=True)
        ]
    )


@pytest.mark.parametrize("rounding", [None, 1.0])  # with 1.0, products in float32 never suffice
@pytest.mark.parametrize("recipe", [Ridge(), KernelRidge()])
def test_with_a_score_a_row_ends_a_decade_below_its_best_alpha(recipe, rounding, monkeypatch):
    if rounding:
        monkeypatch.setattr("fdgnn.linear.products._ROUNDING", rounding)
    X, Y, _ = problem(q=2)
    Y += np.random.default_rng(1).normal(scale=20, size=Y.shape)
    alphas, folds = np.array([1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0]), nested(90)
    score = squared_errors(Y, folds)
    every = recipe.solve(X, Y, alphas, folds).predictions
    found = recipe.solve(X, Y, alphas, folds, score=score).predictions
    left_out = 0
    for row in range(len(folds)):
        scores = np.array([score([row], each)[0] for each in every[[row]].swapaxes(0, 1)])
        least = alphas[scores.argmax(axis=0)].min() / 10 * (1 - 1e-6)
        tried = alphas >= least
        assert np.isnan(found[row, ~tried]).all()
        off = np.sqrt(np.nanmean((found[row, tried] - every[row, tried]) ** 2, axis=1))
        assert (off <= 2 * SEARCH_TOLERANCE * Y.std(axis=0)).all()
        alone = recipe.solve(X, Y, alphas, folds[[row]], score=squared_errors(Y, folds[[row]]))
        np.testing.assert_array_equal(np.isnan(alone.predictions[0]), np.isnan(found[row]))
        left_out += (~tried).sum()
    assert left_out  # else this test shows nothing


def test_the_best_alpha_of_a_search_is_solved_to_the_tolerance_of_predictions():
    X, Y, _ = problem(q=1)
    alphas, folds = np.array([0.01, 0.03]), nested(90)[-1:]
    scores = iter([0.0, 1.0])  # the smaller one is better
    wanted = check(KernelRidge(), X, Y, alphas, folds, slack=2.0).predictions
    found = KernelRidge().solve(X, Y, alphas, folds, score=lambda *_: np.array([[next(scores)]]))
    found = found.predictions
    assert abs(found - wanted).max() <= 2 * PREDICTION_TOLERANCE * Y.std()


def test_what_single_precision_rounds_too_much_is_solved_in_double(monkeypatch):
    X, Y, _ = problem(q=1)
    made, init = [], SymmetricMatrix.__init__
    monkeypatch.setattr(
        SymmetricMatrix,
        "__init__",
        lambda self, n, panels, dtype: made.append(dtype) or init(self, n, panels, dtype),
    )
    monkeypatch.setattr("fdgnn.linear.products._ROUNDING", 1.0)  # none will do
    check(KernelRidge(), X, Y, ALPHAS[2:], nested(90), slack=2.0)
    assert made == [np.float32, np.float64]


def test_what_is_not_solved_is_reported(monkeypatch):
    X, Y, _ = problem(q=1)
    monkeypatch.setattr(krylov, "MOST_STEPS", 3)
    with (
        limits.changed(FDGNN_MAX_KERNEL_BYTES=4 * 90**2),  # no room for an exact solution
        pytest.warns(ConvergenceWarning, match=r"alpha=0.001 was not solved .* in 3 steps"),
    ):
        KernelRidge().solve(X, Y, ALPHAS, nested(90))
    check(KernelRidge(), X, Y, ALPHAS, nested(90), slack=2.0)  # exact: there is memory


def test_a_symmetric_matrix_is_what_its_panels_are(monkeypatch):
    monkeypatch.setattr("fdgnn.linear.products._PANEL", 32)
    X, _, _ = problem()
    U = np.random.default_rng(0).normal(size=(4, 90))
    wanted = U @ (X @ X.T).toarray()
    for dtype, off in ((np.float64, 1e-12), (np.float32, 1e-6)):
        for rows in (X, X.toarray()):
            found = SymmetricMatrix(90, product_panels(rows), dtype)
            assert abs(found.times(U) - wanted).max() <= off * abs(wanted).max()
            error = np.linalg.norm(found.times(U) - wanted, axis=1) / np.linalg.norm(U, axis=1)
            assert (error <= found.rounding + 1e-9).all()


@pytest.mark.parametrize("n_dense", [0, 5, 30])
def test_columns_that_most_rows_have_are_multiplied_with_the_others(n_dense):
    rng = np.random.default_rng(0)
    X = sp.random_array((50, 30), density=0.2, rng=rng).toarray()
    X[:, :n_dense] = rng.normal(size=(50, n_dense))
    U = rng.normal(size=(3, 50))
    np.testing.assert_allclose(SparseProducts(sp.csr_array(X)).times(U), U @ X @ X.T, atol=1e-12)
