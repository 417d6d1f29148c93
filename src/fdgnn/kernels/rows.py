"""One neuron over all rows of a block: a contiguous vector.

All loops here are plain passes that the compiler turns into vector instructions. Terms are added
in an order that depends on the graph alone. A row of a matrix is given as the matrix and the
number of the row, since a view of it would count references.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numba.extending import overload

STRANDS = 32  # the rows of a graph are summed in so many strands at once

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
    """Lambert's continued fraction for tanh(z / 8), seven terms deep, then three doublings.

    With tanh = p / q, doubling the angle is ``p, q = 2 p q, p^2 + q^2``: one division in all.
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


# ---------------------------------------------------------------------- drives


@njit(cache=True, nogil=True, error_model="numpy")
def drive(n, h, sources, values, bias, codes, features, below, D, d):
    """Give the drive of neuron h, ``D_d = W_I u + bias``.

    sources and values (H, C) are W_I, bias (H,). The input u is the one-hot code (codes is not
    empty), a row of features (features is not empty), or the states of the layer below.
    """
    C = sources.shape[1]
    if len(codes) > 0:
        _from_code(n, bias[h], values[h, 0], sources[h, 0], codes, D, d)
        for k in range(1, C):
            _add_code(n, values[h, k], sources[h, k], codes, D, d)
    elif len(features) > 0:
        _from_features(n, bias[h], sources, values, h, features, D, d)
    else:
        _from_state(n, bias[h], values[h, 0], below, sources[h, 0], D, d)
        for k in range(1, C):
            add_scaled(n, values[h, k], below, sources[h, k], D, d)


@njit(cache=True, nogil=True, error_model="numpy")
def _from_code(n, bias, w, source, codes, D, d):
    """``D_d = bias + w u`` for u = 1 where the code is ``source``, else 0."""
    there = bias + w
    for v in range(n):
        D[d, v] = there if codes[v] == source else bias


@njit(cache=True, nogil=True, error_model="numpy")
def _add_code(n, w, source, codes, D, d):
    """``D_d += w u`` for u = 1 where the code is ``source``, else 0."""
    for v in range(n):
        moved = D[d, v] + w
        D[d, v] = moved if codes[v] == source else D[d, v]


@njit(cache=True, nogil=True, error_model="numpy")
def _from_features(n, bias, sources, values, h, features, D, d):
    """``D_d = bias + W_I u`` for real u, summed in float64."""
    for v in range(n):
        total = np.float64(bias)
        for c in range(sources.shape[1]):
            total += values[h, c] * features[v, sources[h, c]]
        D[d, v] = total


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def _from_state(n, bias, w, X, h, D, d):
    """``D_d = bias + w X_h``."""
    for v in range(n):
        D[d, v] = bias + w * X[h, v]


# ---------------------------------------------------------------------- states


@njit(cache=True, nogil=True, error_model="numpy")
def activate(n, D, d, values, h, rows, r, S, x):
    """``x = tanh(D_d + sum_k values[h, k] S_row)`` with ``row = rows[r, k]``, eq. 1.

    The last row of D is scratch space: D_d stays as it is, unless it is that row itself.
    """
    last, scratch = rows.shape[1] - 1, len(D) - 1
    if last > 0 and d != scratch:
        _copy(n, D, d, scratch)
        d = scratch
    for k in range(last):
        add_scaled(n, values[h, k], S, rows[r, k], D, d)
    tanh_sum(n, D, d, values[h, last], S, rows[r, last], x)


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def tanh_sum(n, D, d, w, S, s, x):
    """``x = tanh(D_d + w S_s)``."""
    for v in range(n):
        x[v] = _tanh(D[d, v] + w * S[s, v])


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def add_scaled(n, w, S, s, D, d):
    """``D_d += w S_s``."""
    for v in range(n):
        D[d, v] += w * S[s, v]


@njit(cache=True, nogil=True, error_model="numpy")
def _copy(n, D, d, to):
    """``D_to = D_d``."""
    for v in range(n):
        D[to, v] = D[d, v]


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
    """Set x back to X_h where it is no longer active."""
    for v in range(n):
        new, old = x[v], X[h, v]
        x[v] = new if active[v] > 0 else old


@njit(cache=True, nogil=True, error_model="numpy")
def squared_step(n, x, X, h, out):
    """``out = (x - X_h)^2``."""
    for v in range(n):
        out[v] = (x[v] - X[h, v]) * (x[v] - X[h, v])


# ---------------------------------------------------------------------- sums


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract"})
def sum_neighbors(n, band, S, h):
    """``S_h = A x`` for the state x of the band (`fdgnn.kernels.blocks.Band`).

    The diagonals of the band come first, four at a time, then the arcs outside it.
    x starts at ``padded[half]``; diagonal j takes it from ``padded[offsets[j]]`` on.
    """
    half, counts, offsets, diagonals, outside, weights, padded = band
    for v in range(n):
        S[h, v] = 0.0
    for j in range(0, counts[0], 4):  # always whole fours; the last ones may be zero
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
    for k in range(counts[1]):
        S[h, outside[k, 0]] += weights[k] * x[outside[k, 1]]


@njit(cache=True, nogil=True, error_model="numpy", fastmath={"contract", "reassoc"})
def sum_graphs(m, starts, size_starts, sizes, x, out, h):
    """``out[h, k] = sum_v size_v x_v`` over the rows of each graph k, in float64.

    The sizes of a graph start at ``sizes[size_starts[k]]`` and go on with zeros up to a multiple
    of `STRANDS`. So only whole unrolled vectors are summed, into the rows of the next graph.
    """
    for k in range(m):
        y, w = x[starts[k] :], sizes[size_starts[k] :]
        total = 0.0
        for v in range((starts[k + 1] - starts[k] + STRANDS - 1) // STRANDS * STRANDS):
            total += w[v] * y[v]
        out[h, k] = total


@njit(cache=True, nogil=True, error_model="numpy")
def write(n, rows, x, h, slot, states):
    """Write the states of the neuron out, if they are wanted."""
    if len(states) > 0:
        for v in range(n):
            states[rows[v], slot, h] = x[v]
