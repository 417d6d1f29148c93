"""Names of array types, functions for lists that lie end to end in one array, kept arrays."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Features = Floats | sp.csr_array  # (n_graphs, n_features), dense or sparse

ROUNDING = 1e-12  # of the squared length of rows: a smaller difference is rounding


def frozen(*arrays: Array) -> tuple[Array, ...]:
    """Make arrays read-only, and return them."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def largest_of(values: Array) -> float:
    """Return the largest absolute value, NaN if there is one, 0 for an empty array."""
    return float(np.maximum(values.max(initial=0.0), -values.min(initial=0.0)))


def is_unknown(value: Any) -> bool:
    """Return whether a value is None, NaN, or pandas' NA, which is not even unequal to itself."""
    same = None if value is None else value == value
    return not (isinstance(same, bool | np.bool_) and same)


def offsets_of(lengths: Sequence[int] | Array) -> Ints:
    """Return the start of each list, if lists of these lengths lie end to end, and the last end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


_FIRST_POSITIONS = frozen(np.arange(1024))[0]


def positions(n: int) -> Ints:
    """Return the numbers from 0 to n - 1 as a read-only array.

    `numpy.arange` releases the GIL however short its result is. With several threads of short
    predictions, each release costs a change of threads, which takes as long as a prediction.
    """
    return _FIRST_POSITIONS[:n] if n <= len(_FIRST_POSITIONS) else frozen(np.arange(n))[0]


def looked_up(table: Array, codes: Array) -> Array:
    """Return ``table[codes]`` without releasing the GIL for short arrays, as `numpy.take` does."""
    return np.asarray(table[codes.astype(np.intp)])


def blocks(n: int, size: int = 1024) -> list[slice]:
    """Cut n rows into slices, for work on a large matrix without a second one."""
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate ``arange(start, start + length)`` over all pairs."""
    return np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())


def prefixed(prefix: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Return arrays with a prefix and a point before their names."""
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def grouped(arrays: Mapping[str, Array]) -> dict[str, dict[str, Array]]:
    """Group arrays by the part of their name before the first point, and take that part off."""
    groups: dict[str, dict[str, Array]] = {}
    for name, array in arrays.items():
        group, _, rest = name.partition(".")
        groups.setdefault(group, {})[rest] = array
    return groups


def entries_of(matrix: Features, rows: Array, columns: Array) -> Floats:
    """Return entries of a dense matrix, or of a CSR matrix with ascending columns in each row.

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
    """Return the mean squared distance of the rows to their mean; 0 if it is only rounding."""
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    squares = matrix.multiply(matrix).sum() if sp.issparse(matrix) else (matrix**2).sum()
    length = squares / matrix.shape[0]
    found = float(length - mean @ mean)
    return found if found > ROUNDING * length else 0.0


def dense(matrix: Features) -> Floats:
    """Return a matrix as a dense array."""
    return np.asarray(matrix.toarray() if sp.issparse(matrix) else matrix)


def mixed_bits(bits: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Mix 64 bits (the finalizer of SplitMix64), so that any of them are like random ones."""
    mixed = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


def padded(array: Array) -> Array:
    """Return text as a NumPy array of fixed width, for files and hashes; others as they are."""
    return array.astype(str) if array.dtype.kind == "O" else array


def read_arrays(path: Path, wanted: Callable[[str], bool] | None = None) -> dict[str, Array]:
    """Read a NumPy archive, or the arrays with wanted names; all of their bytes are verified.

    `numpy.load` does not see damage that makes an array smaller, since it compares checksums at
    the end of a member only, nor damage by which an array is not listed.

    Raises
    ------
    ValueError
        It cannot be read, or is damaged.
    """
    import zipfile  # slow, and seldom needed

    try:
        with path.open("rb") as file, zipfile.ZipFile(file) as archive:
            file.seek(-22, os.SEEK_END)  # the end of a zip file without a comment
            end = file.read()
            n_listed = int.from_bytes(end[10:12], "little") if end.startswith(b"PK\5\6") else -1
            if not archive.filelist or n_listed != len(archive.filelist):
                raise ValueError("list of arrays is not complete")
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            some = names if wanted is None else filter(wanted, names)
            found = {}
            for name in some:
                content = io.BytesIO(archive.read(f"{name}.npy"))
                found[name] = np.lib.format.read_array(content, allow_pickle=False)
            return found
    except OSError as error:
        raise ValueError(error.strerror or str(error)) from error
    except Exception as error:  # damage shows as one of many
        raise ValueError(str(error) or type(error).__name__) from error
