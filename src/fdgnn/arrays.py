"""Names of array types, and functions for lists that lie end to end in one array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]
Features = Floats | sp.csr_array  # (n_graphs, n_features), dense or sparse


def frozen(*arrays: Array) -> tuple[Array, ...]:
    """Make arrays read-only, and give them back."""
    for array in arrays:
        array.setflags(write=False)
    return arrays


def offsets_of(lengths: Sequence[int] | Array) -> Ints:
    """Return the start of each list, if lists of these lengths lie end to end, and the last end."""
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate ``arange(start, start + length)`` over all pairs."""
    return np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())
