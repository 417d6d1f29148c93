r"""Ridge regression on sparse samples, by conjugate gradients.

`SparseRidge` makes no n x n or P x P matrix. With weights w of the samples, the root V of diag(w),
and weighted means x and y taken away, ``M = V (X - 1 x^T)`` and ``T = V (Y - 1 y^T)``, it solves
the smaller of two systems, where M is never formed::

    (M M^T + alpha I) a = T,   c = M^T a          if there are more columns than samples
    (M^T M + alpha I) c = M^T T                   otherwise

Unknowns are all pairs of a penalty and a target, side by side, so that X is read once for all of
them. A pair is done when its residual r is small enough to prove that its fitted values M c are off
by at most ``tol |T|``: r moves them by at most |r| in the first system, as M M^T (M M^T + alpha)^-1
makes nothing longer, and by at most |r| / (2 sqrt(alpha)) in the second, as
``r^T S^-1 (S - alpha I) S^-1 r <= |r|^2 / (4 alpha)`` for its matrix S.

Steps are few because of the preconditioner ``B B^T + (d + alpha) I``: a sketch of M M^T or M^T M
from its products with some random vectors, whose eigenvectors are nearly those of the largest
eigenvalues (Nystroem); d is the least of these eigenvalues, taken off the others in B. It is made
once of all samples with equal weights. Leaving samples out and other weights only change V, and
``V M M^T V`` has the sketch V B. The inverse is that of a small matrix, by Woodbury's formula.

`fit_some` solves the n x n system of `fdgnn.readout.dual` instead, with V = W^1/2::

    (V X X^T V + alpha I) z = V R,   a = V z,   for R = Y and R = 1

Its preconditioner is the Cholesky factor of the same matrix in single precision, in half the time
of one in double precision; products with the matrix go through X, in double precision, so a few
steps give a solution of double precision. A residual r moves the fitted values by at most |r|.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp
from scipy.linalg import lapack

from fdgnn.arrays import Floats, Ints
from fdgnn.exceptions import ConvergenceWarning
from fdgnn.readout.dual import fit_dual, with_intercept
from fdgnn.readout.products import row_products
from fdgnn.threads import one_blas_thread

TOLERANCE = 1e-3  # of fitted values, beside the size of the targets, for many samples
FINE_TOLERANCE = 1e-12  # the same for some thousand
MOST_STEPS = 2_000
_MOST_FINE_STEPS = 50  # from here on a factor in double precision is the faster way
_RANK = 100  # random vectors of a sketch: more of them take longer than the steps they save


class _Centered(NamedTuple):
    """The matrix M = V (X - 1 x^T)."""

    rows: sp.csr_array  # X
    columns: sp.csr_array  # X^T
    root: Floats  # diagonal of V, (n, 1)
    mean: Floats  # x (P,)

    def times(self, C: Floats) -> Floats:
        """``M C``."""
        return np.asarray(self.root * (self.rows @ C - self.mean @ C))

    def back(self, A: Floats) -> Floats:
        """``M^T A``."""
        V = self.root * A
        return np.asarray(self.columns @ V - np.outer(self.mean, V.sum(axis=0)))


class _Sketch(NamedTuple):
    """``B B^T + d I``, near a large symmetric matrix."""

    B: Floats  # (size, rank)
    d: float

    @classmethod
    def of(cls, product: Callable[[Floats], Floats], size: int) -> _Sketch:
        """Sketch the matrix of a product."""
        probes = np.random.default_rng(0).standard_normal((size, min(_RANK, size)))
        probes = np.linalg.qr(probes)[0]
        found = product(probes)
        B = found @ _inverse_root(probes.T @ found)
        values, vectors = np.linalg.eigh(B.T @ B)
        d = max(float(values[0]), 0.0)
        share = np.sqrt(np.maximum(values - d, 0.0) / np.maximum(values, np.finfo(float).tiny))
        return cls(B @ (vectors * share), d)

    def solver(self, shifts: Floats) -> Callable[[Floats, Ints], Floats]:
        """Give the inverses of ``B B^T + (d + shift) I``, a shift for each column."""
        values, vectors = np.linalg.eigh(self.B.T @ self.B)
        E, raised = self.B @ vectors, self.d + shifts

        def inverse(R: Floats, which: Ints) -> Floats:
            small = (E.T @ R) / (values[:, None] + raised[which])
            return np.asarray((R - E @ small) / raised[which])

        return inverse


def _inverse_root(matrix: Floats) -> Floats:
    """``matrix^-1/2`` without the directions that are nothing but rounding, as columns."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    real = values > 1e-12 * max(values[-1], np.finfo(float).tiny)
    return np.asarray(vectors[:, real] / np.sqrt(values[real]))


