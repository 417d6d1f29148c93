"""The paper's iteration in float64, evaluating only the states that its result depends on.

The literal loop gives the states after T steps from zero. A neuron outside the core (see
`fdgnn.kernels.wiring.tree_heights`) needs the state of its source one step earlier, which needs
that of its own source another step earlier, and so on down to the core. So it is evaluated at a
few last steps only. The core is followed step by step. T is that of the literal loop: as long as
the core alone moves by epsilon or more, the loop has not stopped. When it no longer does, all
neurons are brought to that step and from there iterated literally.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fdgnn.kernels.blocks import N_ROWS, allocate, load
from fdgnn.kernels.rows import (
    activate,
    drive,
    get,
    put,
    squared_step,
    sum_graphs,
    sum_neighbors,
    write,
)


class FollowedLayer(NamedTuple):
    """One layer on one graph: its wiring, its drive and its states."""

    neurons: Any  # in the order of evaluation
    rec_sources: Any  # W_H (H, C)
    rec_values: Any
    D: Any  # (H + 1, n_rows) W_I u + bias, and a row of scratch space
    X: Any  # (H, n_rows) the last states
    past: Any  # (n_past, n_rows) A X at earlier steps
    core: Any  # (H,) does the neuron have dynamics?
    heights: Any  # (H,) over how many neurons outside the core its state travels on
    first_rows: Any  # (H,) where the neuron begins in `past`
    window: int  # how many steps of the core are remembered
    places: Any  # (1, C) scratch: the rows of `past` that a neuron reads


@njit(cache=True, nogil=True, error_model="numpy")
def follow_graphs(
    first, last, graphs, q, codes, features, weights, schedule, trees, eps, max_iter, slots, out
):
    """Follow the quotients ``graphs[first:last]`` through all layers; fill ``out``.

    ``schedule`` evaluates all neurons, ``trees`` is a `fdgnn.reservoir.schedule.Trees`, slots
    (L,) is the place of each layer in the output or -1. The other arguments are those of
    `fdgnn.kernels.scheduled.solve_blocks`, with weights in float64.
    """
    L, H = weights.bias.shape
    one_each = np.arange(len(graphs) + 1)
    block = allocate(first, last, one_each, graphs, q, codes, features, weights.bias)
    n = len(block.rows)
    past = np.zeros((trees.n_rows, n))
    D = np.zeros((H + 1, n))
    X = np.zeros((2, H, n))
    S = np.zeros((2, H, n))
    places = np.zeros((1, weights.rec_sources.shape[2]), dtype=np.int32)
    for k in range(first, last):
        load(block, graphs[k : k + 1], q, codes, features, 4)
        for i in range(L):
            a, b = schedule.layers[i], schedule.layers[i + 1]
            layer = FollowedLayer(
                schedule.order[schedule.components[a] : schedule.components[b]],
                weights.rec_sources[i], weights.rec_values[i], D, X[i % 2], past,
                trees.core[i], trees.heights[i], trees.first_rows[i], trees.window, places,
            )  # fmt: skip
            _drive_layer(i, block, layer, weights, X[(i + 1) % 2])
            step, square = _follow_layer(block, layer, schedule.summed[i], S, eps, max_iter)
            out.n_iter[i, graphs[k]] = step
            out.residual[i, graphs[k]] = np.sqrt(square)
            if slots[i] >= 0:
                _pool(block, layer, slots[i], out)


@njit(cache=True, nogil=True, error_model="numpy")
def _drive_layer(i, block, layer, weights, below):
    """``D = W_I u + bias`` of all neurons; the states start from zero."""
    n = block.counts[N_ROWS]
    layer.X[:, :n] = 0.0
    layer.past[:, :n] = 0.0
    W_I = weights.first_sources if i == 0 else weights.in_sources[i - 1]
    values = weights.first_values if i == 0 else weights.in_values[i - 1]
    codes = block.codes if i == 0 else block.codes[:0]
    features = block.features if i == 0 else block.features[:0]
    bias, D = weights.bias[i], layer.D
    for h in layer.neurons:
        drive(n, h, W_I, values, bias, codes, features, below, D, h)


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_layer(block, layer, summed, S, eps, max_iter):
    """Bring the layer to the state at which the literal loop stops: its step and last move."""
    step, square = _follow_core(block, layer, eps, max_iter)
    square = _follow_trees(block, layer, step, square)
    return _follow_all(block, layer, summed, S, step, square, eps, max_iter)


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_core(block, layer, eps, max_iter):
    """Iterate the core, ``x' = tanh(D + W_H A x)``, as long as it moves by eps or more."""
    neurons, sources, values, D, X, past, core, _, first_rows, window, places = layer
    counts, _, starts, size_starts, sizes, _, _, _, band, x, squares, totals = block
    n = counts[N_ROWS]
    step, square = 0, np.inf
    while step < max_iter and square >= eps * eps:
        step += 1
        square = 0.0
        for h in neurons:
            if core[h]:
                for k in range(sources.shape[1]):
                    places[0, k] = first_rows[sources[h, k]] + (step - 1) % window
                activate(n, D, h, values, h, places, 0, past, x)
                square += _move(n, x, X, h, starts, size_starts, sizes, squares, totals)
                sum_neighbors(n, band, past, first_rows[h] + step % window)
    return step, square


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_trees(block, layer, step, square):
    """Evaluate the trees from the core outward, at the last steps that those farther out need.

    Returns ``square``, the move of the core in the last step, with that of the trees added.
    """
    neurons, sources, values, D, X, past, core, heights, first_rows, window, places = layer
    counts, _, starts, size_starts, sizes, _, _, _, band, x, squares, totals = block
    n = counts[N_ROWS]
    for h in neurons:
        if core[h]:
            continue
        for ago in range(min(heights[h] + 1, step - 1), -1, -1):
            for k in range(sources.shape[1]):
                s = sources[h, k]
                places[0, k] = first_rows[s] + ((step - ago - 1) % window if core[s] else ago)
            activate(n, D, h, values, h, places, 0, past, x)
            if ago == 0:
                square += _move(n, x, X, h, starts, size_starts, sizes, squares, totals)
                continue
            put(n, x, X, h)
            if heights[h] > 0:
                sum_neighbors(n, band, past, first_rows[h] + ago - 1)
    return square


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_all(block, layer, summed, S, step, square, eps, max_iter):
    """Iterate all neurons literally, if the loop goes on."""
    neurons, sources, values, D, X, _, _, _, _, _, _ = layer
    counts, _, starts, size_starts, sizes, _, _, _, band, x, squares, totals = block
    n = counts[N_ROWS]
    old, new = S[0], S[1]
    if step < max_iter and square >= eps * eps:
        for h in neurons:
            get(n, X, h, x)
            sum_neighbors(n, band, old, h)
    while step < max_iter and square >= eps * eps:
        step += 1
        square = 0.0
        for h in neurons:
            activate(n, D, h, values, h, sources, h, old, x)
            square += _move(n, x, X, h, starts, size_starts, sizes, squares, totals)
            if summed[h]:
                sum_neighbors(n, band, new, h)
        old, new = new, old
    return step, square


@njit(cache=True, nogil=True, error_model="numpy")
def _move(n, x, X, h, starts, size_starts, sizes, squares, totals):
    """Set X_h to x; return the squared distance that it moved, summed over vertices."""
    squared_step(n, x, X, h, squares)
    sum_graphs(1, starts, size_starts, sizes, squares, totals, 0)
    put(n, x, X, h)
    return totals[0, 0]


@njit(cache=True, nogil=True, error_model="numpy")
def _pool(block, layer, slot, out):
    """Sum the last states over the vertices, and write them out if they are wanted."""
    for h in range(len(layer.X)):
        get(block.counts[N_ROWS], layer.X, h, block.x)
        sum_graphs(1, block.starts, block.size_starts, block.sizes, block.x, block.totals, 0)
        out.pooled[slot, block.graphs[0], h] = block.totals[0, 0]
        write(block.starts[1], block.rows, block.x, h, slot, out.states)
