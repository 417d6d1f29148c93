"""A block: some quotient graphs side by side, laid out for `fdgnn.kernels.rows`.

Rows of a block are padded to whole vectors, and `Block.counts` tells how much of each array is
in use, so that one allocation serves all blocks of a chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fdgnn.kernels.rows import STRANDS

LANES = 64  # rows are allocated in multiples of this: whole vectors, four times unrolled
N_ROWS, N_GRAPHS, N_DIAGONALS, N_OUTSIDE = range(4)


class Block(NamedTuple):
    """Scratch space for one block; float arrays are of the precision of the states."""

    counts: Any  # (4,) rows with padding, graphs, diagonals, arcs outside the band
    half: int  # half-width of the widest band; zeros on both sides of x
    graphs: Any  # (n_graphs,) the quotients in the block
    starts: Any  # (n_graphs + 1,) their first rows in the block
    size_starts: Any  # (n_graphs,) and where their sizes begin
    sizes: Any  # vertices in each row's class
    rows: Any  # (n_rows,) each row's place in the quotients
    codes: Any  # (n_rows,)
    features: Any  # (n_rows, U)
    offsets: Any  # (n_diagonals,)
    diagonals: Any  # (n_diagonals, n_rows)
    outside: Any  # (n_outside, 2) row, source
    outside_weights: Any  # (n_outside,)
    padded: Any  # zeros, x, zeros
    x: Any  # (n_rows + STRANDS,) the state of the neuron in hand
    argument: Any  # (n_rows + STRANDS,)
    totals: Any  # (3, n_graphs) float64


@njit(cache=True, nogil=True, error_model="numpy")
def allocate(first, last, block_offsets, blocks, q, features, like):
    """Make room for the largest of the blocks ``first`` to ``last``."""
    n_rows = half = n_outside = n_graphs = 0
    for b in range(first, last):
        rows = arcs = 0
        for g in blocks[block_offsets[b] : block_offsets[b + 1]]:
            rows += q.row_offsets[g + 1] - q.row_offsets[g]
            arcs += q.indptr[q.row_offsets[g + 1]] - q.indptr[q.row_offsets[g]]
            half = max(half, q.bands[g])
        n_rows, n_outside = max(n_rows, rows), max(n_outside, arcs)
        n_graphs = max(n_graphs, block_offsets[b + 1] - block_offsets[b])
    n = (n_rows + LANES - 1) // LANES * LANES
    padded = np.zeros(n + 2 * half + STRANDS, dtype=like.dtype)
    return Block(
        np.zeros(4, dtype=np.int64),
        half,
        np.empty(n_graphs, dtype=np.int64),
        np.zeros(n_graphs + 1, dtype=np.int64),
        np.empty(n_graphs, dtype=np.int64),
        np.zeros(n + STRANDS * n_graphs, dtype=like.dtype),
        np.zeros(n, dtype=np.int64),
        np.full(n, -1, dtype=np.int32),
        np.zeros((n if len(features) > 0 else 0, features.shape[1])),
        np.empty(2 * half + 4, dtype=np.int64),
        np.zeros((2 * half + 4, n), dtype=like.dtype),
        np.empty((n_outside, 2), dtype=np.uint32),
        np.empty(n_outside, dtype=like.dtype),
        padded,
        padded[half : half + n + STRANDS],
        np.zeros(n + STRANDS, dtype=like.dtype),
        np.zeros((3, n_graphs)),
    )


@njit(cache=True, nogil=True, error_model="numpy")
def load(block, graphs, q, codes, features, lanes):
    """Lay the quotients ``graphs`` side by side, in rows padded to a multiple of ``lanes``."""
    n, filled = 0, 0
    for k in range(len(graphs)):
        r0, r1 = q.row_offsets[graphs[k]], q.row_offsets[graphs[k] + 1]
        block.graphs[k] = graphs[k]
        block.size_starts[k] = filled
        for r in range(r0, r1):
            block.sizes[filled + r - r0] = q.sizes[r]
            block.rows[n + r - r0] = r
            if len(codes) > 0:
                block.codes[n + r - r0] = codes[r]
            else:
                block.features[n + r - r0] = features[r]
        n += r1 - r0
        filled += (r1 - r0 + STRANDS - 1) // STRANDS * STRANDS
        block.sizes[block.size_starts[k] + r1 - r0 : filled] = 0.0
        block.starts[k + 1] = n
    block.counts[N_ROWS] = (n + lanes - 1) // lanes * lanes
    block.counts[N_GRAPHS] = len(graphs)
    _load_arcs(block, q)


@njit(cache=True, nogil=True, error_model="numpy")
def _load_arcs(block, q):
    """Lay the arcs out as diagonals of the band and a list of those outside it."""
    half, n = block.half, block.counts[N_ROWS]
    place = np.full(2 * half + 1, -1, dtype=np.int64)
    m = block.counts[N_GRAPHS]
    for k in range(m):
        r0, band = q.row_offsets[block.graphs[k]], q.bands[block.graphs[k]]
        for r in range(r0, q.row_offsets[block.graphs[k] + 1]):
            for a in range(q.indptr[r], q.indptr[r + 1]):
                d = q.sources[a] - (r - r0)
                if abs(d) <= band:
                    place[half + d] = 0
    n_diagonals = 0
    for d in range(2 * half + 1):  # in ascending order, whichever are in use
        if place[d] == 0:
            place[d] = n_diagonals
            block.offsets[n_diagonals] = d
            block.diagonals[n_diagonals, :n] = 0.0
            n_diagonals += 1
    n_outside = 0
    for k in range(m):
        r0, band = q.row_offsets[block.graphs[k]], q.bands[block.graphs[k]]
        for r in range(r0, q.row_offsets[block.graphs[k] + 1]):
            v = block.starts[k] + r - r0
            for a in range(q.indptr[r], q.indptr[r + 1]):
                d = q.sources[a] - (r - r0)
                if abs(d) <= band:
                    block.diagonals[place[half + d], v] = q.multiplicities[a]
                else:
                    block.outside[n_outside, 0] = v
                    block.outside[n_outside, 1] = block.starts[k] + q.sources[a]
                    block.outside_weights[n_outside] = q.multiplicities[a]
                    n_outside += 1
    while n_diagonals % 4 > 0:  # `sum_neighbors` takes four at a time
        block.offsets[n_diagonals] = 0
        block.diagonals[n_diagonals, :n] = 0.0
        n_diagonals += 1
    block.counts[N_DIAGONALS] = n_diagonals
    block.counts[N_OUTSIDE] = n_outside
