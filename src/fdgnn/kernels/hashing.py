"""A fixed scrambler of 64 bits, from which colors are made."""

from __future__ import annotations

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def mix(z):
    """Scatter 64 bits (the finalizer of the SplitMix generator); no two inputs give the same."""
    z = z + _GOLDEN
    z = (z ^ (z >> _SHIFT_1)) * _MIX_1
    z = (z ^ (z >> _SHIFT_2)) * _MIX_2
    return z ^ (z >> _SHIFT_3)


@njit(cache=True, nogil=True, error_model="numpy")
def mix_rows(rows, colors):
    """Hash each row of a (n, m) uint64 array into a color (n,)."""
    n, m = rows.shape
    for v in range(n):
        z = np.uint64(m)
        for j in range(m):
            z = mix(z ^ rows[v, j])
        colors[v] = z


@njit(cache=True, nogil=True, error_model="numpy")
def mix_all(values):
    """Scatter the bits of each entry of a (n,) uint64 array, in place."""
    for i in range(len(values)):
        values[i] = mix(values[i])


@njit(cache=True, nogil=True, error_model="numpy")
def table_size(n):
    """Give the power of two that is at least twice n: room for a hash table of n entries."""
    size = 2
    while size < 2 * n:
        size *= 2
    return size
