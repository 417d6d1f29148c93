"""What arrays are called, and the two ways in which lists of lists lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Array = npt.NDArray[Any]


def offsets_of(lengths: Sequence[int] | Array) -> Ints:
    """Where lists of these lengths begin when they lie end to end, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


def ranges(starts: Ints, lengths: Ints) -> Ints:
    """Concatenate ``arange(start, start + length)`` over all pairs."""
    return np.repeat(starts - offsets_of(lengths)[:-1], lengths) + np.arange(lengths.sum())
