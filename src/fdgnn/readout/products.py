"""Products of all pairs of rows, for dense and for sparse features."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Features

_OFTEN = 1 / 16  # share of rows that have a column, from which dense products are faster
_AT_ONCE = 2048  # columns that are made dense together


def row_products(
    X: Features, dtype: type[np.float32] | type[np.float64] = np.float64
) -> npt.NDArray[Any]:
    """``X X^T`` (n, n) as a dense matrix.

    The work of a sparse product grows with the square of how many rows have a column, so columns
    that many rows have are multiplied as a dense matrix, some at a time.
    """
    from fdgnn.kernels import add_row_products

    if not sp.issparse(X):
        return np.asarray(X @ X.T, dtype=dtype)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    limit = _OFTEN * X.shape[0]
    columns = sp.csc_array(X, dtype=dtype)
    products = np.zeros((X.shape[0], X.shape[0]), dtype=dtype)
    often = np.flatnonzero(counts > limit)
    for start in range(0, len(often), _AT_ONCE):
        dense: Any = columns[:, often[start : start + _AT_ONCE]].toarray()
        if start == 0:
            np.matmul(dense, dense.T, out=products)  # no second matrix of this size
        else:
            products += dense @ dense.T
    seldom = columns[:, np.flatnonzero((counts > 0) & (counts <= limit))]
    rows = seldom.tocsr()
    add_row_products(*_parts(rows), *_parts(seldom), products)
    return products


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


def products_with(X: Features, columns: Columns) -> npt.NDArray[np.float64]:
    """``X Z^T`` (m, n) as a dense matrix, for rows X (m, P) and a matrix Z (n, P) by columns."""
    from fdgnn.kernels import add_row_products

    rows = X if sp.issparse(X) else sp.csr_array(X)
    products = np.zeros((rows.shape[0], columns.n_rows))
    add_row_products(*_parts(rows), columns.starts, columns.rows, columns.values, products)
    return products


def _parts(X: Any) -> tuple[Array, Array, Array]:
    """Starts, places and values of a sparse matrix, in the types that kernels read."""
    return X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), X.data
