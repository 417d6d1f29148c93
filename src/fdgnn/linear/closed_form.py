r"""Ridge regression in closed form: one fit, and all out-of-fold predictions of a cross-validation.

For features X (n, P), targets Y (n, q), sample weights w, W = diag(w), and regularization strength
alpha, with an intercept b that is not regularized::

    minimize  sum_i w_i |y_i - f(x_i)|^2 + alpha ||f||^2

**By features.** ``f(x) = W_Y x + b`` solves the normal equations in the smaller of the two
dimensions. The model is linear in Y, ``Y_hat = H Y``, and leaving a set F of samples out changes
nothing but a small linear system, because the left-out residuals
e_F = Y_F - Y_hat_F(without F) satisfy::

    (I - H_FF) e_F = (Y - H Y)_F                                               (block formula)

Proof: the model without F is also the minimizer with F put back under targets replaced by its
own predictions Y_F - e_F, so Y_F - e_F = (H Y)_F - H_FF e_F.

**By products** K = X X^T of samples, or a kernel. ``f(x) = sum_j K(x, x_j) a_j + b`` is solved by
``(K + alpha W^-1) a = Y - b`` and ``1^T a = 0``. With G = (K + alpha W^-1)^-1 and g = G 1 that is
``a = G Y - g b^T`` where ``b^T = 1^T G Y / (1^T g)``. Each regression of a cross-validation is
solved by a Cholesky factor for each alpha: exactly, in time that grows with the cube of the
samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.linalg import lapack

from fdgnn.arrays import Floats, Ints

Folds = npt.NDArray[np.integer]

LARGE_FOLD = 64  # samples from which one system at a time is faster than a stack of them
#: Penalties below this share of K's mean diagonal are raised to it: inverses need some.
LEAST_PENALTY = 1e-9


def fit_ridge(
    X: Floats, Y: Floats, alpha: float, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return weights (q, P) and intercept (q,) of one ridge regression on dense features.

    Normal equations in the smaller of the two dimensions; if rounding makes them singular, the
    singular value decomposition.
    """
    n, P = X.shape
    if weights is not None and n <= P:
        dual, intercept = fit_dual(X @ X.T, Y, alpha, weights)
        return dual.T @ X, intercept
    if weights is not None:
        return Moments.of(X, Y, weights).solve(alpha)
    mean, level = X.sum(axis=0) / n, Y.sum(axis=0) / n
    Z, T = X - mean, Y - level
    W = _solve(Z.T @ Z, Z.T @ T, alpha) if n > P else None
    if n <= P:
        solution = _solve(Z @ Z.T, T, alpha)
        W = None if solution is None else Z.T @ solution
    if W is None:
        U, s, Vt = linalg.svd(Z, full_matrices=False)
        W = Vt.T @ ((s / (s**2 + alpha))[:, None] * (U.T @ T))
    return W.T, level - mean @ W


def held_out_predictions(
    X: Floats, Y: Floats, alphas: Floats, fold: Folds, weights: Floats | None = None
) -> Floats:
    """Compute out-of-fold predictions of ridge regression, for each alpha.

    Parameters
    ----------
    X : (n, P)
    Y : (n, q)
    alphas : (a,)
    fold : (n,) int
        The samples' folds; -1 marks samples outside the training set, which are predicted by the
        regression on all folds.
    weights : (n,), optional

    Returns
    -------
    (a, n, q) float64
    """
    if weights is not None:  # the dual form if samples are fewer than features
        if len(X) <= X.shape[1]:
            return np.asarray(held_out_exactly(X @ X.T, Y, alphas, fold[None], weights)[0])
        return _by_gram_matrices(X, Y, alphas, fold, weights)
    train = np.flatnonzero(fold >= 0)
    fold_size = np.bincount(fold[train]).max()
    # The work of one held-out system, in multiplications: fold by fold, or P by P.
    P = X.shape[1]
    hat = fold_size**2 * min(P, len(train)) + fold_size**3 / 3
    few_samples = len(train) - fold_size <= P
    form = _by_block_formula if few_samples or hat < P**3 / 3 else _by_gram_matrices
    return form(X - X[train].mean(axis=0), Y, alphas, fold)


