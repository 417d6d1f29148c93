"""Quotient graphs: one row per color class, laid out so that neighbors stand close together."""

from __future__ import annotations

import numpy as np
from numba import njit

_LANES = 16.0  # a diagonal of the band takes about one cycle for so many rows ...
_ARC = 1.2  # ... and an arc outside the band about so many cycles


@njit(cache=True, nogil=True, error_model="numpy")
def build(structure, classes, n_classes, graphs, quotient_of):
    """Build the quotients of some graphs; quotient k is that of ``graphs[k]``.

    ``structure`` is a `fdgnn.graphs.colors.Structure`, classes and n_classes are those of a
    `Coloring`, and quotient_of (n_graphs,) is the quotient of every graph. Returns
    row_of_vertex, row_offsets, representatives, sizes, indptr, sources, multiplicities and bands,
    as in `fdgnn.graphs.colors.Quotients`.

    Row r stands for the class of vertex ``representatives[r]``. The multiplicity of an arc is the
    summed weight of all arcs from the source class into one vertex. Rows are in breadth-first
    order from a vertex of low degree (Cuthill-McKee), and most arcs then lie within ``bands[k]``
    of the diagonal.
    """
    vertex_offsets, indptr, neighbors, weights = structure
    n = len(graphs)
    row_offsets = np.zeros(n + 1, dtype=np.int64)
    for k in range(n):
        row_offsets[k + 1] = row_offsets[k] + n_classes[graphs[k]]
    n_rows, most_arcs = row_offsets[n], 0
    places = np.empty(n_rows, dtype=np.int64)  # the row of each class, counted in its quotient
    representatives = np.empty(n_rows, dtype=np.int64)
    sizes = np.empty(n_rows)
    for k in range(n):
        g, r0 = graphs[k], row_offsets[k]
        _order_rows(
            vertex_offsets[g], vertex_offsets[g + 1], n_classes[g], r0, indptr, neighbors, classes,
            places, representatives, sizes,
        )  # fmt: skip
        for v in representatives[r0 : row_offsets[k + 1]]:
            most_arcs += indptr[v + 1] - indptr[v]
    row_indptr = np.zeros(n_rows + 1, dtype=np.int64)
    sources = np.empty(most_arcs, dtype=np.int32)
    multiplicities = np.empty(most_arcs)
    bands = np.empty(n, dtype=np.int64)
    totals = np.empty(n_classes.max())
    stamps = np.full(n_classes.max(), -1, dtype=np.int64)
    for k in range(n):
        v0, r0, r1 = vertex_offsets[graphs[k]], row_offsets[k], row_offsets[k + 1]
        for r in range(r0, r1):
            row_indptr[r + 1] = _merge_arcs(
                representatives[r], v0, r0, row_indptr[r], indptr, neighbors, weights, classes,
                places, totals, stamps, sources, multiplicities,
            )  # fmt: skip
        bands[k] = _band(r1 - r0, row_indptr[r0 : r1 + 1], sources)
    row_of_vertex = np.empty(len(classes), dtype=np.int64)
    for g in range(len(quotient_of)):
        r0 = row_offsets[quotient_of[g]]
        for v in range(vertex_offsets[g], vertex_offsets[g + 1]):
            row_of_vertex[v] = r0 + places[r0 + classes[v]]
    n_arcs = row_indptr[n_rows]
    return (
        row_of_vertex, row_offsets, representatives, sizes, row_indptr, sources[:n_arcs].copy(),
        multiplicities[:n_arcs].copy(), bands,
    )  # fmt: skip


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _order_rows(v0, v1, m, r0, indptr, neighbors, classes, places, representatives, sizes):
    """Put the classes of a graph in order; fill its part, from r0 on, of the last three arrays."""
    representative = np.full(m, -1, dtype=np.int64)
    size = np.zeros(m)
    for v in range(v0, v1):
        size[classes[v]] += 1.0
        if representative[classes[v]] < 0:
            representative[classes[v]] = v
    order = _breadth_first(v0, m, indptr, neighbors, classes, representative)
    for i in range(m):
        places[r0 + order[i]] = i
        representatives[r0 + i] = representative[order[i]]
        sizes[r0 + i] = size[order[i]]


@njit(cache=True, nogil=True, error_model="numpy")
def _merge_arcs(
    v, v0, r0, a, indptr, neighbors, weights, classes, places, totals, stamps, sources,
    multiplicities,
):  # fmt: skip
    """Write the arcs into vertex v, merged by the class of their source, from place a on.

    Returns the place after the last one. ``totals`` and ``stamps`` are scratch space.
    """
    start = a
    for b in range(indptr[v], indptr[v + 1]):
        j = places[r0 + classes[v0 + neighbors[b]]]
        if stamps[j] != v:
            stamps[j] = v
            totals[j] = 0.0
            sources[a] = j
            a += 1
        totals[j] += weights[b] if len(weights) > 0 else 1.0
    _sort(sources, start, a)
    for b in range(start, a):
        multiplicities[b] = totals[sources[b]]
    return a


@njit(cache=True, nogil=True, error_model="numpy")
def _breadth_first(v0, m, indptr, neighbors, classes, representative):
    """Give the classes in Cuthill-McKee order: by breadth, then by degree, then by number."""
    degree = np.empty(m, dtype=np.int64)
    for c in range(m):
        degree[c] = indptr[representative[c] + 1] - indptr[representative[c]]
    by_degree = np.argsort(degree, kind="mergesort")
    rank = np.empty(m, dtype=np.int64)
    for i in range(m):
        rank[by_degree[i]] = i
    order = np.empty(m, dtype=np.int64)
    queued = np.zeros(m, dtype=np.bool_)
    tail = 0
    for root in by_degree:
        if queued[root]:
            continue
        head = tail
        order[tail] = root
        tail += 1
        queued[root] = True
        while head < tail:
            v = representative[order[head]]
            head += 1
            start = tail
            for a in range(indptr[v], indptr[v + 1]):
                c = classes[v0 + neighbors[a]]
                if not queued[c]:
                    queued[c] = True
                    order[tail] = rank[c]
                    tail += 1
            _sort(order, start, tail)
            for i in range(start, tail):
                order[i] = by_degree[order[i]]
    return order


@njit(cache=True, nogil=True, error_model="numpy")
def _sort(values, start, end):
    """Sort a part of an array, mostly a short one, in place."""
    if end - start > 40:
        values[start:end] = np.sort(values[start:end])
        return
    for i in range(start + 1, end):
        value = values[i]
        j = i
        while j > start and values[j - 1] > value:
            values[j] = values[j - 1]
            j -= 1
        values[j] = value


@njit(cache=True, nogil=True, error_model="numpy")
def _band(m, row_indptr, sources):
    """Give the half-width of the band with the least cost of diagonals and arcs outside it."""
    at_distance = np.zeros(m, dtype=np.int64)
    for i in range(m):
        for a in range(row_indptr[i], row_indptr[i + 1]):
            at_distance[abs(i - sources[a])] += 1
    outside = row_indptr[m] - row_indptr[0]
    best, best_cost, width, n_diagonals = -1, _ARC * outside, -1, 0
    for d in range(m):
        width = d
        outside -= at_distance[d]
        if at_distance[d] > 0:
            n_diagonals += 2 if d > 0 else 1
        cost = n_diagonals * m / _LANES + _ARC * outside
        if cost < best_cost:
            best, best_cost = width, cost
    return best
