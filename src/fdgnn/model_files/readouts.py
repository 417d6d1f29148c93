"""Readouts as arrays and back.

Weights of columns that do not occur are zero and are not stored. The training graphs' features,
which a Gaussian readout keeps, are mostly ones, so that only the other entries are stored.
"""

from __future__ import annotations

from typing import Literal, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats
from fdgnn.committee import Readout
from fdgnn.encoders.records import take
from fdgnn.exceptions import ModelFileError
from fdgnn.readout.gaussian import GaussianReadout
from fdgnn.readout.linear import LinearReadout, SparseReadout

_SHORT = 2**16  # columns that 16 bits can number


def readout_name(readout: Readout) -> Literal["linear", "gaussian"]:
    """Say which readout it is."""
    return "gaussian" if isinstance(readout, GaussianReadout) else "linear"


def n_columns(readout: Readout) -> int:
    """P, how many features the readout sees."""
    if isinstance(readout, GaussianReadout):
        return int(readout.examples.shape[1])
    return readout.n_features if isinstance(readout, SparseReadout) else readout.coef.shape[1]


def readout_arrays(readout: Readout) -> dict[str, Array]:
    """Give the arrays of a readout, in the form that takes less room."""
    if isinstance(readout, GaussianReadout):
        return _gaussian_arrays(readout)
    sparse = readout if isinstance(readout, SparseReadout) else readout.sparse()
    arrays: dict[str, Array] = {"coef.columns": sparse.columns, "coef.values": sparse.values}
    if isinstance(readout, LinearReadout) and _size(arrays) >= readout.coef.nbytes:
        arrays = {"coef": readout.coef}
    return arrays | {"intercept": readout.intercept}


def restored_readout(name: str, arrays: dict[str, Array], P: int | None, n_outputs: int) -> Readout:
    """Take the arrays of a readout out of a network's, all of them checked.

    P is None where nothing but the readout says how many features there are.
    """
    intercept = take(arrays, "intercept", 1)
    _check(intercept.shape == (n_outputs,))
    if name == "gaussian":
        return _gaussian(arrays, P, intercept)
    if "coef" in arrays:
        coef = take(arrays, "coef", 2)
        _check(coef.size > 0 and len(coef) == n_outputs and P in (None, coef.shape[1]))
        return LinearReadout(coef, intercept)
    columns, values = take(arrays, "coef.columns", 1, np.int32), take(arrays, "coef.values", 2)
    _check(P is not None and values.shape == (n_outputs, len(columns)))
    assert P is not None
    _check_ascending(columns, P)
    return SparseReadout(columns, values, intercept, P)


# ---------------------------------------------------------------------- Gaussian


def _gaussian_arrays(readout: GaussianReadout) -> dict[str, Array]:
    arrays = _examples_arrays(readout.examples)
    return arrays | {
        "dual": readout.dual,
        "intercept": readout.intercept,
        "sharpness": np.array([readout.sharpness]),
    }


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


def _gaussian(arrays: dict[str, Array], P: int | None, intercept: Floats) -> GaussianReadout:
    dual, sharpness = take(arrays, "dual", 2), take(arrays, "sharpness", 1)
    _check(P is not None and sharpness.shape == (1,) and dual.shape[1] == len(intercept))
    assert P is not None
    _check(sharpness[0] > 0 and len(dual) > 0)
    examples = _examples(arrays, (len(dual), P))
    return GaussianReadout(examples, dual, intercept, float(sharpness[0]))


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
        _refuse("the columns of its readout do not ascend, or do not exist")


def _check(fits: bool) -> None:
    if not fits:
        _refuse("the sizes of features, projection and readout do not fit together")


def _size(arrays: dict[str, Array]) -> int:
    return sum(array.nbytes for array in arrays.values())


def _refuse(message: str) -> NoReturn:
    raise ModelFileError(message)
