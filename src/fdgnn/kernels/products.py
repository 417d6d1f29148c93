"""Products of all pairs of rows of a sparse matrix, added to a dense one."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def add_row_products(indptr, indices, data, column_starts, rows, values, out):
    """Add ``X X^T`` to out (n, n), for X (n, P) given by its rows and by its columns.

    Row i of X has the columns ``indices`` and values ``data`` from ``indptr[i]`` on, column p the
    rows ``rows`` and values ``values`` from ``column_starts[p]`` on.
    """
    for i in range(len(out)):
        own = out[i]
        for a in range(indptr[i], indptr[i + 1]):
            p, x = indices[a], data[a]
            for b in range(column_starts[p], column_starts[p + 1]):
                own[rows[b]] += x * values[b]
