"""Which way each quotient graph goes: float32, float64, or the steps of the paper's loop."""

from __future__ import annotations

import numpy as np
from numba import njit

SINGLE, DOUBLE, STEPS = range(3)
_EPS = float(np.finfo(np.float32).eps)
_ULPS = 8.0  # so much a state near 1 may seem to move by rounding in a sweep that moves nothing


@njit(cache=True, nogil=True, error_model="numpy")
def choose_ways(bounds, graphs, row_offsets, sizes, tol, fits_single):
    """Choose a way for each quotient.

    bounds (L, n_graphs) are the certificates; graphs, row_offsets and sizes are those of
    `fdgnn.graphs.colors.Quotients`. A quotient is certified if all its bounds are below 1. It is
    computed in float32 if that is fine enough to tell the fixed point to half of ``tol``.

    Returns ways (n,); how many quotients go each way (3,); contractions (L, n), the bounds of the
    quotients; and resolution (n,), the distance that rounding to float32 may seem to move a graph.
    """
    L, n = len(bounds), len(graphs)
    ways = np.empty(n, dtype=np.int64)
    counts = np.zeros(3, dtype=np.int64)
    contractions = np.empty((L, n))
    resolution = np.empty(n)
    for k in range(n):
        certified, largest = True, 0.0
        for i in range(L):
            bound = bounds[i, graphs[k]]
            contractions[i, k] = bound
            certified &= bound < 1.0
            largest = max(largest, bound)
        n_vertices = 0.0
        for r in range(row_offsets[k], row_offsets[k + 1]):
            n_vertices += sizes[r]
        resolution[k] = _ULPS * _EPS * np.sqrt(n_vertices)
        fine = fits_single and resolution[k] < 0.5 * tol * (1.0 - largest)
        ways[k] = (SINGLE if fine else DOUBLE) if certified else STEPS
        counts[ways[k]] += 1
    return ways, counts, contractions, resolution
