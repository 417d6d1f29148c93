"""Color refinement (1-WL) of each graph, with 64-bit hashes as colors.

The next color of a vertex is a hash of its own color and of the sum of the mixed colors of its
in-neighbors. So a round costs one addition per arc, and colors mean the same in every graph. Two
vertices of one graph of n vertices collide with a chance below ``rounds n^2 / 2^65``.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.hashing import mix, table_size
from fdgnn.kernels.offsets import longest


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
    table = np.full(table_size(largest), -1, dtype=np.int32)
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
        total += mix(color[v])
    return mix(total ^ np.uint64(n_rounds))


@njit(cache=True, nogil=True, error_model="numpy")
def _round(v0, n, indptr, neighbors, weight_bits, color, mixed):
    """Give each vertex of one graph its next color."""
    for v in range(n):
        mixed[v] = mix(color[v])
    for v in range(n):
        total = np.uint64(0)
        for a in range(indptr[v0 + v], indptr[v0 + v + 1]):
            if len(weight_bits) > 0:
                total += mix(mixed[neighbors[a]] ^ weight_bits[a])
            else:
                total += mixed[neighbors[a]]
        color[v] = mix(color[v] ^ mix(total))


@njit(cache=True, nogil=True, error_model="numpy")
def _number(color, table, distinct, class_):
    """Number the distinct colors as they appear; return how many there are.

    ``table`` is a hash table of at least `table_size`; it is all -1 before and after.
    """
    size = table_size(len(color))
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
