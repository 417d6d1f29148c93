"""Strongly connected components of a wiring, in the order in which they can be evaluated."""

from __future__ import annotations

import numpy as np
from numba import njit


@njit(cache=True, nogil=True, error_model="numpy")
def strong_components(indptr, sources):
    """Order neurons so that each component comes after all that it reads from.

    Row h of the CSR structure lists the neurons that h reads. Returns ``order`` (H,) and
    ``offsets`` (n_components + 1,). Inside a component that is one cycle, each neuron stands
    right after the one it reads, and the first reads the last (Tarjan's algorithm, with its
    stack unwound from the top).
    """
    H = len(indptr) - 1
    index = np.full(H, -1, dtype=np.int64)
    low = np.empty(H, dtype=np.int64)
    on_stack = np.zeros(H, dtype=np.bool_)
    stack = np.empty(H, dtype=np.int64)
    path = np.empty(H, dtype=np.int64)  # the call stack of the depth-first search
    next_arc = indptr[:-1].copy()
    order = np.empty(H, dtype=np.int64)
    offsets = np.zeros(H + 1, dtype=np.int64)
    n_visited = n_stacked = n_ordered = n_components = 0
    for root in range(H):
        if index[root] >= 0:
            continue
        depth = 0
        path[0] = root
        while depth >= 0:
            h = path[depth]
            if index[h] < 0:
                index[h] = low[h] = n_visited
                n_visited += 1
                stack[n_stacked] = h
                n_stacked += 1
                on_stack[h] = True
            if next_arc[h] < indptr[h + 1]:
                s = sources[next_arc[h]]
                next_arc[h] += 1
                if index[s] < 0:
                    depth += 1
                    path[depth] = s
                elif on_stack[s]:
                    low[h] = min(low[h], index[s])
                continue
            if low[h] == index[h]:
                while True:
                    n_stacked -= 1
                    s = stack[n_stacked]
                    on_stack[s] = False
                    order[n_ordered] = s
                    n_ordered += 1
                    if s == h:
                        break
                n_components += 1
                offsets[n_components] = n_ordered
            depth -= 1
            if depth >= 0:
                low[path[depth]] = min(low[path[depth]], low[h])
    return order, offsets[: n_components + 1]


@njit(cache=True, nogil=True, error_model="numpy")
def inner_arcs(indptr, sources, values, order, offsets):
    """Count each component's own arcs, and sum the logarithms of their absolute values."""
    n = len(offsets) - 1
    component = np.empty(len(order), dtype=np.int64)
    for c in range(n):
        component[order[offsets[c] : offsets[c + 1]]] = c
    n_arcs = np.zeros(n, dtype=np.int64)
    log_sums = np.zeros(n)
    for h in range(len(order)):
        c = component[h]
        for a in range(indptr[h], indptr[h + 1]):
            if component[sources[a]] == c:
                n_arcs[c] += 1
                log_sums[c] += np.log(abs(values[a]))
    return n_arcs, log_sums


@njit(cache=True, nogil=True, error_model="numpy")
def needed_components(sources, order, offsets, needed):
    """Drop the components that nobody needs; say how each of the others converges.

    sources (H, C); order and offsets are those of `strong_components`. In ``needed`` (H,) all
    that needed neurons read is marked as well. Returns order and offsets of what is left, and
    for each component ``n_checked`` and ``period``, see `fdgnn.reservoir.schedule.Schedule`.
    """
    n = len(offsets) - 1
    component = np.empty(len(order), dtype=np.int64)
    for c in range(n):
        component[order[offsets[c] : offsets[c + 1]]] = c
    wanted = np.zeros(n, dtype=np.bool_)
    inner = np.zeros(n, dtype=np.int64)  # arcs inside the component
    for c in range(n - 1, -1, -1):  # readers before what they read
        for h in order[offsets[c] : offsets[c + 1]]:
            wanted[c] |= needed[h]
        for h in order[offsets[c] : offsets[c + 1]]:
            needed[h] = wanted[c]
            for s in sources[h]:
                needed[s] |= wanted[c]
                inner[c] += component[s] == c
    kept = np.empty(len(order), dtype=np.int64)
    kept_offsets = np.zeros(n + 1, dtype=np.int64)
    n_checked = np.zeros(n, dtype=np.int64)
    period = np.ones(n, dtype=np.int64)
    k = 0
    for c in range(n):
        if not wanted[c]:
            continue
        size = offsets[c + 1] - offsets[c]
        kept_offsets[k + 1] = kept_offsets[k] + size
        kept[kept_offsets[k] : kept_offsets[k + 1]] = order[offsets[c] : offsets[c + 1]]
        if inner[c] == size:  # one cycle: its first neuron stands for all
            n_checked[k] = 1
            period[k] = size
        elif inner[c] > size:
            n_checked[k] = size
        k += 1
    return kept[: kept_offsets[k]], kept_offsets[: k + 1], n_checked[:k], period[:k]


@njit(cache=True, nogil=True, error_model="numpy")
def tree_heights(sources, order, offsets, n_checked):
    """Part the neurons into the core, which has dynamics, and the trees that only follow it.

    The core is the components that are iterated, with all that they read, directly or not.
    Returns ``core`` (H,) and ``heights`` (H,), the largest number of neurons outside the core
    that the state of a neuron travels over.
    """
    H = sources.shape[0]
    core = np.zeros(H, dtype=np.bool_)
    heights = np.zeros(H, dtype=np.int64)
    for c in range(len(offsets) - 2, -1, -1):  # readers before what they read
        for h in order[offsets[c] : offsets[c + 1]]:
            core[h] |= n_checked[c] > 0
        for h in order[offsets[c] : offsets[c + 1]]:
            for s in sources[h]:
                core[s] |= core[h]
                if not core[h]:
                    heights[s] = max(heights[s], heights[h] + 1)
    return core, heights
