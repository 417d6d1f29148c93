"""Products of the rows of a feature matrix: for all pairs, and as an operator for solvers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Features, Floats, blocks

_OFTEN = 1 / 16  # share of rows that have a column, from which dense products are faster
_MOSTLY = 3 / 4  # share of rows that have a column, from which it is kept as a dense one
_MOST_OFTEN = 1024  # such columns, which are copied as a dense matrix
_EXACT = 2**24  # below, integers are exact in single precision
_PANEL = 256  # rows of a panel
_BLOCK = 512  # columns of a panel that are read together, twice: they stay in the cache
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


def product_panels(X: Features, whole: bool = False) -> Iterator[tuple[slice, Floats]]:
    """Return panels of ``X X^T``: rows, and their products with all rows up to the last of these.

    With `whole`, they are products with all rows. The work of a sparse product grows with the
    square of how many rows have a column, so columns that many rows have are multiplied as a dense
    matrix: of counts in single precision, which is exact.
    """
    from fdgnn.kernels import add_row_products

    n = X.shape[0]
    if not sp.issparse(X):
        for rows in blocks(n, _PANEL):
            others = X if whole else X[: rows.stop]
            yield rows, np.asarray(X[rows] @ others.T, dtype=np.float64)
        return
    counts = np.bincount(X.indices, minlength=X.shape[1])
    often = np.argsort(-counts, kind="stable")[:_MOST_OFTEN]
    often = often[counts[often] > _OFTEN * n]
    seldom = counts > 0
    seldom[often] = False
    by_column = sp.csc_array(X, dtype=np.float64)
    common = by_column[:, often]
    exact = (np.rint(common.data) == common.data).all()
    exact &= (common**2).sum(axis=1).max(initial=0.0) < _EXACT
    dense: Any = common.astype(np.float32 if exact else np.float64).toarray()
    columns = by_column[:, np.flatnonzero(seldom)]
    all_rows = columns.tocsr()
    starts, places, values = _parts(columns)
    for rows in blocks(n, _PANEL):
        stop = n if whole else rows.stop
        panel = np.asarray(dense[rows] @ dense[:stop].T, dtype=np.float64)
        own = starts, places, values
        if stop < n:  # of the columns only the entries up to the panel's last row are read
            inside = places < stop
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
    """``X X^T`` for sparse features, which is never made.

    Columns that most rows have, such as random features, are multiplied as a dense matrix.
    """

    rounding = 0.0

    def __init__(self, X: sp.csr_array, double: bool = True) -> None:
        self.n = X.shape[0]
        counts = np.bincount(X.indices, minlength=X.shape[1])
        full = counts > _MOSTLY * self.n
        self._dense: Floats = X[:, np.flatnonzero(full)].toarray().astype(np.float64, copy=False)
        self._rows = X[:, np.flatnonzero((counts > 0) & ~full)].astype(np.float64).tocsr()
        self._columns = self._rows.T.tocsr()

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""
        given = np.ascontiguousarray(U.T)
        found = self._rows @ (self._columns @ given)
        return np.ascontiguousarray((found + self._dense @ (self._dense.T @ given)).T)


class SymmetricMatrix:
    """A symmetric matrix, of which the panels up to the diagonal are kept.

    Products with blocks of a panel are in its precision, and are added in double precision.

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
        # One array, which the system takes back as a whole.
        parts = blocks(n, _PANEL)
        memory = np.empty(sum((rows.stop - rows.start) * rows.stop for rows in parts), dtype)
        self._panels: list[tuple[slice, npt.NDArray[Any]]] = []
        used, squares = 0, 0.0
        for rows, panel in panels:
            own = memory[used : used + panel.size].reshape(panel.shape)
            own[...] = panel
            self._panels.append((rows, own))
            used += panel.size
            squares += 2 * float(np.vdot(panel, panel))
            squares -= float(np.square(panel[:, rows]).sum())
        # Measured: the error of products with vectors that are smooth, and with random ones.
        unit = _ROUNDING if dtype is np.float32 else 0.0
        self.rounding = unit * (squares / n) ** 0.5

    def times(self, U: Floats) -> Floats:
        """Return U K (c, n) for vectors U (c, n)."""
        given = np.ascontiguousarray(U.T, dtype=self._dtype)
        found = np.zeros((self.n, len(U)))
        for rows, panel in self._panels:
            own = given[rows]
            for columns in blocks(rows.start, _BLOCK):
                block = panel[:, columns]
                found[rows] += block @ given[columns]
                found[columns] += block.T @ own
            found[rows] += panel[:, rows] @ own
        return np.ascontiguousarray(found.T)


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Starts, places and values of a sparse matrix, in the types that kernels read."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data
