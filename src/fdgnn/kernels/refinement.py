"""Color refinement (1-WL) of each graph, with 64-bit hashes as colors.

The next color of a vertex is a hash of its own color and of the sum of the mixed colors of its
in-neighbors. So a round costs one addition per arc, and colors mean the same in every graph. Two
vertices of one graph of n vertices collide with a chance below ``rounds n^2 / 2^65``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.offsets import longest

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _mix(z):
    """Scatter 64 bits (the finalizer of the SplitMix generator)."""
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
            z = _mix(z ^ rows[v, j])
        colors[v] = z


@njit(cache=True, nogil=True, error_model="numpy")
def refine(structure, weight_bits, colors, n_rounds):
    """Refine each graph until no class splits, and for ``n_rounds`` at least.

    ``structure`` is a `fdgnn.graphs.colors.Structure`; weight_bits (n_arcs,) uint64, or of length
    0. ``colors`` (N,) uint64 holds the first colors and gets the last. Returns classes (N,), the
    class of each vertex, numbered in its graph by ascending color; n_classes and rounds (n,); and
    signatures (n,), a hash of the colors with their counts.
    """
    vertex_offsets, indptr, neighbors, _ = structure
    n_graphs = len(vertex_offsets) - 1
    classes = np.empty(len(colors), dtype=np.int32)
    n_classes = np.empty(n_graphs, dtype=np.int64)
    rounds = np.empty(n_graphs, dtype=np.int64)
    signatures = np.empty(n_graphs, dtype=np.uint64)
    largest = longest(vertex_offsets)
    mixed = np.empty(largest, dtype=np.uint64)
    distinct = np.empty(largest, dtype=np.uint64)
    table = np.full(_table_size(largest), -1, dtype=np.int32)
    for g in range(n_graphs):
        v0, v1 = vertex_offsets[g], vertex_offsets[g + 1]
        color, class_ = colors[v0:v1], classes[v0:v1]
        count = _number(color, table, distinct, class_)
        t = 0
        while True:
            _round(v0, v1 - v0, indptr, neighbors, weight_bits, color, mixed)
            t += 1
            before, count = count, _number(color, table, distinct, class_)
            if count == before and t >= n_rounds:
                break
        rounds[g], n_classes[g] = t, count
        _sort_classes(distinct[:count], class_)
        signatures[g] = _signature(color, t)
    return classes, n_classes, rounds, signatures


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_classes(distinct, class_):
    """Number the classes by ascending color."""
    order = np.argsort(distinct)
    number = np.empty(len(order), dtype=np.int32)
    for c in range(len(order)):
        number[order[c]] = c
    for v in range(len(class_)):
        class_[v] = number[class_[v]]


@njit(cache=True, nogil=True, error_model="numpy")
def _signature(color, n_rounds):
    """Hash the colors of a graph, in any order, and how long it was refined."""
    total = np.uint64(len(color))
    for v in range(len(color)):
        total += _mix(color[v])
    return _mix(total ^ np.uint64(n_rounds))


@njit(cache=True, nogil=True, error_model="numpy")
def _round(v0, n, indptr, neighbors, weight_bits, color, mixed):
    """Give each vertex of one graph its next color."""
    for v in range(n):
        mixed[v] = _mix(color[v])
    for v in range(n):
        total = np.uint64(0)
        for a in range(indptr[v0 + v], indptr[v0 + v + 1]):
            if len(weight_bits) > 0:
                total += _mix(mixed[neighbors[a]] ^ weight_bits[a])
            else:
                total += mixed[neighbors[a]]
        color[v] = _mix(color[v] ^ _mix(total))


@njit(cache=True, nogil=True, error_model="numpy")
def _number(color, table, distinct, class_):
    """Number the distinct colors as they appear; return how many there are.

    ``table`` is a hash table of at least `_table_size`; it is all -1 before and after.
    """
    size = _table_size(len(color))
    mask = np.uint64(size - 1)
    count = np.int32(0)
    for v in range(len(color)):
        slot = color[v] & mask
        while table[slot] >= 0 and distinct[table[slot]] != color[v]:
            slot = (slot + np.uint64(1)) & mask
        if table[slot] < 0:
            table[slot] = count
            distinct[count] = color[v]
            count += np.int32(1)
        class_[v] = table[slot]
    table[:size] = -1
    return count


@njit(cache=True, nogil=True, error_model="numpy")
def _table_size(n):
    """Give the power of two that is at least twice n."""
    size = 2
    while size < 2 * n:
        size *= 2
    return size
