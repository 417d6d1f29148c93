"""Weisfeiler-Lehman labels: the first label of each vertex, labels of edges, and counts.

A *channel* is one first label for every vertex, and how often it is refined. Vertex labels are one
channel. Graphs without labels get the degree, in bins, and histograms: channels that are not
refined, each a number of the vertex in bins. Real features are cut into bins at the quantiles of
the training graphs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from fdgnn.arrays import Array, Floats, Ints, looked_up, offsets_of
from fdgnn.exceptions import GraphError
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.colors import hash_values
from fdgnn.graphs.graph import Kind
from fdgnn.threads import over_chunks

Colors = npt.NDArray[np.uint64]

COARSE = 4  # bins of a feature that are refined; its fine bins are only counted
SMALL_VOCABULARY = 0.05  # distinct rows of coarse bins per vertex, up to which rows are labels
# Powers of the root of two. Roots and products by powers of two round alike on every machine.
_EDGES = np.sort(np.concatenate([2.0 ** np.arange(1, 64), np.sqrt(2.0) * 2.0 ** np.arange(64)]))


class Channels(NamedTuple):
    """First WL labels (C, n_vertices), how often each is refined (C,), and their names."""

    first: Colors
    n_iterations: Ints
    names: tuple[str, ...]


def log_bins(values: Array) -> Ints:
    """Return bins of numbers that are at least 0: two for each time that 1 + value doubles."""
    return np.searchsorted(_EDGES, 1.0 + values, side="right")


def log_bin_ends(bin_: int) -> tuple[float, float]:
    """Return the bounds of a bin: its first number, and the first number above it."""
    return (float(_EDGES[bin_ - 1]) - 1.0 if bin_ else 0.0), float(_EDGES[bin_]) - 1.0


def degrees(graphs: GraphBatch) -> Ints:
    """Count the neighbors of each vertex, in directed graphs those with an edge to it."""
    return np.diff(graphs.indptr)


# ---------------------------------------------------------------------- structure


def structure_numbers(graphs: GraphBatch, n_jobs: int | None = None) -> dict[str, Ints]:
    """Describe each vertex by numbers of its neighborhood, each in bins (n_vertices,)."""
    from fdgnn.kernels import count_triangles

    degree = degrees(graphs)
    near, counted = graphs.adjacency(), np.maximum(degree, 1)
    near.data = np.ones(len(near.data), dtype=np.int64)  # whole sums: the order does not matter
    total, squares = near @ degree, near @ degree**2
    smallest, largest = _extremes(graphs, degree)
    work = graphs.indptr[graphs.vertex_offsets]
    triangles = np.zeros(graphs.n_vertices, dtype=np.int64)
    arguments = (graphs.vertex_offsets, graphs.indptr, graphs.neighbors, triangles)
    over_chunks(count_triangles, len(graphs), n_jobs, arguments, lambda: work)
    size = looked_up(np.diff(graphs.vertex_offsets), graphs.graph_of_vertex)
    scaled = {
        "degree": degree,
        "neighbors' mean degree": total / counted,
        "neighbors' largest degree": largest,
        "neighbors' smallest degree": smallest,
        "deviation of neighbors' degrees": np.sqrt(squares * counted - total**2) / counted,
        "triangles": triangles,
    }
    bins = log_bins(np.stack(list(scaled.values())))
    return {
        **dict(zip(scaled, bins, strict=True)),
        "degree over graph size": 20 * degree // size,
        "linked pairs of neighbors": 20 * triangles // np.maximum(degree * (degree - 1) // 2, 1),
    }


#: Numbers that are counted together, too: how they depend on each other tells graphs apart.
PAIRS = (
    ("degree", "neighbors' mean degree"),
    ("degree", "neighbors' largest degree"),
    ("degree", "triangles"),
    ("degree", "degree over graph size"),
    ("degree", "linked pairs of neighbors"),
    ("neighbors' mean degree", "deviation of neighbors' degrees"),
)


def histograms(graphs: GraphBatch, n_jobs: int | None = None) -> list[tuple[str, Colors]]:
    """Return WL labels of numbers of each vertex's neighborhood, one by one and in pairs."""
    numbers = structure_numbers(graphs, n_jobs)
    single = [(name, hashed(bins, f"histogram {name}")) for name, bins in numbers.items()]
    paired = [
        (f"{a}, {b}", hashed(np.stack([numbers[a], numbers[b]], axis=1), f"histogram {a}, {b}"))
        for a, b in PAIRS
    ]
    return single + paired


