"""Readouts as arrays and back.

Weights of columns that do not occur are zero and are not stored. The training graphs' features,
which RBF kernel ridge regression keeps, are mostly ones, so that only the other entries are stored.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats
from fdgnn.encoders.records import refuse, take
from fdgnn.fitting import Readout
from fdgnn.linear import KernelReadout, LinearReadout, SparseReadout

ReadoutName: TypeAlias = Literal["linear", "rbf"]

_SHORT = 2**16  # columns that 16 bits can number


def readout_name(readout: Readout) -> ReadoutName:
    """Return the name of a readout, as in ``GraphClassifier(readout="rbf")``."""
    return "rbf" if isinstance(readout, KernelReadout) else "linear"


def n_columns(readout: Readout) -> int:
    """Return P, the number of features that the readout sees."""
    if isinstance(readout, KernelReadout):
        return int(readout.examples.shape[1])
    return readout.n_features if isinstance(readout, SparseReadout) else readout.coef.shape[1]


def readout_arrays(readout: Readout) -> dict[str, Array]:
    """Return the arrays of a readout, in the form that takes less room."""
    if isinstance(readout, KernelReadout):
        return _examples_arrays(readout.examples) | {
            "dual": readout.dual,
            "intercept": readout.intercept,
            "sharpness": np.array([readout.sharpness]),
        }
    sparse = readout if isinstance(readout, SparseReadout) else readout.sparse()
    arrays: dict[str, Array] = {"coef.columns": sparse.columns, "coef.values": sparse.values}
    if isinstance(readout, LinearReadout) and _size(arrays) >= readout.coef.nbytes:
        arrays = {"coef": readout.coef}
    return arrays | {"intercept": readout.intercept}


def restored_readout(
    name: ReadoutName, arrays: dict[str, Array], P: int, n_outputs: int
) -> Readout:
    """Take the arrays of a readout of P features out of those of its estimator, and check them."""
    intercept = take(arrays, "intercept", 1)
    _check(intercept.shape == (n_outputs,))
    if name == "rbf":
        return _kernel_readout(arrays, P, intercept)
    if "coef" in arrays:
        coef = take(arrays, "coef", 2)
        _check(coef.shape == (n_outputs, P))
        return LinearReadout(coef, intercept)
    columns, values = take(arrays, "coef.columns", 1, np.int32), take(arrays, "coef.values", 2)
    _check(values.shape == (n_outputs, len(columns)))
    _check_ascending(columns, P)
    return SparseReadout(columns, values, intercept, P)


# ---------------------------------------------------------------------- RBF kernel ridge regression


def _examples_arrays(examples: sp.csr_array) -> dict[str, Array]:
    """A sparse matrix with few entries besides the most common one, and short column numbers."""
    X = examples
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    arrays: dict[str, Array] = {"examples.indptr": X.indptr.astype(np.int32)}
    columns, places = np.unique(X.indices, return_inverse=True)
    long: dict[str, Array] = {"examples.indices": X.indices.astype(np.int32)}
    short: dict[str, Array] = {
        "examples.indices": places.astype(np.uint16),
        "examples.columns": columns.astype(np.int32),
    }
    fits = len(columns) <= _SHORT and _size(short) < _size(long)
    return arrays | (short if fits else long) | _entries_arrays(X.data)


def _entries_arrays(data: Floats) -> dict[str, Array]:
    """Entries as their most common value and the others, if that takes less room."""
    values, counts = np.unique(data, return_counts=True)
    common = values[np.argmax(counts)] if len(values) else 1.0
    others = np.flatnonzero(data != common).astype(np.int32)
    arrays = {
        "examples.common": np.array([common]),
        "examples.others": others,
        "examples.data": data[others],
    }
    return arrays if _size(arrays) < data.nbytes else {"examples.data": data}


def _kernel_readout(arrays: dict[str, Array], P: int, intercept: Floats) -> KernelReadout:
    dual, sharpness = take(arrays, "dual", 2), take(arrays, "sharpness", 1)
    _check(sharpness.shape == (1,) and dual.shape[1] == len(intercept))
    _check(sharpness[0] > 0 and len(dual) > 0)
    examples = _examples(arrays, (len(dual), P))
    return KernelReadout(examples, dual, intercept, float(sharpness[0]))


def _examples(arrays: dict[str, Array], shape: tuple[int, int]) -> sp.csr_array:
    """Features of the training graphs; rows and columns are checked, for SciPy does not."""
    indptr = take(arrays, "examples.indptr", 1, np.int32)
    indices = _indices(arrays, shape[1])
    _check(len(indptr) == shape[0] + 1 and indptr[0] == 0 and indptr[-1] == len(indices))
    _check(bool((indptr[1:] >= indptr[:-1]).all()))
    ascends = np.ones(len(indices) + 1, dtype=bool)
    ascends[1:-1] = indices[1:] > indices[:-1]
    ascends[indptr] = True  # where a row begins, columns may fall
    _check(bool(ascends.all()))
    data = _entries(arrays, len(indices))
    X = sp.csr_array((data, indices, indptr), shape=shape)
    X.has_sorted_indices = X.has_canonical_format = True
    return X


def _entries(arrays: dict[str, Array], n: int) -> Floats:
    """The n entries: all, or the most common one and the others with their places."""
    data: Floats = take(arrays, "examples.data", 1)
    if "examples.common" not in arrays:
        _check(len(data) == n)
        return data
    common, others = (
        take(arrays, "examples.common", 1),
        take(arrays, "examples.others", 1, np.int32),
    )
    _check(common.shape == (1,) and others.shape == data.shape)
    _check_ascending(others, n)
    entries = np.full(n, common[0])
    entries[others] = data
    return entries


def _indices(arrays: dict[str, Array], P: int) -> npt.NDArray[np.int32]:
    """The column of each entry, in range."""
    if "examples.columns" not in arrays:
        indices = take(arrays, "examples.indices", 1, np.int32)
        _check(bool((indices >= 0).all() and (indices < P).all()))
        return indices
    columns = take(arrays, "examples.columns", 1, np.int32)
    places = take(arrays, "examples.indices", 1, np.uint16)
    _check_ascending(columns, P)
    _check(bool((places < len(columns)).all()))
    return np.asarray(columns[places])


# ---------------------------------------------------------------------- checks


def _check_ascending(places: Array, n: int) -> None:
    inside = bool((places >= 0).all() and (places < n).all())
    if not inside or not (places[1:] > places[:-1]).all():
        refuse("the columns of its readout do not ascend, or do not exist")


def _check(fits: bool) -> None:
    if not fits:
        refuse("the sizes of features, projection and readout do not fit together")


def _size(arrays: dict[str, Array]) -> int:
    return sum(array.nbytes for array in arrays.values())
