"""A block: some quotient graphs side by side, laid out for `fdgnn.kernels.rows`.

Rows of a block are padded to whole vectors. `Block.counts` and `Band.counts` say how much of each
array is in use, so that one allocation serves all blocks of a chunk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from fdgnn.kernels.rows import STRANDS

LANES = 64  # rows are allocated in multiples of this: whole vectors, four times unrolled
N_ROWS, N_GRAPHS = range(2)
N_DIAGONALS, N_OUTSIDE = range(2)


class Band(NamedTuple):
    """The arcs of a block: diagonals near the main one, and a list of the arcs outside."""

    half: int  # half-width of the widest band; so many zeros stand on both sides of x
    counts: Any  # (2,) diagonals, arcs outside the band
    offsets: Any  # (n_diagonals,)
    diagonals: Any  # (n_diagonals, n_rows)
    outside: Any  # (n_outside, 2) row, source
    outside_weights: Any  # (n_outside,)
    padded: Any  # zeros, x, zeros


class Block(NamedTuple):
    """Scratch space for one block; float arrays are of the precision of the states."""

    counts: Any  # (2,) rows with padding, graphs
    graphs: Any  # (n_graphs,) the quotients in the block
    starts: Any  # (n_graphs + 1,) their first rows in the block
    size_starts: Any  # (n_graphs,) and where their sizes begin
    sizes: Any  # vertices in the class of each row
    rows: Any  # (n_rows,) the place of each row in the quotients
    codes: Any  # (n_rows,), or none
    features: Any  # (n_rows, U), or none
    band: Any  # Band
    x: Any  # (n_rows + STRANDS,) the state of the neuron at hand, inside the band's `padded`
    squares: Any  # (n_rows + STRANDS,)
    totals: Any  # (3, n_graphs) float64


@njit(cache=True, nogil=True, error_model="numpy")
def allocate(first, last, block_offsets, blocks, q, codes, features, like):
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
    band = Band(
        half,
        np.zeros(2, dtype=np.int64),
        np.empty(2 * half + 4, dtype=np.int64),
        np.zeros((2 * half + 4, n), dtype=like.dtype),
        np.empty((n_outside, 2), dtype=np.uint32),
        np.empty(n_outside, dtype=like.dtype),
        padded,
    )
    return Block(
        np.zeros(2, dtype=np.int64),
        np.empty(n_graphs, dtype=np.int64),
        np.zeros(n_graphs + 1, dtype=np.int64),
        np.empty(n_graphs, dtype=np.int64),
        np.zeros(n + STRANDS * n_graphs, dtype=like.dtype),
        np.zeros(n, dtype=np.int64),
        np.full(n if len(codes) > 0 else 0, -1, dtype=np.int32),
        np.zeros((n if len(features) > 0 else 0, features.shape[1])),
        band,
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
    place = np.full(2 * block.band.half + 1, -1, dtype=np.int64)
    _load_diagonals(block, q, place)
    _load_arcs(block, q, place)


@njit(cache=True, nogil=True, error_model="numpy")
def _load_diagonals(block, q, place):
    """Find the diagonals in use, ascending; ``place[half + d]`` is the number of diagonal d."""
    band, n = block.band, block.counts[N_ROWS]
    for g in block.graphs[: block.counts[N_GRAPHS]]:
        r0 = q.row_offsets[g]
        for r in range(r0, q.row_offsets[g + 1]):
            for a in range(q.indptr[r], q.indptr[r + 1]):
                d = q.sources[a] - (r - r0)
                if abs(d) <= q.bands[g]:
                    place[band.half + d] = 0
    count = 0
    for d in range(len(place)):
        if place[d] == 0:
            place[d] = count
            band.offsets[count] = d
            count += 1
    while count % 4 > 0:  # `sum_neighbors` takes four at a time
        band.offsets[count] = 0
        count += 1
    band.diagonals[:count, :n] = 0.0
    band.counts[N_DIAGONALS] = count


@njit(cache=True, nogil=True, error_model="numpy")
def _load_arcs(block, q, place):
    """Write the arcs into the diagonals, or into the list of those outside the band."""
    band = block.band
    n_outside = 0
    for k in range(block.counts[N_GRAPHS]):
        g, v0 = block.graphs[k], block.starts[k]
        r0 = q.row_offsets[g]
        for r in range(r0, q.row_offsets[g + 1]):
            v = v0 + r - r0
            for a in range(q.indptr[r], q.indptr[r + 1]):
                d = q.sources[a] - (r - r0)
                if abs(d) <= q.bands[g]:
                    band.diagonals[place[band.half + d], v] = q.multiplicities[a]
                else:
                    band.outside[n_outside, 0] = v
                    band.outside[n_outside, 1] = v0 + q.sources[a]
                    band.outside_weights[n_outside] = q.multiplicities[a]
                    n_outside += 1
    band.counts[N_OUTSIDE] = n_outside
