"""Color refinement (1-WL) of each graph, with 64-bit hashes as colors.

A vertex' next color is a hash of its own and of the sum of its in-neighbors' mixed colors, so
a round costs one addition an arc and colors mean the same in every graph. Two vertices of one
graph of n vertices collide with a chance below ``rounds n^2 / 2^65``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

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
def refine(
    first, last, vertex_offsets, indptr, neighbors, weight_bits, colors, n_rounds,
    classes, n_classes, rounds, signatures,
):  # fmt: skip
    """Refine the graphs ``first`` to ``last`` until no class splits, and ``n_rounds`` at least.

    ``colors`` (N,) uint64 holds the first colors and gets the last; weight_bits (n_arcs,)
    uint64 or of length 0. Fills classes (N,): each vertex' class, numbered in its graph by
    ascending color; n_classes and rounds (n,); signatures (n,): a hash of the colors with
    their counts.
    """
    largest = 0
    for g in range(first, last):
        largest = max(largest, vertex_offsets[g + 1] - vertex_offsets[g])
    mixed = np.empty(largest, dtype=np.uint64)
    distinct = np.empty(largest, dtype=np.uint64)
    members = np.empty(largest, dtype=np.int64)
    n_slots = 2
    while n_slots < 2 * largest:
        n_slots *= 2
    table = np.full(n_slots, -1, dtype=np.int32)
    for g in range(first, last):
        v0 = vertex_offsets[g]
        n = vertex_offsets[g + 1] - v0
        color, class_ = colors[v0 : v0 + n], classes[v0 : v0 + n]
        count = _number(color, table, distinct, class_)
        t = 0
        while True:
            _round(v0, n, indptr, neighbors, weight_bits, color, mixed)
            t += 1
            before, count = count, _number(color, table, distinct, class_)
            if count == before and t >= n_rounds:
                break
        rounds[g] = t
        n_classes[g] = count
        order = np.argsort(distinct[:count])
        for c in range(count):
            members[order[c]] = c
        total = np.uint64(n)
        for v in range(n):
            class_[v] = members[class_[v]]
            total += _mix(color[v])
        signatures[g] = _mix(total ^ np.uint64(t))


@njit(cache=True, nogil=True, error_model="numpy")
def _round(v0, n, indptr, neighbors, weight_bits, color, mixed):
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

    ``table`` is a hash table with at least twice as many slots as there are vertices; it is all
    -1 before and after.
    """
    size = 2
    while size < 2 * len(color):
        size *= 2
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
