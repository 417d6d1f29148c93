"""Quotient graphs: one row a color class, laid out so that neighbors stand close together."""

from __future__ import annotations

import numpy as np
from numba import njit

_LANES = 16.0  # a diagonal of the band costs about one lane of a vector a row ...
_ARC = 1.2  # ... and an arc outside the band about this many cycles


@njit(cache=True, nogil=True, error_model="numpy")
def count_arcs(first, last, chosen, vertex_offsets, indptr, neighbors, classes, n_classes, counts):
    """For the graphs ``chosen[first:last]``: fill counts with the arcs of their quotients."""
    stamp = np.full(n_classes.max(), -1, dtype=np.int64)
    seen = np.zeros(n_classes.max(), dtype=np.bool_)
    for k in range(first, last):
        g = chosen[k]
        v0 = vertex_offsets[g]
        seen[: n_classes[g]] = False
        for v in range(v0, vertex_offsets[g + 1]):
            if seen[classes[v]]:
                continue
            seen[classes[v]] = True
            for a in range(indptr[v], indptr[v + 1]):
                c = classes[v0 + neighbors[a]]
                counts[k] += stamp[c] != v
                stamp[c] = v


@njit(cache=True, nogil=True, error_model="numpy")
def build(
    first, last, chosen, vertex_offsets, indptr, neighbors, weights, classes, n_classes,
    row_offsets, arc_offsets, rows_of_classes, representatives, sizes, row_indptr, sources,
    multiplicities, bands,
):  # fmt: skip
    """Build the quotients of the graphs ``chosen[first:last]``; fill the last seven arrays.

    Row r of quotient k stands for the class of vertex ``representatives[r]``, which has
    ``sizes[r]`` vertices; an arc's multiplicity is the summed weight of all arcs from the source
    class into one vertex. ``rows_of_classes[row_offsets[k] + c]`` is the row of class c. Rows are
    in breadth-first order from a vertex of low degree (Cuthill-McKee), and most arcs then lie
    within ``bands[k]`` of the diagonal.
    """
    most = n_classes.max()
    representative = np.empty(most, dtype=np.int64)
    size = np.empty(most)
    place = np.empty(most, dtype=np.int64)
    total = np.empty(most)
    stamp = np.full(most, -1, dtype=np.int64)
    for k in range(first, last):
        g = chosen[k]
        v0, m, r0 = vertex_offsets[g], n_classes[g], row_offsets[k]
        representative[:m] = -1
        size[:m] = 0.0
        for v in range(v0, vertex_offsets[g + 1]):
            c = classes[v]
            size[c] += 1.0
            if representative[c] < 0:
                representative[c] = v
        order = _breadth_first(v0, m, indptr, neighbors, classes, representative)
        for i in range(m):
            place[order[i]] = i
            rows_of_classes[r0 + order[i]] = i
        a = arc_offsets[k]
        for i in range(m):
            v = representative[order[i]]
            representatives[r0 + i] = v
            sizes[r0 + i] = size[order[i]]
            start = a
            for b in range(indptr[v], indptr[v + 1]):
                j = place[classes[v0 + neighbors[b]]]
                if stamp[j] != v:
                    stamp[j] = v
                    total[j] = 0.0
                    sources[a] = j
                    a += 1
                total[j] += weights[b] if len(weights) > 0 else 1.0
            _sort(sources, start, a)
            for b in range(start, a):
                multiplicities[b] = total[sources[b]]
            row_indptr[r0 + i + 1] = a
        bands[k] = _band(m, row_indptr[r0 : r0 + m + 1], sources)


@njit(cache=True, nogil=True, error_model="numpy")
def _breadth_first(v0, m, indptr, neighbors, classes, representative):
    """Classes in Cuthill-McKee order: by breadth, then by degree, then by number."""
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
    """Sort a stretch of an array, mostly a short one, in place."""
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
    """Half-width of the band for which diagonals and arcs outside it cost least together."""
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