def _extremes(graphs: GraphBatch, degree: Ints) -> tuple[Ints, Ints]:
    """Return the smallest and largest degree of each vertex's neighbors; 0 where there are none."""
    start = looked_up(graphs.vertex_offsets, graphs.graph_of_vertex)
    near = degree[graphs.neighbors + np.repeat(start, np.diff(graphs.indptr))]
    some = np.flatnonzero(degree)
    smallest, largest = np.zeros_like(degree), np.zeros_like(degree)
    if len(some):
        smallest[some] = np.minimum.reduceat(near, graphs.indptr[some])
        largest[some] = np.maximum.reduceat(near, graphs.indptr[some])
    return smallest, largest


# ---------------------------------------------------------------------- real numbers


def quantile_edges(values: Floats, n_bins: int) -> Floats:
    """Return inner edges (n_columns, n_bins - 1) of about equally full bins; inf if fewer.

    A column with few distinct values has a bin for each value.
    """
    edges = np.full((values.shape[1], n_bins - 1), np.inf)
    for column, row in zip(values.T, edges, strict=True):
        distinct = np.unique(column)
        if len(distinct) <= n_bins:
            found = (distinct[1:] + distinct[:-1]) / 2
        else:
            found = np.unique(np.quantile(column, np.linspace(0, 1, n_bins + 1)[1:-1]))
        row[: len(found)] = found
    return edges


def bins_of(values: Floats, edges: Floats) -> Ints:
    """Return the bin of each value, (n, n_columns)."""
    columns = zip(values.T, edges, strict=True)
    return np.stack([np.searchsorted(row, column) for column, row in columns], axis=1)