class SparseRidge:
    """Ridge regression on the rows of a sparse matrix, for any targets, weights and penalties."""

    def __init__(self, X: sp.csr_array) -> None:
        used = np.bincount(X.indices, minlength=X.shape[1])
        self.n_features = X.shape[1]
        self.used = np.flatnonzero(used)  # others weigh nothing
        self.rows = X[:, self.used]
        self.columns = self.rows.T.tocsr()
        self.dual = len(self.used) > X.shape[0]

    def fit(
        self, Y: Floats, alphas: Floats, weights: Floats | None = None
    ) -> tuple[Floats, Floats]:
        """Give weights (a, q, P) and intercepts (a, q) for each penalty.

        Samples whose weight is zero have no say.
        """
        w = np.ones(len(Y)) if weights is None else weights
        level = (w @ Y) / w.sum()
        root = np.sqrt(w)[:, None]
        M = _Centered(self.rows, self.columns, root, (self.rows.T @ w) / w.sum())
        with one_blas_thread():
            C = self._solved(M, root * (Y - level), alphas)  # (P used, a q)
        coef = np.zeros((len(alphas), Y.shape[1], self.n_features))
        coef[:, :, self.used] = C.T.reshape(len(alphas), Y.shape[1], len(self.used))
        return coef, level - coef[:, :, self.used] @ M.mean

    def _solved(self, M: _Centered, T: Floats, alphas: Floats) -> Floats:
        shifts = np.repeat(alphas, T.shape[1])
        size = np.tile(np.sqrt((T**2).sum(axis=0)), len(alphas))
        if self.dual:
            right, goal = T, TOLERANCE * size
        else:
            right, goal = M.back(T), 2 * TOLERANCE * np.sqrt(shifts) * size
        product, sketch = self._product(M), self._weighted_sketch(M.root)

        def shifted(C: Floats, which: Ints) -> Floats:
            return product(C) + shifts[which] * C

        right = np.tile(right, len(alphas))
        C, ready = _solve(shifted, sketch.solver(shifts), right, goal, MOST_STEPS)
        if not ready:
            warnings.warn(
                f"the readout was not solved to {TOLERANCE:g} in {MOST_STEPS} steps; "
                "a larger alpha helps",
                ConvergenceWarning,
                stacklevel=3,
            )
        return M.back(C) if self.dual else C

    def _weighted_sketch(self, root: Floats) -> _Sketch:
        share = float((root**2).sum()) / max(int((root > 0).sum()), 1)  # mean weight, but for 0
        mean = float((root**2).mean())
        B = self._sketch.B * (root if self.dual else np.sqrt(mean))
        return _Sketch(B, self._sketch.d * (share if self.dual else mean))

    @cached_property
    def _sketch(self) -> _Sketch:
        n = self.rows.shape[0]
        M = _Centered(self.rows, self.columns, np.ones((n, 1)), self.rows.mean(axis=0))
        return _Sketch.of(self._product(M), n if self.dual else len(self.used))

    def _product(self, M: _Centered) -> Callable[[Floats], Floats]:
        """``M M^T`` or ``M^T M``, whichever is smaller."""
        return (lambda A: M.times(M.back(A))) if self.dual else (lambda C: M.back(M.times(C)))


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
