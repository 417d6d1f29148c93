"""The paper's iteration in float64, evaluating only the states that its result depends on.

The literal loop gives the states after T steps from zero. A neuron outside the core (see
`fdgnn.kernels.wiring.tree_heights`) needs its source's state one step earlier, which needs its
own source's another step earlier, down to the core: it has to be evaluated at a few last steps
only. The core is followed step by step. T is the literal loop's: the core alone moving by more
than epsilon proves that the loop has not stopped, and when it no longer does, all neurons are
brought to that step and from there iterated literally.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.blocks import N_DIAGONALS, N_OUTSIDE, N_ROWS, allocate, load
from fdgnn.kernels.rows import (
    add_scaled,
    get,
    put,
    squared_step,
    sum_graphs,
    sum_neighbors,
    tanh_sum,
)
from fdgnn.kernels.scheduled import drive, write


@njit(cache=True, nogil=True, error_model="numpy")
def follow_graphs(
    first, last, graphs, q, codes, features, weights, schedule, core, heights, eps, max_iter,
    slots, pooled, n_steps, distances, states,
):  # fmt: skip
    """Follow the quotients ``graphs[first:last]`` through all layers; fill the last four arrays.

    core and heights (L, H). Arguments are otherwise those of
    `fdgnn.kernels.scheduled.solve_blocks`, with weights in float64.
    """
    L, H = weights.bias.shape
    one_each = np.arange(len(graphs) + 1)
    block = allocate(first, last, one_each, graphs, q, features, weights.bias)
    n = len(block.rows)
    window = heights.max() + 3  # steps of the core that are remembered
    base = np.empty((L, H), dtype=np.int64)
    n_rows = 0
    for i in range(L):
        row = 0
        for h in range(H):
            base[i, h] = row
            row += window if core[i, h] else heights[i, h] + 1
        n_rows = max(n_rows, row)
    past = np.zeros((n_rows, n))
    X = np.zeros((2, H, n))
    S = np.zeros((2, H, n))
    total = np.zeros((1, 1))
    for k in range(first, last):
        g = graphs[k]
        load(block, graphs[k : k + 1], q, codes, features, 4)
        for i in range(L):
            _follow_layer(
                block, weights, schedule, core[i], heights[i], base[i], window, i, eps, max_iter,
                X[(i + 1) % 2], X[i % 2], S, past, total, n_steps[i], distances[i],
            )  # fmt: skip
            if slots[i] >= 0:
                for h in range(H):
                    get(block.counts[N_ROWS], X[i % 2], h, block.x)
                    sum_graphs(1, block.starts, block.size_starts, block.sizes, block.x, total, 0)
                    pooled[slots[i], q.graphs[g], h] = total[0, 0]
                    write(block.starts[1], block.rows, block.x, h, slots[i], states)


@njit(cache=True, nogil=True, error_model="numpy")
def _follow_layer(
    block, weights, schedule, core, heights, base, window, i, eps, max_iter, below, here, S, past,
    total, n_steps, distances,
):  # fmt: skip
    """Bring layer i of one graph to the state at which the literal loop stops."""
    (
        counts, half, graphs, starts, size_starts, sizes, _, codes, features, offsets,
        diagonals, outside, outside_weights, padded, x, argument, _,
    ) = block  # fmt: skip
    first_sources, first_values, in_sources, in_values, rec_sources, rec_values, bias = weights
    order, components, layers, _, _, summed, _ = schedule
    C = rec_sources.shape[2]
    n, n_diagonals, n_outside = counts[N_ROWS], counts[N_DIAGONALS], counts[N_OUTSIDE]
    evaluated = order[components[layers[i]] : components[layers[i + 1]]]
    here[:, :n] = 0.0
    past[:, :n] = 0.0
    step, square = 0, np.inf
    # 1. The core, step by step, as long as it moves on its own.
    while step < max_iter and square >= eps * eps:
        step += 1
        square = 0.0
        for h in evaluated:
            if not core[h]:
                continue
            drive(
                n, i, h, first_sources, first_values, in_sources, in_values, bias, codes,
                features, below, argument,
            )  # fmt: skip
            for k in range(C - 1):
                row = base[rec_sources[i, h, k]] + (step - 1) % window
                add_scaled(n, rec_values[i, h, k], past, row, argument)
            row = base[rec_sources[i, h, C - 1]] + (step - 1) % window
            tanh_sum(n, argument, rec_values[i, h, C - 1], past, row, x)
            squared_step(n, x, here, h, argument)
            sum_graphs(1, starts, size_starts, sizes, argument, total, 0)
            square += total[0, 0]
            put(n, x, here, h)
            sum_neighbors(
                n, half, padded, diagonals, offsets, n_diagonals, outside, outside_weights,
                n_outside, past, base[h] + step % window,
            )  # fmt: skip
    # 2. The trees, from the core outwards: the last steps that those further out will ask for.
    for h in evaluated:
        if core[h]:
            continue
        for ago in range(min(heights[h] + 1, step - 1), -1, -1):
            drive(
                n, i, h, first_sources, first_values, in_sources, in_values, bias, codes,
                features, below, argument,
            )  # fmt: skip
            for k in range(C):
                s = rec_sources[i, h, k]
                row = base[s] + ((step - ago - 1) % window if core[s] else ago)
                if k < C - 1:
                    add_scaled(n, rec_values[i, h, k], past, row, argument)
                else:
                    tanh_sum(n, argument, rec_values[i, h, k], past, row, x)
            if ago == 0:
                squared_step(n, x, here, h, argument)
                sum_graphs(1, starts, size_starts, sizes, argument, total, 0)
                square += total[0, 0]
            elif heights[h] > 0:
                sum_neighbors(
                    n, half, padded, diagonals, offsets, n_diagonals, outside, outside_weights,
                    n_outside, past, base[h] + ago - 1,
                )  # fmt: skip
            put(n, x, here, h)
    # 3. All neurons, literally, if the loop would go on.
    old, new = S[0], S[1]
    if step < max_iter and square >= eps * eps:
        for h in evaluated:
            get(n, here, h, x)
            sum_neighbors(
                n, half, padded, diagonals, offsets, n_diagonals, outside, outside_weights,
                n_outside, old, h,
            )  # fmt: skip
    while step < max_iter and square >= eps * eps:
        step += 1
        square = 0.0
        for h in evaluated:
            drive(
                n, i, h, first_sources, first_values, in_sources, in_values, bias, codes,
                features, below, argument,
            )  # fmt: skip
            for k in range(C - 1):
                add_scaled(n, rec_values[i, h, k], old, rec_sources[i, h, k], argument)
            tanh_sum(n, argument, rec_values[i, h, C - 1], old, rec_sources[i, h, C - 1], x)
            squared_step(n, x, here, h, argument)
            sum_graphs(1, starts, size_starts, sizes, argument, total, 0)
            square += total[0, 0]
            put(n, x, here, h)
            if summed[i, h]:
                sum_neighbors(
                    n, half, padded, diagonals, offsets, n_diagonals, outside, outside_weights,
                    n_outside, new, h,
                )  # fmt: skip
        old, new = new, old
    n_steps[graphs[0]] = step
    distances[graphs[0]] = np.sqrt(square)