def coarse_bins(bins: Ints, edges: Floats) -> Ints:
    """Join bins, so that each column has at most `COARSE` of them."""
    n_bins = np.isfinite(edges).sum(axis=1) + 1
    return np.where(n_bins > COARSE, bins * COARSE // n_bins, bins)


# ---------------------------------------------------------------------- hashes


def hashed(numbers: Array, name: str) -> Colors:
    """Return distinct WL labels of integers (n,), or of rows of integers (n, m)."""
    from fdgnn.kernels import mix_rows

    rows = np.atleast_2d(numbers.T).T.astype(np.int64).view(np.uint64)
    salt = np.full((len(rows), 1), hash_values([name])[0], dtype=np.uint64)
    colors = np.empty(len(rows), dtype=np.uint64)
    mix_rows(np.ascontiguousarray(np.hstack([salt, rows])), colors)
    return colors


WEIGHT_BINS = 8
_MISSING = "{0}, but the model was fitted on graphs with some"
_LARGEST = 2.0**62  # weights beyond are all the same


@dataclass(frozen=True, eq=False)
class ArcReading:
    """Labels and weights of edges in the training graphs.

    Attributes
    ----------
    labeled, weighted : bool
        Whether labels and weights are part of the WL labels.
    whole : bool
        Whether all weights are whole numbers, which are taken as they are; else they are cut into
        bins.
    edges : (WEIGHT_BINS - 1,) float64, or of length 0
        The edges of these bins.
    """

    labeled: bool = False
    weighted: bool = False
    whole: bool = True
    edges: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def of(cls, graphs: GraphBatch) -> ArcReading:
        """Learn what edges of training graphs carry."""
        labeled, weights = graphs.edge_label_codes is not None, graphs.weights
        if weights is None or (weights == np.round(weights)).all():
            return cls(labeled, weights is not None)
        edges = quantile_edges(weights[:, None], WEIGHT_BINS)[0]
        return cls(labeled, weighted=True, whole=False, edges=edges)

    def bits(self, graphs: GraphBatch) -> Colors:
        """Return the hash of what each edge carries; of length 0 where that is nothing."""
        bits = np.empty(0, dtype=np.uint64)
        if graphs.n_arcs == 0:
            return bits
        if self.labeled:
            if graphs.arc_colors is None:
                raise GraphError(_MISSING.format("the graphs have no labels on edges"))
            bits = graphs.arc_colors
        if self.weighted:
            if graphs.weights is None:
                raise GraphError(_MISSING.format("the graphs have no weights"))
            levels = np.searchsorted(self.edges, graphs.weights)
            if self.whole:  # numbers of bins otherwise
                limited = np.clip(graphs.weights, -_LARGEST, _LARGEST)
                levels = np.round(limited).astype(np.int64)
            weights = hashed(levels, "weight")
            bits = bits ^ weights if len(bits) else weights
        return bits

    def kind_error(self, kind: Kind) -> str | None:
        """Return what a graph of this kind lacks; None if nothing."""
        if self.labeled and kind.edge_labels is None:
            return _MISSING.format("it has no labels on edges")
        if self.weighted and not kind.weighted:
            return _MISSING.format("it has no weights")
        return None


_AT_ONCE = 2_000_000  # WL labels that one chunk of graphs has at once, about: 16 MB


def hashed_counts(
    graphs: GraphBatch,
    found: Channels,
    arc_bits: Colors,
    n_features: int,
    counts: str,
    n_jobs: int | None,
) -> sp.csr_array:
    """Count the WL labels of all channels and iterations in buckets: (n_graphs, n_features)."""
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
    return sorted_rows(data[: indptr[-1]], indices[: indptr[-1]], indptr, n_features)


def numbered(
    graphs: GraphBatch, colors: Colors, counts: str, g0: int, g1: int
) -> npt.NDArray[np.int32]:
    """Return the rank of each vertex among those with its label; no rows if not needed."""
    from fdgnn.kernels import number_occurrences

    if counts != "unary":
        return np.empty((0, 0), dtype=np.int32)
    numbers = np.empty(colors.shape, dtype=np.int32)
    number_occurrences(g0, g1, graphs.vertex_offsets, colors, numbers)
    return numbers


def colored(graphs: GraphBatch, found: Channels, arc_bits: Colors, g0: int, g1: int) -> Colors:
    """Return WL labels (T, n) in all channels and iterations of vertices of graphs g0 to g1."""
    from fdgnn.kernels import wl_labels

    a, b = graphs.vertex_offsets[[g0, g1]]
    starts = np.concatenate([[0], np.cumsum(found.n_iterations + 1)])
    colors = np.empty((starts[-1], b - a), dtype=np.uint64)
    for row, first in zip(starts.tolist(), found.first[:, a:b], strict=False):
        colors[row] = first
    arcs = graphs.structure, arc_bits, graphs.directed
    wl_labels(g0, g1, *arcs, found.n_iterations, colors)
    return colors


def sorted_rows(data: Floats, indices: Array, indptr: Ints, n_columns: int) -> sp.csr_array:
    """Return a matrix whose rows are known to have ascending columns, each once."""
    small = indptr[-1] <= np.iinfo(np.int32).max  # SciPy wants indices and indptr of one type
    parts: Any = data, indices, indptr.astype(np.int32) if small else indptr
    X = sp.csr_array(parts, shape=(len(indptr) - 1, n_columns))
    X.has_sorted_indices = X.has_canonical_format = True
    return X