# ---------------------------------------------------------------------- small folds: block formula


def _by_block_formula(X: Floats, Y: Floats, alphas: Floats, fold: Folds) -> Floats:
    """Solve by one eigendecomposition, and one system of the fold's size for each (fold, alpha).

    With more training samples than features, X = Z V^T and Z^T Z = diag(s)::

        I - H = I - 1/n - Z diag(1 / (s + alpha)) Z^T

    Else H comes near I for small alpha, and the difference would cancel. There, with
    X X^T = U diag(s) U^T, and the columns of U centered to take out the intercept::

        I - H = U diag(alpha / (s + alpha)) U^T
    """
    train, test = np.flatnonzero(fold >= 0), np.flatnonzero(fold < 0)
    n, level = len(train), Y[train].mean(axis=0)
    X_T, T = X[train], Y[train] - level
    tall = n - np.bincount(fold[train]).max() > X.shape[1]
    s, V = linalg.eigh(X_T.T @ X_T if tall else X_T @ X_T.T, check_finite=False)
    Z = X_T @ V if tall else V - V.mean(axis=0)
    gain = 1.0 / (np.maximum(s, 0.0) + alphas[:, None])  # (a, rank)
    shrink = gain if tall else alphas[:, None] * gain
    moments = Z.T @ T  # (rank, q)
    fitted = Z @ (shrink[:, :, None] * moments)  # (a, n, q)
    residuals = T - fitted if tall else fitted

    predictions = np.empty((len(alphas), *Y.shape))
    order, sizes = np.argsort(fold[train], kind="stable"), np.bincount(fold[train])
    starts = np.cumsum(sizes) - sizes
    for size in np.unique(sizes[sizes > 0]):  # all folds of one size together
        members = order[starts[sizes == size][:, None] + np.arange(size)]  # (folds, m)
        errors = _left_out_errors(Z[members], shrink, residuals[:, members], tall, n)
        predictions[:, train[members]] = Y[train[members]] - errors
    if len(test):
        to_test = X[test] @ V if tall else (X[test] @ X_T.T) @ V
        predictions[:, test] = level + to_test @ (gain[:, :, None] * moments)
    return predictions


def _left_out_errors(Z: Floats, shrink: Floats, residuals: Floats, tall: bool, n: int) -> Floats:
    """Solve the block formula for folds of one size, Z (folds, m, rank): (a, folds, m, q)."""
    centered = np.eye(Z.shape[1]) - 1.0 / n
    if Z.shape[1] <= LARGE_FOLD:  # in few calls
        product = (Z * shrink[:, None, None, :]) @ Z.transpose(0, 2, 1)
        return np.asarray(np.linalg.solve(centered - product if tall else product, residuals))
    errors = np.empty_like(residuals)
    for a, f in np.ndindex(residuals.shape[:2]):  # symmetric products in cache, Cholesky factors
        half = Z[f] * np.sqrt(shrink[a])
        product = half @ half.T  # NumPy sees the symmetry, which halves the work
        system = centered - product if tall else product
        solution = _solve(system, residuals[a, f], 0.0)
        errors[a, f] = np.linalg.solve(system, residuals[a, f]) if solution is None else solution
    return errors


# ---------------------------------------------------------------------- large folds: Gram matrices


def _by_gram_matrices(
    X: Floats, Y: Floats, alphas: Floats, fold: Folds, weights: Floats | None = None
) -> Floats:
    """Gram matrix of a training set = total - fold; one Cholesky factor for each (fold, alpha)."""
    members = [np.flatnonzero(fold == f) for f in range(-1, int(fold.max()) + 1)]
    own = [None if weights is None else weights[rows] for rows in members]
    parts = [Moments.of(X[rows], Y[rows], w) for rows, w in zip(members, own, strict=True)]
    total = Moments(*(sum(column) for column in zip(*parts[1:], strict=True)))
    predictions = np.empty((len(alphas), *Y.shape))
    for f, (rows, part) in enumerate(zip(members, parts, strict=True)):
        if len(rows):
            training = total if f == 0 else total.without(part)
            predictions[:, rows] = training.predict(X[rows], alphas)
    return predictions


