"""Colors and their counts, from the kernels: for whole batches, in chunks and in threads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, offsets_of
from fdgnn.encoders.channels import Channels, Colors
from fdgnn.graphs import GraphBatch
from fdgnn.threads import over_chunks

_AT_ONCE = 2_000_000  # colors that one chunk of graphs has at once, about: 16 MB


def hashed_counts(
    graphs: GraphBatch,
    found: Channels,
    arc_bits: Colors,
    n_features: int,
    counts: str,
    n_jobs: int | None,
) -> sp.csr_array:
    """Count the colors of all channels and rounds in buckets: (n_graphs, n_features)."""
    from fdgnn.kernels import pack_rows

    T, offsets = int((found.n_iterations + 1).sum()), graphs.vertex_offsets
    indices = np.empty(T * graphs.n_vertices, dtype=np.int32)
    data = np.empty(len(indices))
    lengths = np.empty(len(graphs), dtype=np.int64)
    mask, present = n_features - 1, counts == "presence"
    chunks: list[tuple[int, int]] = []

    def count(g0: int, g1: int) -> None:
        colors = colored(graphs, found, arc_bits, g0, g1)
        numbers = numbered(graphs, colors, counts, g0, g1)
        pack_rows(g0, g1, offsets, colors, numbers, mask, present, indices, data, lengths)
        chunks.append((g0, g1))

    over_chunks(count, len(graphs), n_jobs, (), lambda: T * offsets, most_work=_AT_ONCE)
    indptr = offsets_of(lengths)
    for g0, g1 in sorted(chunks):  # a chunk has its rows together; close the gaps between chunks
        to, start, length = indptr[g0], T * offsets[g0], indptr[g1] - indptr[g0]
        if to < start:
            indices[to : to + length] = indices[start : start + length]
            data[to : to + length] = data[start : start + length]
    small = indptr[-1] <= np.iinfo(np.int32).max  # SciPy wants indices and indptr of one type
    parts = data[: indptr[-1]], indices[: indptr[-1]], indptr.astype(np.int32) if small else indptr
    return _sorted_rows(parts, (len(graphs), n_features))


def numbered(
    graphs: GraphBatch, colors: Colors, counts: str, g0: int, g1: int
) -> npt.NDArray[np.int32]:
    """How many vertices before it have a vertex's color; no rows where that is not wanted."""
    from fdgnn.kernels import number_occurrences

    if counts != "thermometer":
        return np.empty((0, 0), dtype=np.int32)
    numbers = np.empty(colors.shape, dtype=np.int32)
    number_occurrences(g0, g1, graphs.vertex_offsets, colors, numbers)
    return numbers


def colored(graphs: GraphBatch, found: Channels, arc_bits: Colors, g0: int, g1: int) -> Colors:
    """Colors (T, n) of all channels and rounds, of the vertices of the graphs g0 to g1."""
    from fdgnn.kernels import wl_labels

    a, b = graphs.vertex_offsets[[g0, g1]]
    starts = np.concatenate([[0], np.cumsum(found.n_iterations + 1)])
    colors = np.empty((starts[-1], b - a), dtype=np.uint64)
    for row, first in zip(starts.tolist(), found.first[:, a:b], strict=False):
        colors[row] = first
    arcs = graphs.structure, arc_bits, graphs.directed
    wl_labels(g0, g1, *arcs, found.n_iterations, colors)
    return colors


def feature_keys(colors: Colors, numbers: npt.NDArray[np.int32]) -> Colors:
    """The hashes of which the columns of `fdgnn.kernels.pack_rows` are the last bits."""
    from fdgnn.kernels import mix_all

    keys = colors + numbers.astype(np.uint64) if len(numbers) else colors.copy()
    mix_all(keys.reshape(-1))
    return keys


def _sorted_rows(parts: tuple[Array, Array, Array], shape: tuple[int, int]) -> sp.csr_array:
    """A matrix whose rows are known to have ascending columns, each once."""
    X = sp.csr_array(parts, shape=shape)
    X.has_sorted_indices = X.has_canonical_format = True
    return X
