"""Fixed points in the order of a schedule, on blocks of quotient graphs that stay in cache.

Arrays are taken out of their tuples before a loop over neurons, not inside it: taking one out
counts references, and those atomic instructions would cost as much as the arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fdgnn.kernels.blocks import LANES, N_GRAPHS, N_ROWS, allocate, load
from fdgnn.kernels.offsets import longest
from fdgnn.kernels.rows import (
    activate,
    drive,
    get,
    put,
    squared_step,
    sum_graphs,
    sum_neighbors,
    undo,
    write,
)

_MAX_STEPS = 5000  # of a cycle; even next to the limit of stability it takes some hundreds


class SolvedLayer(NamedTuple):
    """One layer on one block: its weights, its input and its states."""

    in_sources: Any  # W_I (H, C)
    in_values: Any
    rec_sources: Any  # W_H (H, C)
    rec_values: Any
    bias: Any  # (H,)
    codes: Any  # (n_rows,): the input is one-hot; else empty
    features: Any  # (n_rows, U): the input is real; else empty
    below: Any  # (H, n_rows) X of the layer below
    here: Any  # (H, n_rows) X of this layer
    S: Any  # (H, n_rows) A X
    summed: Any  # (H,) is the row of S read?
    kept: Any  # (H,) does the next layer read the neuron?
    slot: int  # the place of the layer in `sums` and `states`, or -1
    sums: Any  # (H, n_graphs) states summed over each graph
    states: Any  # (n_rows, n_slots, H), or empty


@njit(cache=True, nogil=True, error_model="numpy")
def solve_blocks(
    first, last, block_offsets, blocks, q, codes, features, weights, schedule, goal, out
):
    """Solve the blocks ``first`` to ``last`` through all layers; fill ``out``.

    Block b has the quotients ``blocks[block_offsets[b]:block_offsets[b + 1]]`` of ``q``
    (`fdgnn.graphs.colors.Quotients`). The first layer reads ``codes`` (rows,), one-hot, or, if
    there are none, ``features`` (rows, U). ``weights`` (`fdgnn.reservoir.weights.Weights`) have
    the precision of the states. ``schedule`` is a `fdgnn.reservoir.schedule.Schedule`. ``goal``
    and ``out`` are `Goal` and `Outputs` of `fdgnn.reservoir.engine`.
    """
    L, H = weights.bias.shape
    block = allocate(first, last, block_offsets, blocks, q, codes, features, weights.bias)
    n, m = len(block.rows), block.totals.shape[1]
    X = np.zeros((2, H, n), dtype=weights.bias.dtype)
    S = np.zeros((H, n), dtype=weights.bias.dtype)
    D = np.zeros((longest(schedule.components) + 1, n), dtype=weights.bias.dtype)
    active = np.zeros(n, dtype=weights.bias.dtype)
    sums = np.zeros((len(out.pooled), H, m))
    for b in range(first, last):
        load(block, blocks[block_offsets[b] : block_offsets[b + 1]], q, codes, features, LANES)
        for i in range(L):
            slot = schedule.slots[i]
            layer = SolvedLayer(
                weights.first_sources if i == 0 else weights.in_sources[i - 1],
                weights.first_values if i == 0 else weights.in_values[i - 1],
                weights.rec_sources[i], weights.rec_values[i], weights.bias[i],
                block.codes if i == 0 else block.codes[:0],
                block.features if i == 0 else block.features[:0],
                X[(i + 1) % 2], X[i % 2], S, schedule.summed[i], schedule.kept[i],
                slot, sums[slot], out.states,
            )  # fmt: skip
            _solve_layer(i, block, layer, schedule, goal, D, active, out)
        _pool(block, sums, out.pooled)


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def _solve_layer(i, block, layer, schedule, goal, D, active, out):
    """Solve layer i on one block: its components in topological order."""
    c, end = schedule.layers[i], schedule.layers[i + 1]
    while c < end:
        a = schedule.components[c]
        if schedule.n_checked[c] > 0:
            c += 1
            neurons = schedule.order[a : schedule.components[c]]
            checked, period = schedule.n_checked[c - 1], schedule.period[c - 1]
            _settle(neurons, checked, period, block, layer, goal, i, D, active, out)
        else:  # and all neurons up to the next component that is iterated
            while c < end and schedule.n_checked[c] == 0:
                c += 1
            _evaluate(schedule.order[a : schedule.components[c]], block, layer, D)


@njit(cache=True, nogil=True, error_model="numpy")
def _evaluate(neurons, block, layer, D):
    """Evaluate neurons once, since all that they read is final."""
    counts, _, starts, size_starts, sizes, rows, _, _, band, x, _, _ = block
    (
        in_sources, in_values, rec_sources, rec_values, bias, codes, features, below, here, S,
        summed, kept, slot, sums, states,
    ) = layer  # fmt: skip
    n, m, d = counts[N_ROWS], counts[N_GRAPHS], len(D) - 1
    for h in neurons:
        # x = tanh(W_I u + bias + sum_s W_H[h, s] A x_s), eq. 1
        drive(n, h, in_sources, in_values, bias, codes, features, below, D, d)
        activate(n, D, d, rec_values, h, rec_sources, h, S, x)
        if kept[h]:
            put(n, x, here, h)
        if summed[h]:
            sum_neighbors(n, band, S, h)
        if slot >= 0:
            sum_graphs(m, starts, size_starts, sizes, x, sums, h)
            write(starts[m], rows, x, h, slot, states)


@njit(cache=True, nogil=True, error_model="numpy")
def _settle(neurons, n_checked, period, block, layer, goal, i, D, active, out):
    """Sweep over a component that reads itself, until each graph is near its fixed point."""
    (
        counts, graphs, starts, size_starts, sizes, rows, _, _, band, x, squares, totals,
    ) = block  # fmt: skip
    (
        in_sources, in_values, rec_sources, rec_values, bias, codes, features, below, here, S,
        summed, _, slot, sums, states,
    ) = layer  # fmt: skip
    contractions, target, resolution = goal
    n_iter, residual = out.n_iter[i], out.residual[i]
    n, m = counts[N_ROWS], counts[N_GRAPHS]
    active[:n] = 1.0
    for k in range(m):  # how much farther than a sweep moves it the fixed point may be
        totals[2, k] = 1.0 / (1.0 - contractions[i, graphs[k]] ** period)
    for j in range(len(neurons)):
        drive(n, neurons[j], in_sources, in_values, bias, codes, features, below, D, j)
        here[neurons[j], :n] = 0.0
        S[neurons[j], :n] = 0.0
    max_sweeps = _MAX_STEPS // period + 2
    sweep, n_active = 0, m
    while sweep < max_sweeps and n_active > 0:
        sweep += 1
        for j in range(len(neurons)):
            h = neurons[j]
            # 1. x = tanh(W_I u + bias + sum_s W_H[h, s] A x_s), eq. 1, if the graph still moves
            activate(n, D, j, rec_values, h, rec_sources, h, S, x)
            undo(n, active, here, h, x)
            # 2. How far did it move?
            if j < n_checked:
                squared_step(n, x, here, h, squares)
                sum_graphs(m, starts, size_starts, sizes, squares, totals, 0)
                for k in range(m):
                    totals[1, k] = totals[0, k] + (totals[1, k] if j > 0 else 0.0)
            # 3. What others read of it.
            put(n, x, here, h)
            if summed[h]:
                sum_neighbors(n, band, S, h)
            # 4. Which graphs are done?
            if j + 1 == n_checked:
                n_active = _freeze(
                    m, graphs, starts, sweep * period, sweep == max_sweeps, target, resolution,
                    totals, active, n_iter, residual,
                )  # fmt: skip
                if n_active == 0:
                    break
    if slot >= 0:
        for h in neurons:
            get(n, here, h, x)
            sum_graphs(m, starts, size_starts, sizes, x, sums, h)
            write(starts[m], rows, x, h, slot, states)


@njit(cache=True, nogil=True, error_model="numpy")
def _freeze(
    m, graphs, starts, n_steps, is_last, target, resolution, totals, active, n_iter, residual
):
    """Freeze the graphs that are close enough to the fixed point; count the others.

    A sweep contracts distances by ``r = contraction^period``. So states that it moves by d were
    at most ``d / (1 - r)`` away from the fixed point, and are no farther now. A frozen graph
    stays as it is, however long others in the block go on.
    """
    n_active = 0
    for k in range(m):
        if active[starts[k]] == 0.0:
            continue
        g = graphs[k]
        step = np.sqrt(totals[1, k])
        bound = step * totals[2, k]
        n_iter[g] = max(n_iter[g], n_steps)
        if bound <= target or step <= resolution[g] or is_last:
            active[starts[k] : starts[k + 1]] = 0.0
            residual[g] = max(residual[g], bound)
        else:
            n_active += 1
    return n_active


@njit(cache=True, nogil=True, error_model="numpy")
def _pool(block, sums, pooled):
    """Copy the sums (n_slots, H, graphs of the block) to pooled (n_slots, n_quotients, H)."""
    for slot in range(len(pooled)):
        for k in range(block.counts[N_GRAPHS]):
            for h in range(sums.shape[1]):
                pooled[slot, block.graphs[k], h] = sums[slot, h, k]