class Moments(NamedTuple):
    """Moments of a training set for ridge regression; they add over parts."""

    n: float  # samples, or the sum of their weights
    x: Floats  # (P,)    sum of rows
    y: Floats  # (q,)
    xx: Floats  # (P, P)  Gram matrix
    xy: Floats  # (P, q)

    @classmethod
    def of(cls, X: Floats, Y: Floats, weights: Floats | None = None) -> Moments:
        """Sum over samples."""
        if weights is None:
            return cls(len(X), X.sum(axis=0), Y.sum(axis=0), X.T @ X, X.T @ Y)
        Z = X * weights[:, None]
        return cls(float(weights.sum()), Z.sum(axis=0), weights @ Y, Z.T @ X, Z.T @ Y)

    def with_part(self, part: Moments) -> Moments:
        """Return the moments of these samples and a part together."""
        pairs: Any = zip(self, part, strict=True)
        return Moments(*(own + other for own, other in pairs))

    def without(self, part: Moments) -> Moments:
        """Return the moments of the samples that are not in a part."""
        pairs: Any = zip(self, part, strict=True)
        return Moments(*(own - other for own, other in pairs))

    def predict(self, X: Floats, alphas: Floats) -> Floats:
        """Predictions (a, m, q) of the regressions on this training set."""
        mean, level = self.x / self.n, self.y / self.n
        gram, moments = self._centered()
        W = np.stack([_solve_or_decompose(gram, moments, alpha) for alpha in alphas])
        return level + (X - mean) @ W

    def solve(self, alpha: float) -> tuple[Floats, Floats]:
        """Return weights (q, P) and intercept (q,)."""
        W = _solve_or_decompose(*self._centered(), alpha)
        return W.T, (self.y - self.x @ W) / self.n

    def _centered(self) -> tuple[Floats, Floats]:
        gram = self.xx - np.outer(self.x, self.x / self.n)
        return gram, self.xy - np.outer(self.x, self.y / self.n)


# ---------------------------------------------------------------------- one system


def _solve(gram: Floats, right: Floats, alpha: float) -> Floats | None:
    """Solve ``(gram + alpha I) W = right`` by Cholesky, or None if rounding made it indefinite."""
    shifted = gram.copy(order="F")
    shifted.flat[:: len(gram) + 1] += alpha
    _, solution, info = lapack.dposv(shifted, right, overwrite_a=True)
    return None if info else solution


def _solve_or_decompose(gram: Floats, right: Floats, alpha: float) -> Floats:
    solution = _solve(gram, right, alpha)
    if solution is None:
        s, V = linalg.eigh(gram)
        solution = V @ ((V.T @ right) / (np.maximum(s, 0.0) + alpha)[:, None])
    return solution


# ---------------------------------------------------------------------- products of samples


