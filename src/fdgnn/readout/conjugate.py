r"""Ridge regression on sparse samples, by conjugate gradients.

`fit_many` makes no n x n or P x P matrix. For weights w that sum to n, with weighted means x and y
taken away, it solves::

    (Z^T W Z + alpha I) c = Z^T W T,       Z = X - 1 x^T,   T = Y - 1 y^T

where Z is never formed: ``Z c = X c - 1 (x^T c)``. Columns are all pairs of a penalty and a target,
solved side by side, so that X is read once for all of them; the diagonal of the matrix is the
preconditioner. A column is done when its residual r has ``|r| <= tol sqrt(alpha) |T|_W``. Then its
fitted values are off by at most ``tol |T|_W / 2``: with M the matrix above, the error M^-1 r of c
moves them by the root of ``r^T M^-1 (M - alpha I) M^-1 r``, which is at most |r|^2 / (4 alpha).

`fit_some` solves the n x n system of `fdgnn.readout.dual` instead, with V = W^1/2::

    (V X X^T V + alpha I) z = V R,   a = V z,   for R = Y and R = 1

Its preconditioner is the Cholesky factor of the same matrix in single precision, in half the time
of one in double precision; products with the matrix go through X, in double precision, so a few
steps give a solution of double precision. A residual r moves the fitted values by at most |r|.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from fdgnn.arrays import Floats, Ints
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.readout.dual import fit_dual, with_intercept
from fdgnn.readout.products import row_products

TOLERANCE = 1e-3  # of fitted values, beside the size of the targets, for many samples
FINE_TOLERANCE = 1e-12  # the same for some thousand
MOST_STEPS = 2_000
_MOST_FINE_STEPS = 50  # from here on a factor in double precision is the faster way


def fit_many(
    X: sp.csr_array, Y: Floats, alphas: Floats, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Give weights (a, q, P) and intercepts (a, q) for each penalty."""
    n, q = Y.shape
    used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))  # others weigh nothing
    rows = X[:, used]
    w = np.ones(n) if weights is None else weights * (n / weights.sum())
    mean, level = (rows.T @ w) / n, (w @ Y) / n
    T = Y - level
    columns = rows.T.tocsr()
    shift = np.repeat(alphas, q)
    diagonal = ((rows.multiply(rows).T @ w) - n * mean**2)[:, None]

    def product(C: Floats, which: Ints) -> Floats:
        V = w[:, None] * (rows @ C - mean @ C)
        return np.asarray(columns @ V - np.outer(mean, V.sum(axis=0)) + shift[which] * C)

    def precondition(R: Floats, which: Ints) -> Floats:
        return np.asarray(R / (diagonal + shift[which]))

    right = columns @ (w[:, None] * T)  # the weighted mean of T is zero
    size = np.sqrt((w[:, None] * T**2).sum(axis=0))
    goal = TOLERANCE * np.sqrt(shift) * np.tile(size, len(alphas))
    C, ready = _solve(product, precondition, np.tile(right, len(alphas)), goal, MOST_STEPS)
    if not ready:
        warnings.warn(
            f"the readout was not solved to {TOLERANCE:g} in {MOST_STEPS} steps; "
            "a larger alpha helps",
            ConvergenceWarning,
            stacklevel=2,
        )
    coef = np.zeros((len(alphas), q, X.shape[1]))
    coef[:, :, used] = C.T.reshape(len(alphas), q, len(used))
    return coef, level - coef[:, :, used] @ mean


def fit_some(
    X: sp.csr_array, Y: Floats, alpha: float, weights: Floats | None = None
) -> tuple[Floats, Floats]:
    """Give the dual coefficients a (n, q) and the intercept b (q,), as `fit_dual` does."""
    root = np.ones((len(Y), 1)) if weights is None else np.sqrt(weights)[:, None]
    rows = X if weights is None else sp.csr_array(X.multiply(root))
    columns = rows.T.tocsr()
    system = row_products(rows, np.float32)
    system.flat[:: len(system) + 1] += np.float32(alpha)
    factor, failed = lapack.spotrf(system.T, lower=False, clean=False, overwrite_a=True)
    if not failed:

        def product(C: Floats, _: Ints) -> Floats:
            return np.asarray(rows @ (columns @ C) + alpha * C)

        def precondition(R: Floats, _: Ints) -> Floats:
            size = np.sqrt((R**2).mean(axis=0)) + np.finfo(float).tiny  # far from single's limits
            return np.asarray(lapack.spotrs(factor, R / size, lower=False)[0] * size)

        right = np.hstack([Y, np.ones((len(Y), 1))]) * root
        goal = FINE_TOLERANCE * np.sqrt((right**2).sum(axis=0))
        solved, ready = _solve(product, precondition, right, goal, _MOST_FINE_STEPS)
        if ready:
            return with_intercept(solved * root)
    return fit_dual(row_products(X), Y, alpha, weights)  # too nearly singular for single precision


def _solve(
    product: Callable[[Floats, Ints], Floats],
    precondition: Callable[[Floats, Ints], Floats],
    right: Floats,
    goal: Floats,
    most_steps: int,
) -> tuple[Floats, bool]:
    """Conjugate gradients on all columns at once; a column that is at its goal is put aside.

    Both functions get some columns and which ones they are. Gives the solution, and whether all
    columns came to their goals.
    """
    solution = np.zeros_like(right)
    which = np.arange(right.shape[1])
    C, R = np.zeros_like(right), right.copy()
    D = S = precondition(R, which)
    size = (R * S).sum(axis=0)
    for _ in range(most_steps):
        ready = np.sqrt((R**2).sum(axis=0)) <= goal[which]
        if ready.any():
            solution[:, which[ready]] = C[:, ready]
            C, R, D, size = C[:, ~ready], R[:, ~ready], D[:, ~ready], size[~ready]
            which = which[~ready]
            if len(which) == 0:
                return solution, True
        product_D = product(D, which)
        step = size / (D * product_D).sum(axis=0)
        C += step * D
        R -= step * product_D
        S = precondition(R, which)
        before, size = size, (R * S).sum(axis=0)
        D = S + (size / before) * D
    solution[:, which] = C
    return solution, False
