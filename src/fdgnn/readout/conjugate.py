r"""Ridge regression on many sparse samples, by conjugate gradients: no n x n or P x P matrix.

For weights w that sum to n, with weighted means x and y taken away, it solves::

    (Z^T W Z + alpha I) c = Z^T W T,       Z = X - 1 x^T,   T = Y - 1 y^T

where Z is never formed: ``Z c = X c - 1 (x^T c)``. Columns are all pairs of a penalty and a target,
solved side by side, so that X is read once for all of them; the diagonal of the matrix is the
preconditioner. A column is done when its residual r has ``|r| <= tol sqrt(alpha) |T|_W``. Then its
fitted values are off by at most ``tol |T|_W / 2``: with M the matrix above, the error M^-1 r of c
moves them by the root of ``r^T M^-1 (M - alpha I) M^-1 r``, which is at most |r|^2 / (4 alpha).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Floats
from fdgnn.exceptions import ConvergenceWarning

TOLERANCE = 1e-3  # of fitted values, beside the size of the targets
MOST_STEPS = 2_000


def fit_sparse(
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

    def product(C: Floats, shift: Floats) -> Floats:
        V = w[:, None] * (rows @ C - mean @ C)
        return np.asarray(columns @ V - np.outer(mean, V.sum(axis=0)) + shift * C)

    right = columns @ (w[:, None] * T)  # the weighted mean of T is zero
    diagonal = (rows.multiply(rows).T @ w) - n * mean**2
    size = np.sqrt((w[:, None] * T**2).sum(axis=0))
    goal = TOLERANCE * np.sqrt(shift) * np.tile(size, len(alphas))
    C = _solve(product, np.tile(right, len(alphas)), diagonal, shift, goal)
    coef = np.zeros((len(alphas), q, X.shape[1]))
    coef[:, :, used] = C.T.reshape(len(alphas), q, len(used))
    return coef, level - coef[:, :, used] @ mean


def _solve(
    product: Callable[[Floats, Floats], Floats],
    right: Floats,
    diagonal: Floats,
    shift: Floats,
    goal: Floats,
) -> Floats:
    """Conjugate gradients on all columns at once; a column that is at its goal is put aside."""
    solution = np.zeros_like(right)
    open_columns = np.arange(right.shape[1])
    C, R = np.zeros_like(right), right.copy()
    D = S = R / (diagonal[:, None] + shift)
    size = (R * S).sum(axis=0)
    for _ in range(MOST_STEPS):
        ready = np.sqrt((R**2).sum(axis=0)) <= goal[open_columns]
        if ready.any():
            solution[:, open_columns[ready]] = C[:, ready]
            C, R, D, size = C[:, ~ready], R[:, ~ready], D[:, ~ready], size[~ready]
            open_columns = open_columns[~ready]
            if len(open_columns) == 0:
                return solution
        own = shift[open_columns]
        product_D = product(D, own)
        step = size / (D * product_D).sum(axis=0)
        C += step * D
        R -= step * product_D
        S = R / (diagonal[:, None] + own)
        before, size = size, (R * S).sum(axis=0)
        D = S + (size / before) * D
    warnings.warn(
        f"the readout was not solved to {TOLERANCE:g} in {MOST_STEPS} steps; a larger alpha helps",
        ConvergenceWarning,
        stacklevel=2,
    )
    solution[:, open_columns] = C
    return solution
