"""Products of all pairs of rows, for dense and for sparse features."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from fdgnn.arrays import Features, Floats

_OFTEN = 1 / 8  # share of rows that have a column, from which dense products are faster
_AT_ONCE = 2048  # columns that are made dense together


def row_products(X: Features) -> Floats:
    """``X X^T`` (n, n) as a dense matrix.

    The work of a sparse product grows with the square of how many rows have a column, so columns
    that many rows have are multiplied as a dense matrix, some at a time.
    """
    if not sp.issparse(X):
        return np.asarray(X @ X.T)
    counts = np.bincount(X.indices, minlength=X.shape[1])
    often = np.flatnonzero(counts > _OFTEN * X.shape[0])
    if len(often) == 0:
        return np.asarray((X @ X.T).toarray(), dtype=np.float64)
    columns = X.tocsc()
    seldom = columns[:, np.flatnonzero((counts > 0) & (counts <= _OFTEN * X.shape[0]))].tocsr()
    products = np.asarray((seldom @ seldom.T).toarray(), dtype=np.float64)
    for start in range(0, len(often), _AT_ONCE):
        dense = columns[:, often[start : start + _AT_ONCE]].toarray()
        products += dense @ dense.T
    return products
