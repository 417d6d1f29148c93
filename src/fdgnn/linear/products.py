"""Products of the rows of a feature matrix: for all pairs, and as an operator for solvers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, blocks

_OFTEN = 1 / 16  # share of rows that have a column, from which dense products are faster
_MOST_OFTEN = 1024  # such columns, which are copied as a dense matrix
_PANEL = 256  # rows of a panel, and columns of a block, which stays in the cache with its copy
_ROUNDING = 1.5 * 2.0**-21


class Columns(NamedTuple):
    """A sparse matrix (n, P) by its columns, as kernels read it."""

    starts: Array
    rows: Array
    values: Array
    n_rows: int

    @classmethod
    def of(cls, X: Features) -> Columns:
        """Lay a matrix out by its columns."""
        by_column = sp.csc_array(X, dtype=np.float64)
        return cls(*_parts(by_column), by_column.shape[0])


def products_with(X: Features, columns: Columns) -> Floats:
    """Return ``X Z^T`` (m, n) as a dense matrix, for rows X (m, P) and Z (n, P) by columns."""
    from fdgnn.kernels import add_row_products

    rows = X if sp.issparse(X) else sp.csr_array(X)
    products = np.zeros((rows.shape[0], columns.n_rows))
    add_row_products(*_parts(rows), columns.starts, columns.rows, columns.values, products)
    return products


def product_panels(X: Features) -> Iterator[tuple[slice, Floats]]:
    """Return panels of the lower triangle of ``X X^T``: rows, and their products up to the last.

    The work of a sparse product grows with the square of how many rows have a column, so columns
    that many rows have are multiplied as a dense matrix.
    """
    from fdgnn.kernels import add_row_products

    if not sp.issparse(X):
        for rows in blocks(X.shape[0], _PANEL):
            yield rows, np.asarray(X[rows] @ X[: rows.stop].T, dtype=np.float64)
        return
    counts = np.bincount(X.indices, minlength=X.shape[1])
    often = np.argsort(-counts, kind="stable")[:_MOST_OFTEN]
    often = often[counts[often] > _OFTEN * X.shape[0]]
    seldom = counts > 0
    seldom[often] = False
    by_column = sp.csc_array(X, dtype=np.float64)
    dense: Any = by_column[:, often].toarray()
    columns = by_column[:, np.flatnonzero(seldom)]
    all_rows = columns.tocsr()
    starts, places, values = _parts(columns)
    for rows in blocks(X.shape[0], _PANEL):
        panel = dense[rows] @ dense[: rows.stop].T
        # Of the columns only the entries up to the panel's last row are read.
        inside = places < rows.stop
        before = np.concatenate([[0], np.cumsum(inside)])
        own = before[starts], places[inside], values[inside]
        add_row_products(*_parts(all_rows[rows]), *own, panel)
        yield rows, panel


def row_products(X: Features) -> Floats:
    """Return ``X X^T`` (n, n) as a dense matrix."""
    if not sp.issparse(X):
        return np.asarray(X @ X.T, dtype=np.float64)
    return symmetric(X.shape[0], product_panels(X))


def symmetric(n: int, panels: Iterator[tuple[slice, Floats]]) -> Floats:
    """Return the symmetric matrix (n, n) with panels of a lower triangle."""
    found = np.empty((n, n))
    for rows, panel in panels:
        found[rows, : rows.stop] = panel
        found[: rows.start, rows] = panel[:, : rows.start].T
    return found


# ---------------------------------------------------------------------- operators


class SparseProducts:
    """``X X^T`` for sparse features, which is never made."""

    rounding = 0.0

    def __init__(self, X: sp.csr_array) -> None:
        used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        self._rows = X[:, used].astype(np.float64).tocsr()
        self._columns = self._rows.T.tocsr()
        self.n = X.shape[0]

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""
        return np.ascontiguousarray((self._rows @ (self._columns @ U.T)).T)


class SymmetricMatrix:
    """A symmetric matrix, of which the blocks on and below the diagonal are kept.

    Products with a block are in its precision, and are added in double precision.

    Parameters
    ----------
    n : int
    panels : iterator of (slice, array)
        Rows, and their entries up to the last of these rows.
    dtype : float32 or float64
        In single precision, a matrix of 10,000 rows takes 200 MB.
    """

    def __init__(
        self, n: int, panels: Iterator[tuple[slice, Floats]], dtype: type[np.floating[Any]]
    ) -> None:
        self.n, self._dtype = n, dtype
        self._blocks: list[tuple[int, int, npt.NDArray[Any]]] = []  # places of row and column
        squares = 0.0
        for i, (rows, panel) in enumerate(panels):
            for j, columns in enumerate(blocks(rows.stop, _PANEL)):
                block = panel[:, columns].astype(dtype)
                self._blocks.append((i, j, block))
                squares += (1 if i == j else 2) * float(np.vdot(block, block))
        # Measured: the error of products with vectors that are smooth, and with random ones.
        unit = _ROUNDING if dtype is np.float32 else 0.0
        self.rounding = unit * (squares / n) ** 0.5

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""
        parts = blocks(self.n, _PANEL)
        own = [np.ascontiguousarray(U[:, rows].T, dtype=self._dtype) for rows in parts]
        found = np.zeros((self.n, len(U)))
        sums = [found[rows] for rows in parts]
        for i, j, block in self._blocks:
            sums[i] += block @ own[j]
            if i != j:
                sums[j] += block.T @ own[i]
        return np.ascontiguousarray(found.T)


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Starts, places and values of a sparse matrix, in the types that kernels read."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data
