"""Fixed points in the order of a schedule, on blocks of quotient graphs that stay in cache."""

from __future__ import annotations

import numpy as np
from numba import njit

from fdgnn.kernels.blocks import LANES, N_DIAGONALS, N_GRAPHS, N_OUTSIDE, N_ROWS, allocate, load
from fdgnn.kernels.rows import (
    add_code,
    add_scaled,
    from_code,
    from_features,
    from_state,
    get,
    put,
    squared_step,
    sum_graphs,
    sum_neighbors,
    tanh_sum,
    undo,
)

_MAX_STEPS = 5000  # of a cycle; what is seen next to 1 is some hundreds


@njit(cache=True, nogil=True, error_model="numpy")
def solve_blocks(
    first, last, block_offsets, blocks, q, codes, features, weights, schedule, contractions,
    target, resolution, slots, pooled, n_steps, distances, states,
):  # fmt: skip
    """Solve the blocks ``first`` to ``last`` through all layers; fill the last four arrays.

    Block b has the quotients ``blocks[block_offsets[b]:block_offsets[b + 1]]`` of ``q``
    (`fdgnn.graphs.colors.Quotients`). The first layer reads ``codes`` (rows,), one-hot, or, if
    there are none, ``features`` (rows, U). ``weights`` are `fdgnn.reservoir.engine.Weights`, whose
    precision is that of the states, and ``schedule`` is a `fdgnn.reservoir.schedule.Schedule`.
    contractions (L, n) are the certificates, all below 1. A component is iterated until each
    graph's distance to its fixed point is proven below ``target``, or a sweep moves a vertex by
    less than ``resolution``. slots (L,) is a layer's place in pooled (n_slots, n_graphs, H), or
    -1; n_steps and distances (L, n); states (rows, n_slots, H), or of length 0 to keep none.
    """
    L, H = weights.bias.shape
    block = allocate(first, last, block_offsets, blocks, q, features, weights.bias)
    n, m = len(block.rows), block.totals.shape[1]
    X = np.zeros((2, H, n), dtype=weights.bias.dtype)
    S = np.zeros((H, n), dtype=weights.bias.dtype)
    sums = np.zeros((len(pooled), H, m))
    active = np.zeros(n, dtype=weights.bias.dtype)
    for b in range(first, last):
        load(block, blocks[block_offsets[b] : block_offsets[b + 1]], q, codes, features, LANES)
        for i in range(L):
            _solve_layer(
                block, weights, schedule, i, contractions[i], target, resolution, slots[i],
                X[(i + 1) % 2], X[i % 2], S, active, sums[slots[i]], n_steps[i], distances[i],
                states,
            )  # fmt: skip
        for slot in range(len(pooled)):
            for k in range(block.counts[N_GRAPHS]):
                g = q.graphs[block.graphs[k]]
                for h in range(H):
                    pooled[slot, g, h] = sums[slot, h, k]