def fit_dual(
    K: Floats, Y: Floats, alpha: float, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute the coefficients a (n, q) and the intercept b (q,)."""
    alpha = max(alpha, LEAST_PENALTY * float(np.trace(K)) / len(K))
    root = np.ones(len(K)) if weights is None else np.sqrt(weights)
    system = K if weights is None else K * np.outer(root, root)  # W^1/2 K W^1/2
    right = np.hstack([Y, np.ones((len(Y), 1))]) * root[:, None]
    solution = _solve(system, right, alpha)
    if solution is None:
        shifted = system + alpha * np.eye(len(K))
        solution = linalg.lstsq(shifted, right, check_finite=False)[0]
    solution = solution * root[:, None]
    GY, g = solution[:, :-1], solution[:, -1]
    intercept = GY.sum(axis=0) / g.sum()
    return GY - np.outer(g, intercept), intercept


def fit_exactly(
    K: Floats, Y: Floats, alpha: float | Floats, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the coefficients a (n, q), 0 where Y is NaN, and the intercepts b (q,)."""
    dual, intercept = np.zeros(Y.shape), np.empty(Y.shape[1])
    for group in target_groups(Y, weights, alpha):
        rows, targets, own = group.part(Y)
        solved, intercept[group.columns] = fit_dual(K[rows][:, rows], targets, group.alpha, own)
        dual[np.ix_(group.known, group.columns)] = solved
    return dual, intercept


def held_out_exactly(
    K: Floats, Y: Floats, alphas: Floats, folds: Folds, weights: Floats | None = None
) -> Floats:
    """Predict each sample by the regression that has not seen its fold, for all rows of folds.

    Parameters
    ----------
    K : (n, n)
        Products of the samples' features.
    Y : (n, q)
        NaN where a target is unknown.
    alphas : (a,)
    folds : (n_rows, n) int
        Each row is a cross-validation: -1 marks samples outside its training set, which are
        predicted by the regression on all its folds.
    weights : (n,) or (n, q), optional
        Above zero.

    Returns
    -------
    (n_rows, a, n, q) float64
        NaN where the target is unknown.
    """
    found = np.full((len(folds), len(alphas), *Y.shape), np.nan)
    for group in target_groups(Y, weights):
        for row, fold in enumerate(folds):
            for f in np.unique(fold[group.known]):
                test = np.flatnonzero(group.known & (fold == f))
                train = np.flatnonzero(group.known & (fold >= 0) & (fold != f))
                own = None if group.weights is None else group.weights[train]
                part, targets = K[np.ix_(train, train)], Y[np.ix_(train, group.columns)]
                for a, alpha in enumerate(alphas):
                    if len(train) == 0:  # as by Krylov spaces
                        dual, intercept = targets, np.zeros(targets.shape[1])
                    else:
                        dual, intercept = fit_dual(part, targets, float(alpha), own)
                    outputs = K[np.ix_(test, train)] @ dual + intercept
                    found[row, a, test[:, None], group.columns] = outputs
    return found


# ---------------------------------------------------------------------- missing targets


class TargetGroup(NamedTuple):
    """Outputs that are solved together."""

    columns: Ints  # of the targets
    known: npt.NDArray[np.bool_]  # (n,) the samples for which they are known
    weights: Floats | None  # (n,)
    alpha: float

    def part(self, Y: Floats) -> tuple[Any, Floats, Floats | None]:
        """Return the rows of known samples, and the targets and weights of these samples."""
        rows: Any = slice(None) if self.known.all() else np.flatnonzero(self.known)
        targets = Y if len(self.columns) == Y.shape[1] else Y[:, self.columns]
        return rows, targets[rows], None if self.weights is None else self.weights[rows]


def target_groups(
    Y: Floats, weights: Floats | None = None, alpha: float | Floats = 0.0
) -> list[TargetGroup]:
    """Group the outputs of targets (n, q).

    Parameters
    ----------
    Y : (n, q)
    weights : (n,) or (n, q), optional
        Of all samples, or of the samples of each output; above zero, also where Y is unknown.
    alpha : float or (q,)
    """
    known = ~np.isnan(Y)
    each = np.full(Y.shape[1], alpha, dtype=np.float64).tolist()
    if known.all() and len(set(each)) == 1 and (weights is None or weights.ndim == 1):
        return [TargetGroup(np.arange(Y.shape[1]), known[:, 0], weights, each[0])]
    groups: dict[Any, list[int]] = {}
    for column, its_alpha in enumerate(each):
        own = weights[:, column].tobytes() if weights is not None and weights.ndim == 2 else b""
        groups.setdefault((known[:, column].tobytes(), own, its_alpha), []).append(column)
    found = []
    for columns in groups.values():
        first, own_weights = columns[0], weights
        if weights is not None and weights.ndim == 2:
            own_weights = np.ascontiguousarray(weights[:, first])
        group = TargetGroup(np.array(columns), known[:, first], own_weights, each[first])
        found.append(group)
    return found
