"""One neuron over all rows of a block: a contiguous vector, lanes run over rows.

All loops here are plain passes that the compiler turns into vector instructions (the tests look
at the machine code). Terms are added in an order that depends on the graph alone.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

STRANDS = 32  # in which a graph's rows are summed

# tanh(x) = x P(x^2) / Q(x^2), fitted for the smallest relative error on [0, 8.5].
_SATURATED = np.float32(8.5)
_ONE = np.float32(1.0)
_P0 = np.float32(9.9999998818e-01)
_P1 = np.float32(1.3413245299e-01)
_P2 = np.float32(3.5340249526e-03)
_P3 = np.float32(2.1251014349e-05)
_P4 = np.float32(1.4269189622e-08)
_Q1 = np.float32(4.6746568033e-01)
_Q2 = np.float32(2.6022744024e-02)
_Q3 = np.float32(3.3488617438e-04)
_Q4 = np.float32(8.1451070264e-07)


def _lambert(z):
    """Lambert's continued fraction for tanh(z / 8), seven terms deep, and the angle doubled thrice.

    With tanh = p / q, doubling is ``p, q = 2 p q, p^2 + q^2``: one division in all.
    """
    z = min(max(z, -19.1), 19.1) * 0.125
    y = z * z
    p = z * (1.0 + y * (5 / 39 + y * (2 / 715 + y * (1 / 135135))))
    q = 1.0 + y * (6 / 13 + y * (10 / 429 + y * (4 / 19305)))
    p, q = 2.0 * p * q, p * p + q * q
    p, q = 2.0 * p * q, p * p + q * q
    p, q = 2.0 * p * q, p * p + q * q
    return p / q


def _tanh(z):
    """Give tanh in the precision of its argument."""
    raise NotImplementedError


@overload(_tanh, inline="always")
def _overload_tanh(z):
    if z == types.float64:
        return _lambert

    def rational(z):
        z = min(max(z, -_SATURATED), _SATURATED)
        y = z * z
        p = z * (_P0 + y * (_P1 + y * (_P2 + y * (_P3 + y * _P4))))
        q = _ONE + y * (_Q1 + y * (_Q2 + y * (_Q3 + y * _Q4)))
        return min(max(p / q, -_ONE), _ONE)

    return rational


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def tanh_sum(n, argument, w, S, h, x):
    """``x = tanh(argument + w S_h)``."""
    for v in range(n):
        x[v] = _tanh(argument[v] + w * S[h, v])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def add_scaled(n, w, S, h, argument):
    """``argument += w S_h``."""
    for v in range(n):
        argument[v] += w * S[h, v]


@njit(cache=True, nogil=True, error_model="numpy")
def from_code(n, bias, w, source, codes, argument):
    """``argument = bias + w u`` for u = 1 where the code is ``source``, else 0."""
    there = bias + w
    for v in range(n):
        argument[v] = there if codes[v] == source else bias


@njit(cache=True, nogil=True, error_model="numpy")
def add_code(n, w, source, codes, argument):
    """``argument += w u`` for u = 1 where the code is ``source``, else 0."""
    for v in range(n):
        moved = argument[v] + w
        argument[v] = moved if codes[v] == source else argument[v]


@njit(cache=True, nogil=True, error_model="numpy")
def from_features(n, bias, sources, values, h, features, argument):
    """``argument = bias + W_I u`` for real u, summed in float64."""
    for v in range(n):
        total = np.float64(bias)
        for c in range(sources.shape[1]):
            total += values[h, c] * features[v, sources[h, c]]
        argument[v] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def from_state(n, bias, w, X, h, argument):
    """``argument = bias + w X_h``."""
    for v in range(n):
        argument[v] = bias + w * X[h, v]


@njit(cache=True, nogil=True, error_model="numpy")
def put(n, x, X, h):
    """``X_h = x``."""
    for v in range(n):
        X[h, v] = x[v]


@njit(cache=True, nogil=True, error_model="numpy")
def get(n, X, h, x):
    """``x = X_h``."""
    for v in range(n):
        x[v] = X[h, v]


@njit(cache=True, nogil=True, error_model="numpy")
def undo(n, active, X, h, x):
    """Take x back to X_h where it is no longer active."""
    for v in range(n):
        new, old = x[v], X[h, v]
        x[v] = new if active[v] > 0 else old


@njit(cache=True, nogil=True, error_model="numpy")
def squared_step(n, x, X, h, out):
    """``out = (x - X_h)^2``."""
    for v in range(n):
        out[v] = (x[v] - X[h, v]) * (x[v] - X[h, v])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sum_neighbors(n, half, padded, diagonals, offsets, n_diagonals, outside, weights, n_out, S, h):
    """``S_h = A x``: the band's diagonals first, four at a time, then the arcs outside it.

    x starts at ``padded[half]``; diagonal j takes it from ``padded[offsets[j]]`` on.
    """
    for v in range(n):
        S[h, v] = 0.0
    for j in range(0, n_diagonals, 4):  # diagonals come in fours, the last ones may be zero
        xa, xb = padded[offsets[j] :], padded[offsets[j + 1] :]
        xc, xd = padded[offsets[j + 2] :], padded[offsets[j + 3] :]
        for v in range(n):
            S[h, v] = (
                S[h, v]
                + diagonals[j, v] * xa[v]
                + diagonals[j + 1, v] * xb[v]
                + diagonals[j + 2, v] * xc[v]
                + diagonals[j + 3, v] * xd[v]
            )
    x = padded[half:]
    for k in range(n_out):
        S[h, outside[k, 0]] += weights[k] * x[outside[k, 1]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def sum_graphs(m, starts, size_starts, sizes, x, out, h):
    """``out[h, k] = sum_v size_v x_v`` over graph k's rows, in float64.

    A graph's sizes start at ``sizes[size_starts[k]]`` and go on with zeros up to a multiple of
    `STRANDS`, so that only whole unrolled vectors are summed, into the rows of the next graph.
    """
    for k in range(m):
        y, w = x[starts[k] :], sizes[size_starts[k] :]
        total = 0.0
        for v in range((starts[k + 1] - starts[k] + STRANDS - 1) // STRANDS * STRANDS):
            total += w[v] * y[v]
        out[h, k] = total
