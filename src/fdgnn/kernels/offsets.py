"""Lists of lists in one array."""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def longest(offsets):
    """Give the length of the longest list; list i is from ``offsets[i]`` to ``offsets[i + 1]``."""
    most = 0
    for i in range(len(offsets) - 1):
        most = max(most, offsets[i + 1] - offsets[i])
    return most
