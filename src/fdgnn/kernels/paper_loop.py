"""The paper's iteration, eq. 2, literally: all neurons of a layer, step by step, per graph."""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.offsets import longest


@njit(cache=True, nogil=True, error_model="numpy")
def iterate_layers(first, last, structure, first_drive, row_of_vertex, weights, eps, max_iter, out):
    """Run the graphs ``first`` to ``last`` through all layers; fill ``out``.

    ``structure`` is a `fdgnn.graphs.colors.Structure`, ``weights`` a
    `fdgnn.reservoir.weights.Weights`, ``out`` a `fdgnn.reservoir.engine.Outputs` with all layers.
    The first layer has the drive ``first_drive[row_of_vertex[v]]``: (rows, H) and (N,).
    """
    vertex_offsets, indptr, neighbors, arc_weights = structure
    _, _, in_sources, in_values, rec_sources, rec_values, bias = weights
    pooled, n_iter, residual, states = out
    L, H = bias.shape
    largest = longest(vertex_offsets[first : last + 1])
    D = np.empty((largest, H))
    X = np.empty((largest, H))
    X_new = np.empty((largest, H))
    for g in range(first, last):
        v0 = vertex_offsets[g]
        n = vertex_offsets[g + 1] - v0
        for i in range(L):
            if i == 0:
                for v in range(n):
                    D[v] = first_drive[row_of_vertex[v0 + v]]
            else:
                _add_sources(n, bias[i], in_sources[i - 1], in_values[i - 1], X, D)
            X[:n] = 0.0
            distance = np.inf
            t = 0
            while t < max_iter and distance >= eps:
                distance = _step(
                    n, indptr[v0 : v0 + n + 1], neighbors, arc_weights, D,
                    rec_sources[i], rec_values[i], X, X_new,
                )  # fmt: skip
                X, X_new = X_new, X
                t += 1
            n_iter[i, g] = t
            residual[i, g] = distance
            for v in range(n):
                for h in range(H):
                    pooled[i, g, h] += X[v, h]
            if len(states) > 0:
                states[v0 : v0 + n, i] = X[:n]


@njit(cache=True, nogil=True, error_model="numpy")
def _add_sources(n, bias, sources, values, X, D):
    """``D = bias + X W^T`` for a W with C entries in each row."""
    H, C = sources.shape
    for v in range(n):
        for h in range(H):
            total = bias[h]
            for c in range(C):
                total += values[h, c] * X[v, sources[h, c]]
            D[v, h] = total


@njit(cache=True, nogil=True, error_model="numpy")
def _step(n, indptr, neighbors, weights, D, sources, values, X, X_new):
    """``X_new = tanh(D + A X W_H^T)``; return the Frobenius norm of ``X_new - X``."""
    H, C = sources.shape
    S = np.empty(H)  # row v of A X
    square = 0.0
    for v in range(n):
        S[:] = 0.0
        for a in range(indptr[v], indptr[v + 1]):
            w = weights[a] if len(weights) > 0 else 1.0
            u = neighbors[a]
            for h in range(H):
                S[h] += w * X[u, h]
        for h in range(H):
            total = D[v, h]
            for c in range(C):
                total += values[h, c] * S[sources[h, c]]
            X_new[v, h] = np.tanh(total)
            square += (X_new[v, h] - X[v, h]) ** 2
    return np.sqrt(square)
