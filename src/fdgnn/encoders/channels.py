"""First colors: what a vertex brings before its neighborhood is looked at.

A *channel* is one first color for every vertex, and how often it is refined. Labels are one
channel. Graphs without labels get the degree, in bins, and histograms: channels that are not
refined, each a number of the vertex in bins. Real features are cut into bins at the quantiles of
the training graphs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fdgnn.arrays import Array, Floats, Ints, looked_up
from fdgnn.graphs import GraphBatch
from fdgnn.graphs.colors import hash_values
from fdgnn.threads import over_chunks

Colors = npt.NDArray[np.uint64]

COARSE = 4  # bins of a feature that are refined; its fine bins are only counted
SMALL_VOCABULARY = 0.05  # distinct rows of coarse bins for each vertex, up to which rows are colors
# Powers of the root of two. Roots and products by powers of two round alike on every machine.
_EDGES = np.sort(np.concatenate([2.0 ** np.arange(1, 64), np.sqrt(2.0) * 2.0 ** np.arange(64)]))


class Channels(NamedTuple):
    """First colors (C, n_vertices), how often each is refined (C,), and their names."""

    first: Colors
    n_iterations: Ints
    names: tuple[str, ...]


def log_bins(values: Array) -> Ints:
    """Bins of numbers that are at least 0: two for each time that 1 + value doubles."""
    return np.searchsorted(_EDGES, 1.0 + values, side="right")


def log_bin_ends(bin_: int) -> tuple[float, float]:
    """The numbers of a bin: from the first up to below the second."""
    return (float(_EDGES[bin_ - 1]) - 1.0 if bin_ else 0.0), float(_EDGES[bin_]) - 1.0


def degrees(graphs: GraphBatch) -> Ints:
    """Neighbors of each vertex; in directed graphs those that it hears from."""
    return np.diff(graphs.indptr)


# ---------------------------------------------------------------------- structure


def structure_numbers(graphs: GraphBatch, n_jobs: int | None = None) -> dict[str, Ints]:
    """Describe each vertex by numbers of its neighborhood, each in bins (n_vertices,)."""
    degree = degrees(graphs)
    near, counted = graphs.adjacency(), np.maximum(degree, 1)
    near.data = np.ones(len(near.data), dtype=np.int64)  # whole sums: the order does not matter
    total, squares = near @ degree, near @ degree**2
    smallest, largest = _extremes(graphs, degree)
    triangles = _triangles(graphs, n_jobs)
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
    """Colors that describe each vertex by numbers of its neighborhood, one by one and in pairs."""
    numbers = structure_numbers(graphs, n_jobs)
    single = [(name, hashed(bins, f"histogram {name}")) for name, bins in numbers.items()]
    paired = [
        (f"{a}, {b}", hashed(np.stack([numbers[a], numbers[b]], axis=1), f"histogram {a}, {b}"))
        for a, b in PAIRS
    ]
    return single + paired


def _extremes(graphs: GraphBatch, degree: Ints) -> tuple[Ints, Ints]:
    """Smallest and largest degree of each vertex's neighbors; 0 where there are none."""
    start = looked_up(graphs.vertex_offsets, graphs.graph_of_vertex)
    near = degree[graphs.neighbors + np.repeat(start, np.diff(graphs.indptr))]
    some = np.flatnonzero(degree)
    smallest, largest = np.zeros_like(degree), np.zeros_like(degree)
    if len(some):
        smallest[some] = np.minimum.reduceat(near, graphs.indptr[some])
        largest[some] = np.maximum.reduceat(near, graphs.indptr[some])
    return smallest, largest


def _triangles(graphs: GraphBatch, n_jobs: int | None) -> Ints:
    from fdgnn.kernels import count_triangles

    counts = np.zeros(graphs.n_vertices, dtype=np.int64)
    arguments = (graphs.vertex_offsets, graphs.indptr, graphs.neighbors, counts)
    work = graphs.indptr[graphs.vertex_offsets]
    over_chunks(count_triangles, len(graphs), n_jobs, arguments, lambda: work)
    return counts


# ---------------------------------------------------------------------- real numbers


def quantile_edges(values: Floats, n_bins: int) -> Floats:
    """Inner edges (n_columns, n_bins - 1) of bins that are about equally full; inf where fewer.

    A column of few different values has a bin for each of them.
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
    """Bin of each value, (n, n_columns)."""
    columns = zip(values.T, edges, strict=True)
    return np.stack([np.searchsorted(row, column) for column, row in columns], axis=1)


def coarse_bins(bins: Ints, edges: Floats) -> Ints:
    """Join bins, so that each column has at most `COARSE` of them."""
    n_bins = np.isfinite(edges).sum(axis=1) + 1
    return np.where(n_bins > COARSE, bins * COARSE // n_bins, bins)


def few_rows(bins: Ints) -> bool:
    """Tell whether rows of bins repeat so often that each row can be a color."""
    return len(np.unique(bins, axis=0)) <= max(COARSE, SMALL_VOCABULARY * len(bins))


# ---------------------------------------------------------------------- hashes


def hashed(numbers: Array, name: str) -> Colors:
    """Colors of whole numbers (n,), or of rows of them (n, m), that no other name gives."""
    from fdgnn.kernels import mix_rows

    rows = np.atleast_2d(numbers.T).T.astype(np.int64).view(np.uint64)
    salt = np.full((len(rows), 1), hash_values([name])[0], dtype=np.uint64)
    colors = np.empty(len(rows), dtype=np.uint64)
    mix_rows(np.ascontiguousarray(np.hstack([salt, rows])), colors)
    return colors
