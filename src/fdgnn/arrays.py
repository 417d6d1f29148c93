"""Names of array types, and functions for lists that lie end to end in one array."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fdgnn.standins import without

with without("numpy.f2py", "numpy.testing"):
    import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Features = Floats | sp.csr_array  # (n_graphs, n_features), dense or sparse


_ROUNDING = 1e-12  # of the squared length of rows: a smaller difference of them is no number


def frozen(*arrays: Array) -> tuple[Array, ...]:
    """Make arrays read-only, and give them back."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def largest_of(values: Array) -> float:
    """The largest absolute value, NaN if there is one, 0 of an empty array."""
    return float(np.maximum(values.max(initial=0.0), -values.min(initial=0.0)))


def offsets_of(lengths: Sequence[int] | Array) -> Ints:
    """Return the start of each list, if lists of these lengths lie end to end, and the last end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate ``arange(start, start + length)`` over all pairs."""
    return np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())


def prefixed(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Put a prefix and a point before the names of arrays."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def grouped(arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Group arrays by the part of their name before the first point, and take that part off."""
    groups: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = array
    return groups


def entries_of(matrix: Features, rows: Array, columns: Array) -> Floats:
    """Give entries of a dense matrix, or of a CSR matrix with ascending columns in each row.

    ``rows`` and ``columns`` are of one shape, or broadcast to one. What a sparse matrix does not
    hold is 0.
    """
    if not sp.issparse(matrix):
        return np.asarray(matrix[rows, columns])
    width = matrix.shape[1]
    row_of_entry = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    keys = row_of_entry * width + matrix.indices
    wanted = np.asarray(rows, dtype=np.int64) * width + columns
    places = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
    if len(keys) == 0:
        return np.zeros(wanted.shape)
    return np.where(keys[places] == wanted, matrix.data[places], 0.0)


def spread(matrix: Features) -> float:
    """Mean squared distance of the rows to their mean; 0 where it is nothing but rounding."""
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    squares = matrix.multiply(matrix).sum() if sp.issparse(matrix) else (matrix**2).sum()
    length = squares / matrix.shape[0]
    found = float(length - mean @ mean)
    return found if found > _ROUNDING * length else 0.0


def dense(matrix: Features) -> Floats:
    """Give a matrix as an array."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)
