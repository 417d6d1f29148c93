r"""Ridge regression in its dual form: for features known by their products K = X X^T alone.

With weights w of the samples, W = diag(w), and an unpenalized intercept b::

    minimize  sum_i w_i |y_i - f(x_i)|^2 + alpha ||f||^2,     f(x) = sum_j K(x, x_j) a_j + b

is solved by ``(K + alpha W^-1) a = Y - b`` and ``1^T a = 0``. With G = (K + alpha W^-1)^-1 and
g = G 1 that is ``a = P Y`` where ``P = G - g g^T / (1^T g)``.

Leaving a set F of samples out changes nothing but a small system: their errors are
``e_F = (P_FF)^-1 (P Y)_F``, whatever F is. So one inverse G for each penalty gives the held-out
predictions of all folds, and of all folds of folds: F is then an outer fold T together with an
inner fold I. T is eliminated once, by the Cholesky factor L of P_TT::

    V = L^-1 P_T:            e_I = (P_II - V_I^T V_I)^-1 ((P Y)_I - V_I^T L^-1 (P Y)_T)

Samples whose target is unknown are left out in the same way: they join T, whatever Y has there. So
several targets with different unknown entries still need one inverse for each penalty, and for
each of them a Cholesky factor of the size of what it lacks.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
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


def held_out_by_inverse(
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
    predictions = np.full((len(folds), len(alphas), *Y.shape), np.nan)
    for groups in by_weights(target_groups(Y, weights)):
        shared = _sharing_pays(groups, len(folds))
        together = list(itertools.compress(groups, shared))
        if together:
            _by_one_inverse(K, Y, alphas, folds, together, predictions)
        for group in itertools.compress(groups, ~shared):
            rows = np.flatnonzero(group.known)
            part, targets, own = group.pairs(K, Y)
            found = held_out_by_inverse(part, targets, alphas, folds[:, rows], own)
            predictions[:, :, rows[:, None], group.columns] = found
    return predictions


def _sharing_pays(groups: list[TargetGroup], n_rows: int) -> Mask:
    """Return which groups should share one inverse.

    In multiplications, an inverse takes n^3. To leave m of n samples out takes m^3 / 3 for a factor
    and m^2 (n - m) for V, in each row of folds.
    """
    n = len(groups[0].known)
    known = np.array([group.known.sum() for group in groups], dtype=np.float64)
    missing = n - known
    leaving_out = n_rows * (missing**3 / 3 + missing**2 * known)
    shared = leaving_out < known**3
    pays = n**3 + leaving_out[shared].sum() <= (known[shared] ** 3).sum()
    return np.asarray(shared & pays)


def _by_one_inverse(
    K: Floats, Y: Floats, alphas: Floats, folds: Folds, groups: list[TargetGroup], out: Floats
) -> None:
    """Write the predictions for some groups, which have the same weights, into `out`."""
    targets = np.nan_to_num(Y, nan=0.0) if np.isnan(Y).any() else Y
    for a, alpha in enumerate(alphas):
        P = _inverse(K, float(alpha), groups[0].weights)
        PY = P @ targets
        for row, fold in enumerate(folds):
            for group in groups:
                mine = slice(None) if len(group.columns) == Y.shape[1] else group.columns
                left_out = fold if group.complete else np.where(group.known, fold, -1)
                found = targets[:, mine] - _held_out_errors(P, PY[:, mine], left_out)
                found[~group.known] = np.nan
                out[row, a][:, mine] = found


def _held_out_errors(P: Floats, PY: Floats, fold: Folds) -> Floats:
    """Errors of one cross-validation, (n, q)."""
    test = np.flatnonzero(fold < 0)
    errors = np.empty_like(PY)
    order = np.argsort(fold, kind="stable")[len(test) :]
    V: Floats = np.empty((0, len(order)))
    shift: Floats = np.zeros((0, PY.shape[1]))
    if len(test):
        L = linalg.cholesky(P[np.ix_(test, test)], lower=True, check_finite=False)
        shift = linalg.solve_triangular(L, PY[test], lower=True, check_finite=False)
        errors[test] = linalg.solve_triangular(L, shift, lower=True, trans=1, check_finite=False)
        rows = P[np.ix_(test, order)]
        V = linalg.solve_triangular(L, rows, lower=True, check_finite=False, overwrite_b=True)
    ends = np.cumsum(np.bincount(fold[order]))
    for begin, end in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True):
        if begin == end:  # a fold of which no target is known
            continue
        members, v = order[begin:end], V[:, begin:end]
        system = P[np.ix_(members, members)] - v.T @ v
        errors[members] = _solved(system, PY[members] - v.T @ shift)
    return errors


def _system(K: Floats, alpha: float, weights: Floats | None) -> tuple[Floats, Floats]:
    """``W^1/2 K W^1/2 + alpha I``, and the square roots of the weights."""
    alpha = max(alpha, LEAST_PENALTY * float(np.trace(K)) / len(K))
    root = np.ones(len(K)) if weights is None else np.sqrt(weights)
    system = (
        np.array(K, order="F") if weights is None else np.asfortranarray(K * np.outer(root, root))
    )
    system.flat[:: len(K) + 1] += alpha
    return system, root


def _inverse(K: Floats, alpha: float, weights: Floats | None) -> Floats:
    """P of the docstring above."""
    system, root = _system(K, alpha, weights)
    factor, info = lapack.dpotrf(system, lower=True, overwrite_a=True)
    G, _ = lapack.dpotri(factor, lower=True, overwrite_c=True)
    if info:  # not even the least penalty makes it positive definite: K is none of products
        raise ValueError("the features have products that are not finite, or far too large")
    _mirror(G)
    if weights is not None:
        G *= np.outer(root, root)
    g = G.sum(axis=0)
    G -= np.outer(g, g / g.sum())
    return np.asarray(G)


def _mirror(lower: Floats) -> None:
    """Copy what is below the diagonal to what is above it, in blocks that stay in the cache."""
    n, size = len(lower), 256
    for i in range(0, n, size):
        end = min(i + size, n)
        block = np.tril(lower[i:end, i:end])
        lower[i:end, i:end] = block + np.tril(block, -1).T
        for j in range(end, n, size):
            lower[i:end, j : j + size] = lower[j : j + size, i:end].T


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
    return [_group(np.array(columns), known, weights, each) for columns in groups.values()]


def _group(columns: Ints, known: Mask, weights: Floats | None, alphas: Floats) -> TargetGroup:
    first = columns[0]
    if weights is not None and weights.ndim == 2:
        weights = np.ascontiguousarray(weights[:, first])
    return TargetGroup(columns, known[:, first], weights, float(alphas[first]))


def by_weights(groups: list[TargetGroup]) -> Iterator[list[TargetGroup]]:
    """Group targets that differ only in which labels are known."""
    found: dict[bytes, list[TargetGroup]] = {}
    for group in groups:
        key = b"" if group.weights is None else group.weights.tobytes()
        found.setdefault(key, []).append(group)
    yield from found.values()