@njit(cache=True, nogil=True, error_model="numpy")
def _solve_layer(
    block, weights, schedule, i, contractions, target, resolution, slot, below, here, S, active,
    sums, n_steps, distances, states,
):  # fmt: skip
    """Solve layer i on one block: components in topological order."""
    # Taken out of their tuples once: doing so counts references, and those atomic instructions
    # would cost as much as the arithmetic below.
    (
        counts, half, graphs, starts, size_starts, sizes, rows, codes, features, offsets,
        diagonals, outside, outside_weights, padded, x, argument, totals,
    ) = block  # fmt: skip
    first_sources, first_values, in_sources, in_values, rec_sources, rec_values, bias = weights
    order, components, layers, n_checked, period, summed, kept = schedule
    n, m = counts[N_ROWS], counts[N_GRAPHS]
    n_diagonals, n_outside = counts[N_DIAGONALS], counts[N_OUTSIDE]
    for c in range(layers[i], layers[i + 1]):
        a, b = components[c], components[c + 1]
        iterated = n_checked[c] > 0
        if iterated:
            active[:n] = 1.0
            for k in range(m):  # how much farther than a sweep the fixed point may be
                totals[2, k] = 1.0 / (1.0 - contractions[graphs[k]] ** period[c])
            for j in range(a, b):
                for v in range(n):
                    here[order[j], v] = 0.0
                    S[order[j], v] = 0.0
        max_sweeps = _MAX_STEPS // period[c] + 2 if iterated else 1
        sweep, n_active = 0, m
        while sweep < max_sweeps and n_active > 0:
            sweep += 1
            for j in range(a, b):
                h = order[j]
                # 1. x = tanh(W_I u + bias + sum_s W_H[h, s] A x_s), eq. 1
                drive(
                    n, i, h, first_sources, first_values, in_sources, in_values, bias, codes,
                    features, below, argument,
                )  # fmt: skip
                C = rec_sources.shape[2]
                for k in range(C - 1):
                    add_scaled(n, rec_values[i, h, k], S, rec_sources[i, h, k], argument)
                tanh_sum(n, argument, rec_values[i, h, C - 1], S, rec_sources[i, h, C - 1], x)
                # 2. In a component that is iterated: how far did it move?
                if iterated:
                    undo(n, active, here, h, x)
                    if j < a + n_checked[c]:
                        squared_step(n, x, here, h, argument)
                        sum_graphs(m, starts, size_starts, sizes, argument, totals, 0)
                        for k in range(m):
                            totals[1, k] = totals[0, k] + (totals[1, k] if j > a else 0.0)
                # 3. What others read of it.
                if iterated or kept[i, h]:
                    put(n, x, here, h)
                if summed[i, h]:
                    sum_neighbors(
                        n, half, padded, diagonals, offsets, n_diagonals, outside,
                        outside_weights, n_outside, S, h,
                    )  # fmt: skip
                # 4. Who is done?
                if iterated and j + 1 == a + n_checked[c]:
                    n_active = _freeze(
                        m, graphs, starts, period[c], sweep, sweep == max_sweeps,
                        target, resolution, totals, active, n_steps, distances,
                    )  # fmt: skip
                    if n_active == 0:
                        break
                if not iterated and slot >= 0:
                    sum_graphs(m, starts, size_starts, sizes, x, sums, h)
                    write(starts[m], rows, x, h, slot, states)
        if iterated and slot >= 0:
            for j in range(a, b):
                get(n, here, order[j], x)
                sum_graphs(m, starts, size_starts, sizes, x, sums, order[j])
                write(starts[m], rows, x, order[j], slot, states)


@njit(cache=True, nogil=True, error_model="numpy")
def drive(
    n, i, h, first_sources, first_values, in_sources, in_values, bias, codes, features, below,
    argument,
):  # fmt: skip
    """``argument = W_I u + bias`` of neuron h."""
    if i > 0:
        from_state(n, bias[i, h], in_values[i - 1, h, 0], below, in_sources[i - 1, h, 0], argument)
        for k in range(1, in_sources.shape[2]):
            add_scaled(n, in_values[i - 1, h, k], below, in_sources[i - 1, h, k], argument)
    elif len(features) > 0:
        from_features(n, bias[i, h], first_sources, first_values, h, features, argument)
    else:
        from_code(n, bias[i, h], first_values[h, 0], first_sources[h, 0], codes, argument)
        for k in range(1, first_sources.shape[1]):
            add_code(n, first_values[h, k], first_sources[h, k], codes, argument)


@njit(cache=True, nogil=True, error_model="numpy")
def _freeze(
    m, graphs, starts, period, sweep, is_last, target, resolution, totals, active,
    n_steps, distances,
):  # fmt: skip
    """Freeze the graphs that are close enough to the fixed point; count the others.

    A sweep contracts distances by ``r = contraction^period``, so states that it moves by d were
    ``d / (1 - r)`` away from the fixed point at most, and are no farther now. A frozen graph
    stays as it is, however long others in the block go on.
    """
    n_active = 0
    for k in range(m):
        if active[starts[k]] == 0.0:
            continue
        g = graphs[k]
        step = np.sqrt(totals[1, k])
        bound = step * totals[2, k]
        n_steps[g] = max(n_steps[g], sweep * period)
        if bound <= target or step <= resolution[g] or is_last:
            active[starts[k] : starts[k + 1]] = 0.0
            distances[g] = max(distances[g], bound)
        else:
            n_active += 1
    return n_active


@njit(cache=True, nogil=True, error_model="numpy")
def write(n, rows, x, h, slot, states):
    """Write the neuron's states out, if they are wanted."""
    if len(states) > 0:
        for v in range(n):
            states[rows[v], slot, h] = x[v]
