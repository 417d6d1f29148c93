"""Colors of every round, and the counts of a graph's colors as rows of a sparse matrix.

A round is the reservoir's layer in exact arithmetic: with 64-bit integers in place of states, and a
fixed scrambler ``mix`` in place of weights and tanh::

    total(v)  = sum over arcs (u, v) of mix(mix(color(u)) ^ arc)
    color'(v) = mix(color(v) ^ mix(total(v)))

Sums do not depend on the order of neighbors, so colors do not depend on the numbering of vertices.
In directed graphs the arcs that leave v are summed, too, by themselves.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.hashing import mix, table_size
from fdgnn.kernels.offsets import longest

_SHORT = 64  # entries of a row up to which Shell's sort is the faster one
_OUTWARD = np.uint64(0xD1B54A32D192ED03)  # tells arcs that leave a vertex from those that enter it


@njit(cache=True, nogil=True, error_model="numpy")
def color_rounds(g0, g1, vertex_offsets, indptr, neighbors, arc_bits, directed, n_rounds, colors):
    """Color the graphs g0 to g1, channel by channel.

    ``n_rounds`` (C,) int64: rounds of each channel. ``colors`` (T, n) uint64 with T the sum of
    ``n_rounds + 1`` and n the vertices of these graphs: a channel has its first colors and then
    one row for each round; the first colors are given. ``arc_bits`` (n_arcs,) uint64, or of
    length 0.
    """
    base = vertex_offsets[g0]
    largest = longest(vertex_offsets[g0 : g1 + 1])
    mixed = np.empty(largest, dtype=np.uint64)
    outward = np.zeros(largest, dtype=np.uint64)
    for g in range(g0, g1):
        v0, n = vertex_offsets[g], vertex_offsets[g + 1] - vertex_offsets[g]
        row = 0
        for c in range(len(n_rounds)):
            for _ in range(n_rounds[c]):
                before = colors[row, v0 - base : v0 - base + n]
                after = colors[row + 1, v0 - base : v0 - base + n]
                _round(v0, n, indptr, neighbors, arc_bits, directed, before, after, mixed, outward)
                row += 1
            row += 1


@njit(cache=True, nogil=True, error_model="numpy")
def _round(v0, n, indptr, neighbors, arc_bits, directed, before, after, mixed, outward):
    """Give each vertex of one graph its next color; ``outward`` is zero before and after."""
    for v in range(n):
        mixed[v] = mix(before[v])
    for v in range(n):
        total = np.uint64(0)
        for a in range(indptr[v0 + v], indptr[v0 + v + 1]):
            u = neighbors[a]
            bits = arc_bits[a] if len(arc_bits) > 0 else np.uint64(0)
            total += mix(mixed[u] ^ bits) if len(arc_bits) > 0 else mixed[u]
            if directed:
                outward[u] += mix(mixed[v] ^ bits ^ _OUTWARD)
        after[v] = mix(before[v] ^ mix(total))
    if directed:
        for v in range(n):
            after[v] = mix(after[v] ^ outward[v])
            outward[v] = np.uint64(0)


@njit(cache=True, nogil=True, error_model="numpy")
def occurrences(color, table, number):
    """Count, for each vertex of one graph, the vertices before it that have its color.

    ``table`` is a hash table of at least `table_size` entries of vertices; it is all -1 before
    and after.
    """
    size = table_size(len(color))
    mask = np.uint64(size - 1)
    for v in range(len(color)):
        slot = color[v] & mask
        while table[slot] >= 0 and color[table[slot]] != color[v]:
            slot = (slot + np.uint64(1)) & mask
        number[v] = 0 if table[slot] < 0 else number[table[slot]] + 1
        table[slot] = v  # the last one seen knows the count
    table[:size] = -1


@njit(cache=True, nogil=True, error_model="numpy")
def number_occurrences(g0, g1, vertex_offsets, colors, numbers):
    """Fill numbers (T, n) int32 with `occurrences`, for colors (T, n) of the graphs g0 to g1."""
    base = vertex_offsets[g0]
    table = np.full(table_size(longest(vertex_offsets[g0 : g1 + 1])), -1, dtype=np.int32)
    for g in range(g0, g1):
        a, b = vertex_offsets[g] - base, vertex_offsets[g + 1] - base
        for t in range(len(colors)):
            occurrences(colors[t, a:b], table, numbers[t, a:b])


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def feature_key(color, number):
    """Name the feature "there are more than ``number`` vertices of this color"."""
    return mix(color + np.uint64(number))


@njit(cache=True, nogil=True, error_model="numpy")
def pack_rows(g0, g1, vertex_offsets, colors, numbers, mask, present, indices, data, lengths):
    """Write the features of the graphs g0 to g1 as rows of a sparse matrix, columns ascending.

    A vertex gives one feature for each row of colors (T, n); numbers (T, n) are `occurrences`, or
    have no rows if features count vertices of a color instead of telling them apart. The row of g0
    begins at ``T * vertex_offsets[g0]`` of ``indices`` and ``data``, each other one where the one
    before ends; row g has ``lengths[g]`` entries. With ``present`` all entries are 1.
    """
    base, T = vertex_offsets[g0], len(colors)
    spare = np.empty(T * longest(vertex_offsets[g0 : g1 + 1]), dtype=np.int32)
    start = T * base
    for g in range(g0, g1):
        v0, v1 = vertex_offsets[g], vertex_offsets[g + 1]
        end = start
        for t in range(T):
            for v in range(v0 - base, v1 - base):
                number = numbers[t, v] if len(numbers) > 0 else 0
                indices[end] = np.int32(feature_key(colors[t, v], number) & mask)
                end += 1
        if end - start > _SHORT:
            _sort_long(indices[start:end], spare[: end - start], mask)
        else:
            _sort(indices, start, end)
        lengths[g] = _merge(indices, data, start, end, present)
        start += lengths[g]


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(values, start, end):
    """Sort a part of an array in place (Shell's method, which needs no memory)."""
    gap = 1
    while 9 * gap < 4 * (end - start):
        gap = (9 * gap) // 4 + 1
    while gap > 0:
        for i in range(start + gap, end):
            value = values[i]
            j = i
            while j >= start + gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap = 0 if gap == 1 else (4 * gap) // 9


@njit(cache=True, nogil=True, error_model="numpy")
def _sort_long(values, spare, largest):
    """Sort by ten bits at a time, the lowest first: as many steps for each entry at any length."""
    starts = np.empty(1025, dtype=np.int64)
    shift = np.uint64(0)
    while (largest >> shift) > np.uint64(0):
        starts[:] = 0
        for value in values:
            starts[((value >> shift) & 1023) + 1] += 1
        for i in range(1024):
            starts[i + 1] += starts[i]
        for value in values:
            digit = (value >> shift) & 1023
            spare[starts[digit]] = value
            starts[digit] += 1
        values[:] = spare
        shift += np.uint64(10)


@njit(cache=True, nogil=True, error_model="numpy")
def _merge(indices, data, start, end, present):
    """Add up entries of one column in a sorted row; return how many are left."""
    last = start - 1
    for i in range(start, end):
        if last >= start and indices[last] == indices[i]:
            if not present:
                data[last] += 1.0
        else:
            last += 1
            indices[last] = indices[i]
            data[last] = 1.0
    return last + 1 - start


@njit(cache=True, nogil=True, error_model="numpy")
def count_triangles(g0, g1, vertex_offsets, indptr, neighbors, counts):
    """Count the triangles at each vertex of the graphs g0 to g1; loops are left out.

    Neighbor lists ascend. For a directed graph the arcs that enter a vertex are its neighbors.
    """
    marked = np.full(longest(vertex_offsets[g0 : g1 + 1]), -1, dtype=np.int64)
    for g in range(g0, g1):
        v0, n = vertex_offsets[g], vertex_offsets[g + 1] - vertex_offsets[g]
        for v in range(n):
            row = neighbors[indptr[v0 + v] : indptr[v0 + v + 1]]
            for u in row:
                marked[u] = v0 + v
            marked[v] = -1
            found = 0
            for u in row:
                if u != v:
                    for a in range(indptr[v0 + u], indptr[v0 + u + 1]):
                        w = neighbors[a]
                        found += marked[w] == v0 + v and w != u
            counts[v0 + v] = found // 2
