"""Upper bounds of the spectral radius of each graph's adjacency matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.offsets import longest

_PATIENCE = 4  # steps over which the bound must still fall by _PROGRESS to go on
_PROGRESS = 1e-3
_MAX_STEPS = 500
_FLOOR = 1e-150  # keeps x positive where a component fades beside a larger one


@njit(cache=True, nogil=True, error_model="numpy")
def spectral_radii(vertex_offsets, indptr, neighbors, weights):
    """Give an upper bound of rho(|A|) for each graph, tight to about half a percent.

    For a non-negative matrix and any positive x, ``rho(A) <= max_v (A x)_v / x_v``
    (Collatz-Wielandt). The bound never rises under ``x <- (A + I) x``, so it holds whenever the
    iteration is stopped.
    """
    radii = np.empty(len(vertex_offsets) - 1)
    largest = longest(vertex_offsets)
    x = np.empty(largest)
    y = np.empty(largest)
    for g in range(len(radii)):
        v0 = vertex_offsets[g]
        n = vertex_offsets[g + 1] - v0
        x[:n] = 1.0
        scale = _largest_row(v0, n, indptr, weights) + 1.0  # keeps x in range between checks
        bound = np.inf
        for step in range(_MAX_STEPS):
            checked = step % _PATIENCE == 0
            ratio = 0.0
            for v in range(n):
                total = 0.0
                for a in range(indptr[v0 + v], indptr[v0 + v + 1]):
                    total += x[neighbors[a]] * (abs(weights[a]) if len(weights) > 0 else 1.0)
                if checked:
                    ratio = max(ratio, total / x[v])
                y[v] = (total + x[v]) / scale
            x, y = y, x
            if checked:
                done = ratio > bound * (1.0 - _PROGRESS)
                bound = min(bound, ratio)
                if done:
                    break
                peak = x[:n].max()
                for v in range(n):
                    x[v] = max(x[v] / peak, _FLOOR)
        radii[g] = bound * (1.0 + 1e-12)  # above the rounding of the sums
    return radii


@njit(cache=True, nogil=True, error_model="numpy")
def _largest_row(v0, n, indptr, weights):
    """Give the largest absolute row sum of the matrix of a graph."""
    largest = 0.0
    for v in range(v0, v0 + n):
        total = float(indptr[v + 1] - indptr[v])
        if len(weights) > 0:
            total = 0.0
            for a in range(indptr[v], indptr[v + 1]):
                total += abs(weights[a])
        largest = max(largest, total)
    return largest
