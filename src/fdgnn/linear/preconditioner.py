r"""A preconditioner for ridge regression on many sparse samples, made of a few thousand of them.

The matrix of the system, ``M^T M + alpha I`` for centered samples M (n, P), is near that of m rows
drawn from M. With these rows as B, and a level mu that stands for what they do not know::

    M^T M  is about  n / m (B^T B + mu I),

    (B^T B + mu I)^-1 = (I - B^T (B B^T + mu I)^-1 B) / mu              (Woodbury)

The m x m matrix is factored once and serves all folds and penalties. Steps are few because the
largest eigenvalues of M^T M, a million times the smallest ones, are known well from few rows. More
rows save steps and take longer in each of them. Single precision would take half of the memory, but
what it rounds off would grow from step to step until parts in another order, or on a cluster,
gave a solution that differs by as much as the tolerance allows.

A row is drawn by a hash of the row itself, so that its place, the order of parts and their sizes
change nothing. Equal rows are drawn together, and kept once with how often they are there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import blas, lapack

from fdgnn.arrays import Floats, Ints, blocks, mixed_bits
from fdgnn.linear.blocks import Passes, SamplePart
from fdgnn.linear.products import row_products

MOST_ROWS = 5_000  # a matrix of 200 MB, two of them while it is made
_SHARE = 0.25  # of the samples, at most
_LEVEL = 1 / 16  # mu, beside the mean squared length of a centered row
_ROUNDING = 1e-9  # the same beside the length of a row as it is, where all rows are nearly alike
_ODD = np.uint64(0x9E3779B97F4A7C15)

Keys = npt.NDArray[np.uint64]


def rows_within(n_bytes: int | None) -> int:
    """Give how many rows are drawn if there is so much memory, or enough, for what they make."""
    return MOST_ROWS if n_bytes is None else min(MOST_ROWS, int((n_bytes / bytes_of(1)) ** 0.5))


def bytes_of(n_rows: int) -> int:
    """Memory of two matrices of products."""
    return 2 * 8 * n_rows**2


# ---------------------------------------------------------------------- the rows


class DrawnRows(NamedTuple):
    """Different rows, and how often each is there."""

    X: sp.csr_array
    times: Floats
    keys: Keys

    @classmethod
    def of(cls, X: sp.csr_array, times: Floats, keys: Keys) -> DrawnRows:
        """Keep equal rows once, in the order of their keys."""
        kept, first, number = np.unique(keys, return_index=True, return_inverse=True)
        return cls(X[first], np.bincount(number, times, len(kept)).astype(np.float64), kept)


@dataclass(frozen=True)
class _DrawnOf:
    """The rows of a part whose hash is below a bound; samples that train nothing are left out."""

    share: float
    n_columns: int

    def __call__(self, part: SamplePart) -> DrawnRows:
        keys = _row_keys(part)
        bound = np.uint64(min(int(self.share * 2.0**64), 2**64 - 1))
        rows = np.flatnonzero((keys <= bound) & (part.fold >= 0))
        X = part.rows(self.n_columns)[rows]
        return DrawnRows.of(X, np.ones(len(rows)), keys[rows])


def _row_keys(part: SamplePart) -> Keys:
    """64 bits of each row, equal for equal rows, also where a count is written as so many ones."""
    each = mixed_bits((part.indices.astype(np.uint64) + np.uint64(1)) * _ODD)
    if len(part.values):
        counts = (part.values >= 0) & (part.values < 2**53) & (part.values % 1 == 0)
        bits = part.values.astype(np.float64).view(np.uint64)
        each *= np.where(counts, np.where(counts, part.values, 0).astype(np.uint64), bits)
    before = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(each, dtype=np.uint64)])
    return mixed_bits(before[part.indptr[1:]] - before[part.indptr[:-1]])


def draw_rows(passes: Passes, n: float, most: int) -> DrawnRows:
    """Draw about `most` rows, or a share of the `n` samples if these are few."""
    share = min(most / max(n, 1.0), _SHARE)
    found = passes.gather(_DrawnOf(share, passes.n_columns))
    return DrawnRows.of(
        sp.csr_array(sp.vstack([rows.X for rows in found])),
        np.concatenate([rows.times for rows in found]),
        np.concatenate([rows.keys for rows in found]),
    )


# ---------------------------------------------------------------------- the matrix


class RowPreconditioner:
    """``n / m (B^T B + mu I)`` for rows B that were drawn.

    Parameters
    ----------
    rows : drawn rows
    used : (p,) int
        The columns that are solved for, in their order.
    mean : (p,) float64
        The mean sample.
    n : float
        The number of samples.
    """

    def __init__(self, rows: DrawnRows, used: Ints, mean: Floats, n: float) -> None:
        root = np.sqrt(rows.times)
        B: Any = rows.X[:, used].multiply(root[:, None])
        self.B = B.tocsr()  # before the mean is taken away
        self.B.sum_duplicates()
        self.columns = self.B.T.tocsr()
        self.root, self.mean = root, mean
        self.times = n / max(float(rows.times.sum()), 1.0)
        self.mu, self.factor = self._factored() if len(root) else (1.0, np.empty((0, 0)))

    def _factored(self) -> tuple[float, Floats]:
        """The level mu, and the Cholesky factor of the centered products of the rows plus mu."""
        K = row_products(self.B)
        along, square = self.B @ self.mean, self.mean @ self.mean
        for rows in blocks(len(K)):  # a second matrix of this size is never there
            K[rows] -= np.outer(along[rows], self.root)
            K[rows] -= np.outer(self.root[rows], along)
            K[rows] += square * np.outer(self.root[rows], self.root)
        mu = max(_LEVEL * float(np.trace(K)), _ROUNDING * float((self.B.data**2).sum()))
        mu = mu / float(self.root @ self.root) if mu > 0 else 1.0
        K.flat[:: len(K) + 1] += mu
        factor, failed = lapack.dpotrf(K.T, lower=False, clean=False, overwrite_a=True)
        assert not failed, "mu is far above the rounding of these products"
        return mu, factor

    def _within(self, inner: Floats) -> Floats:
        """Solve by the factor; for a column or two, BLAS is faster than LAPACK."""
        if inner.shape[1] > 2:
            return np.asarray(lapack.dpotrs(self.factor, inner, lower=False)[0])
        half = (blas.dtrsv(self.factor, column, trans=1) for column in inner.T)
        return np.stack([blas.dtrsv(self.factor, column) for column in half], axis=1)

    def solver(self, share: Floats) -> Callable[[Floats, Ints], Floats]:
        """Give the inverses for systems that each have a share of the samples."""
        level = self.mu * self.times * share

        def inverse(R: Floats, which: Ints) -> Floats:
            if len(self.root) == 0:
                return R / level[which]
            inner = self.B @ R - np.outer(self.root, self.mean @ R)
            inner = self._within(inner)
            known: Any = self.columns @ inner
            along = self.root @ inner
            for rows in blocks(len(R)):
                known[rows] -= np.outer(self.mean[rows], along)
            np.subtract(R, known, out=known)
            known /= level[which]
            return np.asarray(known)

        return inverse
