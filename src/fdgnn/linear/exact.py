r"""Ridge regression in its dual form: for features known by their products K = X X^T alone.

With weights w of the samples, W = diag(w), and an unpenalized intercept b::

    minimize  sum_i w_i |y_i - f(x_i)|^2 + alpha ||f||^2,     f(x) = sum_j K(x, x_j) a_j + b

is solved by ``(K + alpha W^-1) a = Y - b`` and ``1^T a = 0``. With G = (K + alpha W^-1)^-1 and
g = G 1 that is ``a = G Y - g b^T`` where ``b^T = 1^T G Y / (1^T g)``.

Each regression of a cross-validation is solved by a Cholesky factor for each alpha: exactly, in
time that grows with the cube of the samples.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import linalg
from scipy.linalg import lapack

from fdgnn.arrays import Features, Floats, Ints

Folds = npt.NDArray[np.integer]
Mask = npt.NDArray[np.bool_]

#: Penalties below this share of K's mean diagonal are raised to it: inverses need some.
LEAST_PENALTY = 1e-9


def fit_dual(
    K: Floats, Y: Floats, alpha: float, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Compute the coefficients a (n, q) and the intercept b (q,)."""
    system, root = _system(K, alpha, weights)
    right = np.hstack([Y, np.ones((len(Y), 1))]) * root[:, None]
    solved = _solved(system, right) * root[:, None]
    GY, g = solved[:, :-1], solved[:, -1]
    intercept = GY.sum(axis=0) / g.sum()
    return GY - np.outer(g, intercept), intercept


def fit_exactly(
    K: Floats, Y: Floats, alpha: float | Floats, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Return the coefficients a (n, q), 0 where Y is NaN, and the intercepts b (q,)."""
    dual, intercept = np.zeros(Y.shape), np.empty(Y.shape[1])
    for group in target_groups(Y, weights, alpha):
        part, targets, own = group.pairs(K, Y)
        solved, intercept[group.columns] = fit_dual(part, targets, group.alpha, own)
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


def _system(K: Floats, alpha: float, weights: Floats | None) -> tuple[Floats, Floats]:
    """``W^1/2 K W^1/2 + alpha I``, and the square roots of the weights."""
    alpha = max(alpha, LEAST_PENALTY * float(np.trace(K)) / len(K))
    root = np.ones(len(K)) if weights is None else np.sqrt(weights)
    system = (
        np.array(K, order="F") if weights is None else np.asfortranarray(K * np.outer(root, root))
    )
    system.flat[:: len(K) + 1] += alpha
    return system, root


def _solved(system: Floats, right: Floats) -> Floats:
    """Solve a symmetric system, by least squares where rounding made it singular."""
    _, solution, info = lapack.dposv(np.array(system, order="F"), right, overwrite_a=True)
    if info:
        solution = linalg.lstsq(system, right, check_finite=False)[0]
    return np.asarray(solution)


# ---------------------------------------------------------------------- missing targets


class TargetGroup(NamedTuple):
    """Outputs that are solved together."""

    columns: Ints  # of the targets
    known: Mask  # (n,) the samples for which they are known
    weights: Floats | None  # (n,)
    alpha: float

    @property
    def complete(self) -> bool:
        """Whether all samples are known."""
        return bool(self.known.all())

    def part(self, X: Features, Y: Floats) -> tuple[Features, Floats, Floats | None]:
        """Features, targets and weights of the known samples."""
        if self.complete and len(self.columns) == Y.shape[1]:  # most often
            return X, Y, self.weights
        return X if self.complete else X[self.known], *self._targets(Y)

    def pairs(self, K: Floats, Y: Floats) -> tuple[Floats, Floats, Floats | None]:
        """Products of pairs, targets and weights of the known samples."""
        return K if self.complete else K[np.ix_(self.known, self.known)], *self._targets(Y)

    def _targets(self, Y: Floats) -> tuple[Floats, Floats | None]:
        targets = Y if len(self.columns) == Y.shape[1] else Y[:, self.columns]
        if self.complete:
            return targets, self.weights
        return targets[self.known], None if self.weights is None else self.weights[self.known]


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
    if known.all() and np.ndim(alpha) == 0 and (weights is None or weights.ndim == 1):
        return [TargetGroup(np.arange(Y.shape[1]), known[:, 0], weights, float(alpha))]
    each = np.broadcast_to(np.asarray(alpha, dtype=np.float64), Y.shape[1:])
    groups: dict[Any, list[int]] = {}
    for column, its_alpha in enumerate(each.tolist()):
        own = weights[:, column].tobytes() if weights is not None and weights.ndim == 2 else b""
        groups.setdefault((known[:, column].tobytes(), own, its_alpha), []).append(column)
    found = []
    for columns in groups.values():
        first, own_weights = columns[0], weights
        if weights is not None and weights.ndim == 2:
            own_weights = np.ascontiguousarray(weights[:, first])
        group = TargetGroup(np.array(columns), known[:, first], own_weights, float(each[first]))
        found.append(group)
    return found
